"""Spellings of ids: what further normalisation would do to the ids of a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import polars as pl

from taciturn.data.ids import CHANGEABLE, STEPS, Normalisation, RowIds
from taciturn.errors import counted

# The ids among which a step tells two ways of spelling apart.
_COMPARABLE = {"case": r"\p{L}", "zeros": r"^[0-9]+$"}


@dataclass(frozen=True, slots=True)
class Spelling:
    """Effect of one more normalisation step on the ids of a table.

    ``merges`` counts the ids that would then repeat another one; ``mixed`` says whether the table
    itself spells ids in more than one way.
    """

    normalise_ids: str
    changes: int
    merges: int
    mixed: bool


def spellings(ids: RowIds, chosen: Normalisation) -> tuple[Spelling, ...]:
    """Further normalisation steps that would change ids, with their effects."""
    others = (step for step in STEPS if not getattr(chosen, step))
    tried = (_spelling(ids.series, step, replace(chosen, **{step: True})) for step in others)
    return tuple(spelling for spelling in tried if spelling.changes)


def further(chosen: Normalisation, tried: Iterable[Spelling]) -> Normalisation:
    """The chosen normalisation, extended by steps that would change ids and merge none."""
    usable = {spelling.normalise_ids: True for spelling in tried if not spelling.merges}
    return replace(chosen, **usable)


def describe_spellings(tried: Iterable[Spelling], ids: int) -> str:
    """Description of what each normalisation step would do to a table.

    >>> describe_spellings((Spelling("case", 3, 0, True), Spelling("zeros", 1, 1, True)), 5)
    'case would change 3 of 5 ids here, zeros 1 (and make 1 the same as another)'
    """
    first = "{} would change {:,} of " + counted(ids, "id") + " here{}"
    texts = [first] + ["{} {:,}{}"] * len(STEPS)
    return ", ".join(
        text.format(
            spelling.normalise_ids,
            spelling.changes,
            f" (and make {spelling.merges:,} the same as another)" if spelling.merges else "",
        )
        for text, spelling in zip(texts, tried, strict=False)
    )


def _spelling(series: pl.Series, step: str, tried: Normalisation) -> Spelling:
    changeable = series.str.contains(CHANGEABLE[step])
    before = series.filter(changeable)
    after = tried.series(before)
    changes = int((after != before).sum())
    if not changes:
        return Spelling(step, 0, 0, mixed=False)
    distinct = pl.concat([series.filter(~changeable), after]).n_unique()
    return Spelling(step, changes, len(series) - distinct, _mixed(series, step, changes))


def _mixed(series: pl.Series, step: str, changes: int) -> bool:
    if step not in _COMPARABLE:
        # A blank at an end and a letter in an unusual form are strange wherever they stand.
        return True
    comparable = series.filter(series.str.contains(_COMPARABLE[step]))
    if step == "zeros":
        # Numbers filled up to one width are spelled in one way.
        return comparable.str.len_bytes().n_unique() > 1
    return changes < len(comparable)
