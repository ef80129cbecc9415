"""One side's alignment with its peers, which ends if too few ids are common.

With several Alices the ids of each pair are looked at as those of two sides are. Whether enough are
common to all, only Bob can say: an Alice does not know how long the others' lists are.

    each Alice                                             Bob
      the alignment of the two (``taciturn.jobs.align.pairwise``), with all of them at once
      both: the ids that the two share, in the order of their twice blinded elements
                                                      <--  CommonToAll   of these, which all have
      AlignmentEnd    how many remain, digest         <->  AlignmentEnd

An Alice speaks to Bob only. Every pair has its own salt, scalars and orders, so that no element of
one pair means anything to another Alice. All end with the same ids in the order of their code
points; the last digest is over the remaining elements of a pair, and shows faults, not lies.

**Guarantee.** Against parties that follow the protocol, Bob learns which of his ids each Alice has,
and how many she has. An Alice learns which of her ids Bob has, how many he has, and which of the
shared ones all others have too: not which of the others lacks one, nor how many ids they have.
Nobody learns anything of an id that is not its own. Alices who pool what they have learn no more
than that of each.

**Assumes.** What ``taciturn.jobs.align.pairwise`` assumes, of each pair. A Bob who deviates can
tell an Alice any part of what the two share for what all share; the greetings of a training compare
the ids themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from taciturn.arrays import BoolArray, IndexArray
from taciturn.data.ids import Normalisation, RowIds
from taciturn.data.spellings import Spelling, describe_spellings, further, spellings
from taciturn.errors import RemoteProtocolError, RowOrderError
from taciturn.files import canonical_json
from taciturn.jobs.align.messages import AlignmentEnd, CommonToAll
from taciturn.jobs.align.pairwise import (
    PARTIES,
    Alignment,
    Match,
    RowArray,
    Spread,
    align,
    compare_lists,
    in_order_of_ids,
    match_ids,
    report_progress,
)
from taciturn.jobs.align.result import SharedIds
from taciturn.memmap import MEMORY, Scratch
from taciturn.protocol.messages import PublicBytes, Role
from taciturn.protocol.steps import ONLY, Program, gather, receive, send
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint

Accept: TypeAlias = Callable[[str, Match], None]
"""Looks at what Bob has in common with an Alice; raises where that will not do."""


def accept_any(name: str, match: Match) -> None:
    """Any number will do."""


def terms_among(normalisation: Normalisation, parties: Mapping[str, str]) -> str:
    """Terms that all sides must share: how ids are read, and who takes part.

    ``parties`` has the fingerprint of each Alice's key by her name, in their order.
    """
    named = [list(pair) for pair in parties.items()]
    return canonical_json({**asdict(normalisation), PARTIES: named})


@dataclass(frozen=True, slots=True)
class Matches:
    """Bob's matches with each Alice; ``holders`` counts the Alices who have each row."""

    pairs: Mapping[str, Match]
    holders: NDArray[np.uint8] = field(repr=False)

    @classmethod
    def from_pairs(cls, ids: int, pairs: Mapping[str, Match]) -> Matches:
        """The matches of a Bob with ``ids`` ids."""
        holders = np.zeros(ids, np.uint8)
        for match in pairs.values():
            holders[match.rows] += 1
        return cls(pairs, holders)

    @property
    def everywhere(self) -> BoolArray:
        """Mask of Bob's rows that all Alices have."""
        everywhere: BoolArray = self.holders == len(self.pairs)
        return everywhere

    @property
    def common(self) -> int:
        """Number of ids that all have."""
        return int(np.count_nonzero(self.everywhere))

    def lacking(self, name: str) -> int:
        """Number of ids that this Alice lacks, and Bob and all others have."""
        other_count = len(self.pairs) - 1
        holders = self.holders[self.pairs[name].rows]
        return int(
            np.count_nonzero(self.holders == other_count) - np.count_nonzero(holders == other_count)
        )


def match_each(
    names: Sequence[str],
    ids: RowIds,
    terms: str,
    entropy: Entropy,
    spread: Spread = map,
    scratch: Scratch = MEMORY,
    accept: Accept = accept_any,
) -> Program[Matches]:
    """Bob's alignments with all Alices, at once.

    One after the other, the last of them would wait for all before her. At once, each of them takes
    up to eight bytes more for each of his ids: her order, and the rows that the two share. Elements
    are in the scratch room.

    ``accept`` is called with each pair as soon as it has aligned: where it raises, the others stop.
    Errors name the Alice.
    """
    progress = _Progress(len(names))

    def matched(name: str) -> Program[Match]:
        stream, report = entropy.fork(f"with {name}"), partial(progress.report, name)
        match = yield from match_ids("bob", ids, terms, stream, spread, scratch, report)
        accept(name, match)
        return match

    return Matches.from_pairs(
        len(ids), (yield from gather({name: matched(name) for name in names}))
    )


class _Progress:
    def __init__(self, pairs: int) -> None:
        self._pairs = pairs
        self._reached: dict[str, tuple[int, int]] = {}

    def report(self, name: str, done: int, total: int) -> Program[None]:
        self._reached[name] = done, total
        # Before all have begun the total is not known.
        if len(self._reached) == self._pairs:
            counts = np.array([*self._reached.values()]).sum(axis=0).tolist()
            yield from report_progress(*counts)


