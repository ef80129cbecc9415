"""``TableSettings``: how a party's own table is read and prepared.

A simulation takes them for the whole table, a party's file in ``[data]``. Some may be said column
by column: ``transform.income = "log"`` in a file, ``--transform income=log`` as an option,
``transform={"income": "log"}`` in Python. A value alone, or the key ``*``, is for every column that
is not named.
"""

from __future__ import annotations

import codecs
import difflib
import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field

from taciturn.settings.checked import Checked, Panel, Positive, PositiveInt, Scope, setting

Impute = Literal["median", "mean", "bin", "none"]
Scale = Literal["standard", "none"]
ColumnType = Literal["number", "category", "date", "text"]
TransformChoice = Literal["none", "log", "rank", "yeo-johnson"]
DatePart = Literal["year", "month", "weekday"]
Decimal = Literal[".", ","]
Duplicates = Literal["error", "first", "last"]

EVERY = "*"
# More than a column of numbers is ever cut into; each is a column of the prepared table.
MOST_BINS = 10_000
# What may be said column by column.
BY_COLUMN = ("type", "transform", "bins", "winsorise", "decimal", "date_format")

_table = partial(setting, scope=Scope.DATA, panel=Panel.DATA)


def _texts(value: object) -> object:
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(","))
    if isinstance(value, list | tuple):
        return tuple(str(word) if isinstance(word, int) else word for word in value)
    # A label that is a number need not be written as text.
    return (str(value),) if isinstance(value, int) else value


def _by_column(value: object, *, read: Callable[[object], object]) -> dict[str, object]:
    if isinstance(value, Mapping):
        return {str(column): read(choice) for column, choice in value.items()}
    if not isinstance(value, str):
        return {EVERY: read(value)}
    choices = {}
    for part in value.split(","):
        column, _, choice = part.rpartition("=")
        choices[column.strip() or EVERY] = read(choice.strip())
    return choices


