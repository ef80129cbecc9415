"""Types of text columns: numbers or booleans where all values are, and text where one is not."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from taciturn.data.lazy_table import LazyTable

_TRUTH = ["true", "false"]


def parsed(table: LazyTable, text: Sequence[str], missing: Sequence[str]) -> LazyTable:
    """A table of text with the types that its values have.

    Columns in ``text`` stay text. Blanks around values are stripped; words in ``missing`` are null.
    """

    def column(words: pl.Series) -> pl.Series:
        words = _stripped(words, missing)
        return words if words.name in text else typed(words)

    return table.map(column)


def _stripped(words: pl.Series, missing: Sequence[str]) -> pl.Series:
    if not words.str.contains(r"^\s|\s$").any():
        return words
    text = words.str.strip_chars()
    return text.set(text.is_in([*missing]), None)


def typed(text: pl.Series) -> pl.Series:
    """A column of text without surrounding blanks, as numbers or booleans where all values are.

    Text stays text where a number would lose something: leading zeros, or a point that may stand
    between thousands.

    >>> [str(typed(pl.Series(["1", word])).dtype) for word in ("2", "2.5", "02", "2.500", "x")]
    ['Int64', 'Float64', 'String', 'String', 'String']
    """
    present = text.drop_nulls()
    # The first is looked at before the rest: most columns of text are no numbers.
    first = present.head(1)
    if first.is_in(_TRUTH).any() and present.is_in(_TRUTH).all():
        return text == _TRUTH[0]
    if first.cast(pl.Float64, strict=False).count():
        for kind, loses in ((pl.Int64, are_codes), (pl.Float64, may_be_thousands)):
            numbers = text.cast(kind, strict=False)
            if numbers.null_count() == text.null_count():
                return text if loses(present) else numbers
    return text


def are_codes(text: pl.Series) -> bool:
    """Whether a text column has digits alone, of which some begin with a needless 0."""
    return text.str.contains(r"^[-+]?0[0-9]+$").any() and text.str.contains(r"^[-+]?[0-9]+$").all()


def may_be_thousands(text: pl.Series) -> bool:
    """Whether every point of a column of numbers may stand between thousands, and there is one."""
    pattern = r"^[-+]?[1-9]\d{0,2}(?:\.\d{3})?$|^0$"
    # One other value tells, and most columns have it among the first.
    if not text.head(100).str.contains(pattern).all() or not text.str.contains(pattern).all():
        return False
    return text.str.contains(".", literal=True).any()