def tell_common(ids: RowIds, matches: Matches) -> Program[dict[str, Alignment]]:
    """Send each Alice which of the ids that she shares with Bob all have.

    Returns his alignment with each, by her name: the same rows, in the order that all have.
    """
    everywhere = matches.everywhere
    digests = yield from gather(
        {name: _tell(match, everywhere) for name, match in matches.pairs.items()}
    )
    rows = in_order_of_ids(ids, np.flatnonzero(everywhere))
    return {
        name: Alignment(rows, match.peer_ids, digests[name])
        for name, match in matches.pairs.items()
    }


def _tell(match: Match, everywhere: BoolArray) -> Program[str]:
    shared = everywhere[match.rows]
    yield from send(CommonToAll(PublicBytes(np.packbits(shared).tobytes())))
    _, digest = yield from _narrow(match, shared)
    return digest


def hear_common(ids: RowIds, match: Match) -> Program[Alignment]:
    """An Alice's part once she has aligned with Bob: which of the shared ids all have."""
    message = yield from receive(CommonToAll)
    rows, digest = yield from _narrow(match, _bits_of(message, len(match.rows)))
    return Alignment(in_order_of_ids(ids, rows), match.peer_ids, digest)


def _bits_of(message: CommonToAll, shared: int) -> BoolArray:
    """Bitmap of shared ids, zero-padded to a whole byte."""
    octets = np.frombuffer(message.bits, np.uint8)
    if len(octets) != -(-shared // 8) or np.unpackbits(octets)[shared:].any():
        raise RemoteProtocolError(
            f"the peer's CommonToAll is not about the {shared} ids that both have"
        )
    return np.unpackbits(octets, count=shared).astype(np.bool_)


def _narrow(match: Match, mask: BoolArray) -> Program[tuple[RowArray, str]]:
    rows, digest = match.narrowed(mask)
    yield from compare_lists(AlignmentEnd(len(rows), PublicBytes(digest)))
    return rows, digest.hex()


def fraction_of_shortest(common: int, *lists: int) -> float:
    """Common fraction of the shortest list: of two lists, the same on both sides."""
    return common / min(lists)


@dataclass(frozen=True, slots=True)
class MatchRequirement:
    """Requirement on the number of common ids.

    ``ids`` are this side's, normalised; ``least`` is the fraction of the shorter list below which
    an alignment stops, and None lets any number be common, also none.
    """

    ids: RowIds = field(repr=False)
    normalisation: Normalisation
    least: float | None
    where: str = ""

    def spellings(self, common: int) -> tuple[Spelling, ...]:
        """Further normalisation steps that would change ids; empty if all ids match."""
        return () if common == len(self.ids) else spellings(self.ids, self.normalisation)

    def require_pair(self, match: Alignment | Match) -> None:
        """Raise where two sides have too few ids in common."""
        common, own_count = len(match.rows), len(self.ids)
        if self.least is None:
            return
        if not common:
            raise self._nothing(match)
        fraction = fraction_of_shortest(common, own_count, match.peer_ids)
        if fraction >= self.least:
            return
        tried = self.spellings(common)
        better = further(self.normalisation, tried)
        if better == self.normalisation:
            way_out = "name the same kind of id on both sides; or "
        else:
            way_out = (
                f"{describe_spellings(tried, own_count)}: try {{normalise_ids}} on both sides; or "
            )
        raise RowOrderError(
            f"only {common:,} ids are common, {fraction:.1%} of the shorter list, and "
            f"min-overlap is {self.least:g}: {own_count:,} here, {match.peer_ids:,} there",
            where=self.where,
            hint=Hint(
                way_out + "if so few are right, write {min_overlap} under [data] on both sides",
                normalise_ids=str(better),
                min_overlap=math.floor(fraction * 1000) / 1000,
            ),
        )

    def _nothing(self, match: Alignment | Match) -> RowOrderError:
        own_count, tried = len(self.ids), self.spellings(0)
        return RowOrderError(
            f"the two sides have no id in common: {own_count} here, {match.peer_ids} there",
            where=self.where,
            hint=Hint(
                "name the same kind of id on both sides; a different spelling may need "
                "{normalise_ids}" + (f" ({describe_spellings(tried, own_count)})" if tried else "")
            ),
        )

    def require_pair_with(self, name: str, match: Match) -> None:
        """Apply ``require_pair`` to Bob and one of several Alices, whom the error names."""
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
    """Alignment of one side with all its peers.

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
        """Number of ids of the peer that has the fewest."""
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
        """This side's program."""
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
        # Before any message: a party that receives a list writes it.
        self.requirement.require_all(matches)
        ends = yield from tell_common(ids, matches)
        shared = tuple(_shared(name, match) for name, match in matches.pairs.items())
        return Intersection(ends, shared)


def _shared(name: str, match: Alignment | Match) -> SharedIds:
    return SharedIds(name, match.peer_ids, len(match.rows))
