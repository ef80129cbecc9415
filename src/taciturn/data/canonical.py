"""Canonical form: one dataset has one digest and one row order, whoever delivered it.

The same public table travels as UCI's, Kaggle's or OpenML's file: other row order, other marks for
missing values, other names of the label. Its canonical form has

- the columns in one order, the label last, as 0 and 1;
- numbers as float64, rounded to ``decimals`` places (parsers that do not round correctly differ in
  the last bit), minus zero as zero, missing as null;
- text without surrounding blanks, ``?`` and the empty text as null;
- the rows sorted by all columns in that order, nulls last. Rows that compare equal are equal.

The digest is SHA-256 over, for each column, its name in UTF-8 and a NUL byte, then the
little-endian float64 (NaN where missing), or each text in UTF-8 followed by a NUL byte (nothing
before it where missing), or for the label one byte per row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from taciturn.data.readings import numbers
from taciturn.errors import ColumnError, LabelValueError, nearest


@dataclass(frozen=True, slots=True)
class Layout:
    """What a dataset's columns are.

    ``label_aliases`` are other names that sources give the label. ``classes`` are the texts of
    class 0 and class 1; None where the label is a number.

    >>> layout = Layout(numeric=frozenset({"a"}), features=("a",), label="y")
    >>> canonical(pl.DataFrame({"y": [1, 0], "a": [2, 1]}), layout).rows()
    [(1.0, 0), (2.0, 1)]
    """

    numeric: frozenset[str]
    features: tuple[str, ...]
    label: str
    label_aliases: tuple[str, ...] = ()
    classes: tuple[str, str] | None = None
    decimals: int = 9


def canonical(frame: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """The frame in canonical form; columns that the layout does not name are dropped."""
    columns = [
        _numeric(frame, name, layout.decimals) if name in layout.numeric else _text(frame, name)
        for name in layout.features
    ]
    table = pl.DataFrame([*columns, _label(frame, layout)])
    return table.sort(table.columns, nulls_last=True)


def digest(table: pl.DataFrame) -> str:
    """The digest of a frame in canonical form, as hexadecimal text."""
    sha = hashlib.sha256()
    for series in table:
        sha.update(series.name.encode() + b"\0")
        if series.dtype == pl.Float64:
            sha.update(series.fill_null(np.nan).to_numpy().astype("<f8", copy=False).data)
        elif series.dtype == pl.Int8:
            sha.update(series.to_numpy().data)
        else:
            sha.update(series.fill_null("").str.join("\0").item().encode() + b"\0")
    return sha.hexdigest()


def written(table: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """A canonical table as a file holds it: with the label's own classes."""
    if layout.classes is None:
        return table
    no, yes = layout.classes
    named = pl.when(pl.col(layout.label) == 1).then(pl.lit(yes)).otherwise(pl.lit(no))
    return table.with_columns(named.alias(layout.label))


def _column(frame: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    for name in names:
        if name in frame.columns:
            return frame[name].alias(names[0])
    raise ColumnError(f"there is no column {names[0]!r}", hint=nearest(names[0], frame.columns))


def _numeric(frame: pl.DataFrame, name: str, decimals: int) -> pl.Series:
    values = numbers(_column(frame, [name]))
    # Division by a power of ten rounds correctly, so that the decimal's own float64 comes out.
    rounded = np.round(values, decimals) + 0.0
    return pl.Series(name, rounded, nan_to_null=True)


def _text(frame: pl.DataFrame, name: str) -> pl.Series:
    text = _column(frame, [name]).cast(pl.String).str.strip_chars()
    return text.set(text.is_in(["?", ""]), None)


def _label(frame: pl.DataFrame, layout: Layout) -> pl.Series:
    series = _column(frame, [layout.label, *layout.label_aliases])
    if layout.classes is None:
        values = numbers(series)
        positive, negative = values == 1, values == 0
    else:
        text = series.cast(pl.String).str.strip_chars()
        negative, positive = ((text == name).fill_null(False).to_numpy() for name in layout.classes)
    unknown = int((~(positive | negative)).sum())
    if unknown:
        raise LabelValueError(
            f"{unknown} of {len(series)} labels are of neither class",
            where=f"column {series.name!r}",
            hint="use the file as it was published",
        )
    return pl.Series(layout.label, positive.astype(np.int8))
