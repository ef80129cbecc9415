"""One side's alignment with its peers, which ends where too few ids are common; says who has them.

With several Alices the ids of each pair are looked at as those of two sides are. Whether enough are
common to all, only Bob can say: an Alice does not know how long the others' lists are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from taciturn.arrays import IndexArray
from taciturn.data.ids import RowIds
from taciturn.data.normalisation import (
    Normalisation,
    Spelling,
    describe_spellings,
    further,
    spellings,
)
from taciturn.errors import RowOrderError
from taciturn.faces import Hint
from taciturn.jobs.align.pairwise import Alignment, Match, Spread, align, match_ids
from taciturn.jobs.align.result import SharedIds
from taciturn.jobs.align.several import Matches, hear_common, match_each, tell_common
from taciturn.memmap import MEMORY, Scratch
from taciturn.protocol.messages import Role
from taciturn.protocol.steps import ONLY, Program
from taciturn.rng import Entropy


def fraction_of_shortest(common: int, *lists: int) -> float:
    """How much of the shortest list is common: of two lists, the same number on both sides."""
    return common / min(lists)


@dataclass(frozen=True, slots=True)
class MatchRequirement:
    """How many ids must be common.

    ``ids`` are this side's, normalised; ``least`` is the fraction of the shorter list below which
    an alignment stops, and None lets any number be common, also none.
    """

    ids: RowIds = field(repr=False)
    normalisation: Normalisation
    least: float | None
    where: str = ""

    def spellings(self, common: int) -> tuple[Spelling, ...]:
        """What else might make ids of this table the peer's; nothing where all are common."""
        return () if common == len(self.ids) else spellings(self.ids, self.normalisation)

    def require_pair(self, match: Alignment | Match) -> None:
        """Raise where two sides have too few ids in common."""
        common, own = len(match.rows), len(self.ids)
        if self.least is None:
            return
        if not common:
            raise self._nothing(match)
        fraction = fraction_of_shortest(common, own, match.peer_ids)
        if fraction >= self.least:
            return
        tried = self.spellings(common)
        better = further(self.normalisation, tried)
        if better == self.normalisation:
            way_out = "name the same kind of id on both sides; or "
        else:
            way_out = f"{describe_spellings(tried, own)}: try {{normalise_ids}} on both sides; or "
        raise RowOrderError(
            f"only {common:,} ids are common, {fraction:.1%} of the shorter list, and "
            f"min-overlap is {self.least:g}: {own:,} here, {match.peer_ids:,} there",
            where=self.where,
            hint=Hint(
                way_out + "if so few are right, write {min_overlap} under [data] on both sides",
                normalise_ids=str(better),
                min_overlap=math.floor(fraction * 1000) / 1000,
            ),
        )

    def _nothing(self, match: Alignment | Match) -> RowOrderError:
        own, tried = len(self.ids), self.spellings(0)
        return RowOrderError(
            f"the two sides have no id in common: {own} here, {match.peer_ids} there",
            where=self.where,
            hint=Hint(
                "name the same kind of id on both sides; a different spelling may need "
                "{normalise_ids}" + (f" ({describe_spellings(tried, own)})" if tried else "")
            ),
        )

    def require_pair_with(self, name: str, match: Match) -> None:
        """Insists on the same of Bob and one of several Alices, whom the error names."""
        try:
            self.require_pair(match)
        except RowOrderError as problem:
            raise problem.by(name) from None

    def require_all(self, matches: Matches) -> None:
        """Raise where Bob and all Alices have too few ids in common."""
        common, lists = matches.common, [match.peer_ids for match in matches.pairs.values()]
        fraction = fraction_of_shortest(common, len(self.ids), *lists)
        if self.least is None or (common and fraction >= self.least):
            return
        worst = max(matches.pairs, key=matches.lacking)
        lacks = matches.lacking(worst)
        blame = f"; {worst} lacks {lacks:,} that all others have" if lacks else ""
        if not common:
            raise RowOrderError(
                f"no id is common to all parties{blame}",
                where=self.where,
                hint="name the same kind of id on all sides, and tables of the same people",
            )
        raise RowOrderError(
            f"only {common:,} ids are common to all parties, {fraction:.1%} of the shortest list, "
            f"and min-overlap is {self.least:g}{blame}",
            where=self.where,
            hint=Hint(
                "if so few are right, write {min_overlap} under [data] here",
                min_overlap=math.floor(fraction * 1000) / 1000,
            ),
        )


@dataclass(frozen=True, slots=True)
class Intersection:
    """What one side has at the end.

    ``ends`` are its alignments by peer, of the same rows; of ``shared``, the only peer has no name.
    """

    ends: Mapping[str, Alignment] = field(repr=False)
    shared: tuple[SharedIds, ...]

    @property
    def rows(self) -> IndexArray:
        """The rows that all sides have, in the order of their ids."""
        return next(iter(self.ends.values())).rows

    @property
    def shortest(self) -> int:
        """How many ids the peer has that has the fewest."""
        return min(peer.ids for peer in self.shared)


@dataclass(frozen=True, slots=True)
class IntersectionTask:
    """One side's alignment with its peers; ``alices`` is empty where there is one."""

    role: Role
    alices: Sequence[str]
    requirement: MatchRequirement
    terms: str
    spread: Spread = map
    scratch: Scratch = MEMORY

    def program(self, entropy: Entropy) -> Program[Intersection]:
        """This side's part."""
        if not self.alices:
            return self._one_of_two(entropy)
        return self._alice(entropy) if self.role == "alice" else self._bob(entropy)

    def _one_of_two(self, entropy: Entropy) -> Program[Intersection]:
        ids, rest = self.requirement.ids, (self.terms, entropy, self.spread, self.scratch)
        end = yield from align(self.role, ids, *rest)
        self.requirement.require_pair(end)
        return Intersection({ONLY: end}, (_shared(ONLY, end),))

    def _alice(self, entropy: Entropy) -> Program[Intersection]:
        ids, rest = self.requirement.ids, (self.terms, entropy, self.spread, self.scratch)
        match = yield from match_ids("alice", ids, *rest)
        self.requirement.require_pair(match)
        end = yield from hear_common(ids, match)
        if not len(end.rows) and self.requirement.least is not None:
            # Bob ends before he says so; one who deviates may not.
            raise RowOrderError("no id is common to all parties", where=self.requirement.where)
        return Intersection({ONLY: end}, (_shared(ONLY, match),))

    def _bob(self, entropy: Entropy) -> Program[Intersection]:
        ids, rest = self.requirement.ids, (self.terms, entropy, self.spread, self.scratch)
        matches = yield from match_each(self.alices, ids, *rest, self.requirement.require_pair_with)
        # Before anybody is told: whoever hears of a list writes it.
        self.requirement.require_all(matches)
        ends = yield from tell_common(ids, matches)
        shared = tuple(_shared(name, match) for name, match in matches.pairs.items())
        return Intersection(ends, shared)


def _shared(name: str, match: Alignment | Match) -> SharedIds:
    return SharedIds(name, match.peer_ids, len(match.rows))
