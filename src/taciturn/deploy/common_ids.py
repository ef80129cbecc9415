"""Are enough ids common? Who has too few of them, and what may keep more from matching.

With several Alices the ids of each pair are looked at as those of two sides are. Whether enough are
common to all, only Bob can say: an Alice does not know how long the others' lists are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from taciturn.data.ids import RowIds
from taciturn.data.normalisation import Normalisation, Spelling, further, in_words, spellings
from taciturn.errors import RowOrderError
from taciturn.faces import Hint
from taciturn.protocol.align import Alignment, Match
from taciturn.protocol.align_several import Matches


def fraction_of_shortest(common: int, *lists: int) -> float:
    """How much of the shortest list is common: of two lists, the same number on both sides."""
    return common / min(lists)


def require_common(
    match: Alignment | Match, own: int, where: str, tried: Callable[[], tuple[Spelling, ...]]
) -> None:
    """Insists that the two sides have an id in common.

    Args:
        match: What they came to.
        own: How many ids this side has.
        where: Where they stand.
        tried: Says what else could be done to this side's ids, where that matters.

    Raises:
        RowOrderError: They have none.
    """
    if not len(match.rows):
        further_ways = tried()
        raise RowOrderError(
            f"the two sides have no id in common: {own} here, {match.peer_ids} there",
            where=where,
            hint=Hint(
                "name the same kind of id on both sides; a different spelling may need "
                "{normalise}" + (f" ({in_words(further_ways, own)})" if further_ways else "")
            ),
        )


@dataclass(frozen=True, slots=True)
class Enough:
    """How many ids must be common.

    Args:
        ids: This side's ids, normalised.
        normalisation: What was done to them.
        least: The fraction of the shorter list below which an alignment stops.
        where: Where the ids stand, for messages.
    """

    ids: RowIds = field(repr=False)
    normalisation: Normalisation
    least: float
    where: str

    def spellings(self, common: int) -> tuple[Spelling, ...]:
        """What else might make ids of this table the peer's; nothing where all are common."""
        return () if common == len(self.ids) else spellings(self.ids, self.normalisation)

    def require_pair(self, match: Alignment | Match) -> None:
        """Insists that two sides have enough in common.

        Raises:
            RowOrderError: They have not; says what may be the reason, as far as this table shows.
        """
        common, own = len(match.rows), len(self.ids)
        require_common(match, own, self.where, lambda: self.spellings(common))
        fraction = fraction_of_shortest(common, own, match.peer_ids)
        if fraction >= self.least:
            return
        tried = self.spellings(common)
        better = further(self.normalisation, tried)
        if better == self.normalisation:
            way_out = "name the same kind of id on both sides; or "
        else:
            way_out = f"{in_words(tried, own)}: try {{normalise}} on both sides; or "
        raise RowOrderError(
            f"only {common:,} ids are common, {fraction:.1%} of the shorter list, and "
            f"minimum-match is {self.least:g}: {own:,} here, {match.peer_ids:,} there",
            where=self.where,
            hint=Hint(
                way_out + "if so few are right, write {minimum_match} under [data] on both sides",
                normalise=str(better),
                minimum_match=math.floor(fraction * 1000) / 1000,
            ),
        )

    def require_pair_with(self, name: str, match: Match) -> None:
        """Insists on the same of Bob and one of several Alices.

        Raises:
            RowOrderError: They have not; says who she is.
        """
        try:
            self.require_pair(match)
        except RowOrderError as problem:
            raise problem.by(name) from None

    def require_all(self, matches: Matches) -> None:
        """Insists that Bob and all Alices have enough in common.

        Raises:
            RowOrderError: They have not; says who lacks most of what all others have.
        """
        common, lists = matches.common, [match.peer_ids for match in matches.pairs.values()]
        fraction = fraction_of_shortest(common, len(self.ids), *lists)
        if common and fraction >= self.least:
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
            f"and minimum-match is {self.least:g}{blame}",
            where=self.where,
            hint=Hint(
                "if so few are right, write {minimum_match} under [data] here",
                minimum_match=math.floor(fraction * 1000) / 1000,
            ),
        )