def _one_of(value: object, *, known: tuple[str, ...]) -> object:
    if value not in known:
        near = difflib.get_close_matches(str(value), known, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise ValueError(f"there is no {value!r}; {meant}known: {', '.join(known)}")
    return value


def _share(value: object) -> object:
    if value == "none":
        return 0.0
    number = _number(value, float)
    if not 0 <= number < 0.5:
        raise ValueError(f"must be a share of the rows from 0 to below 0.5, or none, not {value!r}")
    return number


def _count(value: object) -> object:
    number = _number(value, int)
    if number < 0 or number == 1:
        raise ValueError(f"must be 2 or more intervals, or 0 for none, not {value!r}")
    if number > MOST_BINS:
        raise ValueError(f"must be {MOST_BINS:,} intervals at most, not {value!r}")
    return number


def _bins(value: object) -> dict[str, object]:
    """Bins by column; in an option, several numbers after a column's name are its edges."""
    if isinstance(value, str):
        value = _listed(value)
    choices = _by_column(value, read=_intervals)
    if isinstance(choices.get(EVERY), tuple):
        raise ValueError(
            "edges are those of one column, which is to be named; for all columns it is a number "
            "of intervals"
        )
    return choices


def _listed(text: str) -> dict[str, object]:
    """``5,age=25,35`` as ``{"*": "5", "age": ["25", "35"]}``; a comma alone ends a list of one."""
    choices: dict[str, object] = {}
    column = EVERY
    for part in text.split(","):
        name, sign, word = (piece.strip() for piece in part.rpartition("="))
        if sign or not choices:
            column = name or EVERY
            choices[column] = word
            continue
        before = choices[column]
        words = before if isinstance(before, list) else [before]
        choices[column] = [*words, word] if word else words
    return choices


def _intervals(value: object) -> object:
    return _edges(value) if isinstance(value, list | tuple) else _count(value)


def _edges(values: list[object] | tuple[object, ...]) -> tuple[float, ...]:
    edges = tuple(float(_number(value, float)) for value in values)
    for edge in edges:
        if not math.isfinite(edge):
            raise ValueError(f"an edge is a finite number, not {edge}")
    for low, high in pairwise(edges):
        if not low < high:
            raise ValueError(f"edges must increase, but {high:g} follows {low:g}")
    if not edges:
        raise ValueError("a list of edges has one or more")
    return edges


def _number(value: object, kind: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - int or float
    try:
        if isinstance(value, bool) or (kind is int and isinstance(value, float)):
            raise ValueError
        return kind(value)
    except (TypeError, ValueError):
        raise ValueError(f"must be a number, not {value!r}") from None


def _formats(value: object) -> tuple[str, ...]:
    """One date format or several, of which the first that fits a value is used."""
    formats = tuple(value) if isinstance(value, list | tuple) else (value,)
    for form in formats or (value,):
        if not isinstance(form, str) or ("%" not in form and form != "iso"):
            raise ValueError(f"must be a date format, such as %d.%m.%Y, or iso, not {form!r}")
    return formats


def _date_formats(value: object) -> dict[str, object]:
    """Date formats by column; in an option, ``|`` stands between several, which may have commas."""
    if isinstance(value, str):
        parts = [part.rpartition("=") for part in re.split(r",(?=[^,=]+=)", value)]
        value = {column.strip() or EVERY: form.split("|") for column, _, form in parts}
    return _by_column(value, read=_formats)


def _decimals(value: object) -> dict[str, object]:
    """Decimal marks by column; in an option a mark may itself be the comma."""
    if isinstance(value, str) and value not in get_args(Decimal):
        parts = [part.rpartition("=") for part in re.split(r"(?<=[.,]),", value)]
        value = {column.strip() or EVERY: mark for column, _, mark in parts}
    elif not isinstance(value, Mapping):
        value = {EVERY: value}
    return _by_column(value, read=partial(_one_of, known=get_args(Decimal)))


def _separator(value: object) -> object:
    value = {"tab": "\t", "\\t": "\t"}.get(str(value), value)
    if not isinstance(value, str) or len(value) != 1 or not value.isascii() or value in '"\r\n':
        raise ValueError(f"must be one character, or tab, not {value!r}")
    return value


def _encoding(value: object) -> object:
    try:
        if b"a" not in "a".encode(str(value)):
            raise LookupError
        return codecs.lookup(str(value)).name
    except LookupError:
        raise ValueError(
            f"there is no encoding {value!r}; known are utf-8, latin-1, cp1252, utf-16 and others"
        ) from None


Names = Annotated[tuple[str, ...], BeforeValidator(_texts)]
Shares = Annotated[
    float | Literal["none"] | dict[str, float],
    BeforeValidator(partial(_by_column, read=_share)),
]
Bins = Annotated[int | dict[str, int | tuple[float, ...]], BeforeValidator(_bins)]
Types = Annotated[
    ColumnType | dict[str, ColumnType],
    BeforeValidator(partial(_by_column, read=partial(_one_of, known=get_args(ColumnType)))),
]
Transforms = Annotated[
    TransformChoice | dict[str, TransformChoice],
    BeforeValidator(partial(_by_column, read=partial(_one_of, known=get_args(TransformChoice)))),
]
Formats = Annotated[
    str | tuple[str, ...] | dict[str, str | tuple[str, ...]], BeforeValidator(_date_formats)
]
Decimals = Annotated[Decimal | dict[str, Decimal], BeforeValidator(_decimals)]


class TableSettings(Checked):
    """Reading and preparation settings of a table. ``None`` means the default."""

    positive: Names | None = _table(example="yes", owner="bob")
    """Values of the label column that mean 1; all others mean 0.

    With more than two values, set `negative` too.
    """
    negative: Names | None = _table(example="no", owner="bob")
    """Values of the label column that mean 0; any other is refused."""
    exposure: str | None = _table(example="years", owner="bob")
    """`poisson`, `gamma`: name of the exposure column; its logarithm is added to the linear
    predictor.

    Time or amount for which a row was observed, above 0; no feature ([glm.md](glm.md)).
    """
    weights: str | None = _table(example="claims", owner="bob")
    """Other families than `binomial`: name of the column of row weights.

    0 or more; no feature ([glm.md](glm.md)).
    """
    keep: Names | None = _table(example=["age", "income"])
    """Columns to use (the id and label columns are always kept)."""
    drop: Names | None = _table(example=["note"])
    """Columns to leave out."""
    type: Types | None = _table(example={"zip": "category"})
    """Column types, by column, where the detected one is wrong: `number`, `category`, `date` or
    `text` (ignored).
    """
    impute: Impute | None = _table(example="median")
    """Imputation of missing numbers: `median`, `mean`, `bin` (a separate bin) or `none` (an error)
    (default: median).

    `bin` applies to binned columns; the others use the median ([data.md](data.md#bins)).
    """
    missing_indicator: bool | None = _table(example=True, both_ways=True)
    """Add a missing-value indicator for each column with missing values in the training rows
    (default: on).
    """
    winsorise: Shares | None = _table(example=0.005)
    """Clip this fraction of values at each tail; `none` to disable (default: 0.005).

    For all columns or by column; fitted on the training rows, [data.md](data.md#outliers).
    """
    transform: Transforms | None = _table(example={"income": "log"})
    """Transform of numeric columns, for all or by column: `none`, `log`, `rank` or `yeo-johnson`
    (default: none).

    [What each does](data.md#transforms).
    """
    bins: Bins | None = _table(example={"age": 5})
    """Number of bins per numeric column, or bin edges, for all or by column; bins are one-hot
    encoded (default: 0).

    A number: quantiles of the training rows; 0 for no bins. Edges of one column: `bins.age = [25,
    35, 50]` ([data.md](data.md#bins)).
    """
    scale: Scale | None = _table(example="standard")
    """Scaling of numeric columns: `standard` (standardise) or `none` (default: standard).

    Standardised: mean 0 and standard deviation 1 on this side's training rows.
    """
    clip: Positive | None = _table(example=10.0)
    """Clip prepared values to this magnitude."""
    max_levels: PositiveInt | None = _table(example=100)
    """Maximum number of categories per text column; rarer ones are merged into one (default: 100).

    Each category but the first becomes a column; merged ones are called `(other)`.
    """
    min_frequency: Annotated[float, Field(ge=0, lt=1)] | None = _table(example=0.005)
    """Minimum share of training rows per category; rarer ones are merged into `(other)` (default:
    0.005).

    So is a category that first appears in a prediction.
    """
    normalise_categories: bool | None = _table(example=True, both_ways=True)
    """Compare categories without case and surrounding blanks (default: on)."""
    date_format: Formats | None = _table(example={"opened": "%d.%m.%Y"})
    """Date format, or a list of them, for all or by column, such as `%d.%m.%Y` (default:
    auto-detected).

    `iso` is ISO 8601; of several the first that fits a value is used ([data.md](data.md#dates)).
    """
    date_parts: Annotated[tuple[DatePart, ...], BeforeValidator(_texts)] | None = _table(
        example=["month"]
    )
    """Parts of each date to add as columns: `year`, `month` or `weekday`.

    The date itself becomes the number of days since 1970-01-01.
    """
    separator: Annotated[str, BeforeValidator(_separator)] | None = _table(example=";")
    """Field separator of a CSV file: one character, or `tab` (default: auto-detected)."""
    decimal: Decimals | None = _table(example=",")
    """Decimal mark of numbers, for all or by column: `.` or `,` (default: auto-detected).

    It decides where `1,234` may be either ([data.md](data.md#amounts)).
    """
    encoding: Annotated[str, BeforeValidator(_encoding)] | None = _table(example="latin-1")
    """Text encoding of a CSV file, such as `latin-1` (default: UTF-8)."""
    na_values: Names | None = _table(example=["NA", "unknown"])
    """Texts that mean a missing value, besides an empty field.

    They replace the default list of CSV files and databases: NA, N/A, NaN, null and ?.
    """
    duplicates: Duplicates | None = _table(example="first")
    """Rows that repeat an id: `error`, or keep the `first` or the `last` row of each id (default:
    error).

    In training, alignment and prediction; ids that are the same once normalised count as repeated.
    """
