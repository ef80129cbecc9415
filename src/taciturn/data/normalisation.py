"""When two spellings of an id mean the same row: an explicit choice, none by default.

``nfkc`` (Unicode's compatibility form), then ``case`` (folded), then ``trim`` (no blanks at the
ends), then ``zeros`` (numbers without leading zeros), as far as they are chosen. Two parties must
choose the same. Two ids of one table that become one are refused: nobody could say which row is
meant. Which choice would change how many ids of a table, ``spellings`` says.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

import polars as pl

from taciturn.data.ids import RowIds
from taciturn.errors import ConfigError, RowIdError, counted, nearest
from taciturn.files import canonical_json

NONE = "none"
STEPS = ("trim", "case", "nfkc", "zeros")
_BEYOND_ASCII = r"[^\x00-\x7F]"
# Only ids with such a character can be changed by a step: the rest need not be looked at.
_CHANGEABLE = {
    "trim": r"^[\s\x1c-\x1f]|[\s\x1c-\x1f]$",
    # Also numerals and signs of other scripts have capitals: Ⅷ, Ⓐ.
    "case": f"[A-Z]|{_BEYOND_ASCII}",
    "nfkc": _BEYOND_ASCII,
    "zeros": r"^0[0-9]+$",
}
# The ids among which a step tells two ways of spelling apart.
_COMPARABLE = {"case": r"\p{L}", "zeros": r"^[0-9]+$"}
# Ids that are worked on at a time: bounds the memory of many millions.
_BLOCK = 1 << 16
# What Python calls blanks, within ASCII.
_BLANKS = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"


@dataclass(frozen=True, slots=True)
class Normalisation:
    """Normalisation of ids before they are compared."""

    trim: bool = False
    case: bool = False
    nfkc: bool = False
    zeros: bool = False

    @classmethod
    def of(cls, text: str) -> Normalisation:
        """Parse names separated by commas, or none."""
        names = [name.strip() for name in text.split(",")]
        if names == [NONE]:
            return cls()
        for name in names:
            if name == NONE:
                raise ConfigError(
                    "none cannot be combined with other names",
                    setting="normalise_ids",
                    hint="leave the other names out",
                )
            if name not in STEPS:
                raise ConfigError(
                    f"ids cannot be normalised by {name!r}",
                    setting="normalise_ids",
                    hint=nearest(name, (NONE, *STEPS)),
                )
        return cls(**dict.fromkeys(names, True))

    def __str__(self) -> str:
        return ",".join(name for name in STEPS if getattr(self, name)) or NONE

    def canonical(self) -> str:
        """Canonical JSON, which two parties compare."""
        return canonical_json(asdict(self))

    def one(self, text: str) -> str:
        """One id, normalised."""
        if self.nfkc:
            text = unicodedata.normalize("NFKC", text)
        if self.case:
            text = text.casefold()
            if self.nfkc:
                # Folding can undo the form.
                text = unicodedata.normalize("NFKC", text)
        if self.trim:
            text = text.strip()
        # Of a number alone: in a word such as 0x1f the zero is no filling.
        if self.zeros and text.isascii() and text.isdigit():
            text = text.lstrip("0") or "0"
        return text

    def apply(self, ids: RowIds) -> RowIds:
        """Ids of a table, normalised, in their order."""
        if self == Normalisation():
            return ids
        normalised = self.series(ids.series)
        self._refuse_collisions(ids, normalised)
        return RowIds(normalised)

    def series(self, texts: pl.Series) -> pl.Series:
        """Many texts, normalised as ``one`` does."""
        blocks = [self._block(block) for block in texts.to_frame().iter_slices(_BLOCK)]
        return pl.concat(blocks) if blocks else texts

    def _block(self, frame: pl.DataFrame) -> pl.Series:
        texts = frame.to_series()
        chosen = [_CHANGEABLE[step] for step in STEPS if getattr(self, step)]
        if not texts.str.contains("|".join([_BEYOND_ASCII, *chosen])).any():
            return texts
        unusual = texts.str.contains(_BEYOND_ASCII).arg_true()
        # What lies beyond ASCII is a matter of Unicode's tables: those of Python, on both sides.
        others = [self.one(text) for text in texts.gather(unusual).to_list()]
        return self._ascii(texts).scatter(unusual, pl.Series(others, dtype=pl.String))

    def _ascii(self, texts: pl.Series) -> pl.Series:
        """``one`` for each text of ASCII alone; the result for others is undefined."""
        if self.case:
            texts = texts.str.to_lowercase()
        if self.trim:
            texts = texts.str.strip_chars(_BLANKS)
        return texts.str.replace(r"^0+([0-9]+)$", "$1") if self.zeros else texts

    def _refuse_collisions(self, ids: RowIds, normalised: pl.Series) -> None:
        if normalised.n_unique() == len(normalised):
            return
        repeated = ~normalised.is_first_distinct()
        again, others = int(repeated.arg_max() or 0), int(repeated.sum()) - 1
        first = int((normalised == normalised[again]).arg_max() or 0)
        more = f", and so are {others:,} more with an earlier one" if others else ""
        raise RowIdError(
            f"the ids {ids[first]!r} and {ids[again]!r} are the same once normalised "
            f"({self}){more}",
            where=f"rows {first + 1} and {again + 1}",
            hint="keep one of the two rows, or normalise less",
        )


AS_THEY_ARE = Normalisation()


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
    changeable = series.str.contains(_CHANGEABLE[step])
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
