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

from taciturn.settings.checked import Checked, Panel, Positive, PositiveInt, Scope, Setting

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

_table = partial(Setting, scope=Scope.DATA, panel=Panel.DATA)


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

    positive: Annotated[
        Names | None,
        _table(
            "Values of the label column that mean 1; all others mean 0.",
            detail="With more than two values, set `negative` too",
            example="yes",
            owner="bob",
        ),
    ] = None
    negative: Annotated[
        Names | None,
        _table(
            "Values of the label column that mean 0; any other is refused.",
            example="no",
            owner="bob",
        ),
    ] = None
    exposure: Annotated[
        str | None,
        _table(
            "`poisson`, `gamma`: name of the exposure column; its logarithm is added to the linear "
            "predictor.",
            detail="Time or amount for which a row was observed, above 0; no feature "
            "([glm.md](glm.md))",
            example="years",
            owner="bob",
        ),
    ] = None
    weights: Annotated[
        str | None,
        _table(
            "Other families than `binomial`: name of the column of row weights.",
            detail="0 or more; no feature ([glm.md](glm.md))",
            example="claims",
            owner="bob",
        ),
    ] = None
    keep: Annotated[
        Names | None,
        _table(
            "Columns to use (the id and label columns are always kept).",
            example=["age", "income"],
        ),
    ] = None
    drop: Annotated[Names | None, _table("Columns to leave out.", example=["note"])] = None
    type: Annotated[
        Types | None,
        _table(
            "Column types, by column, where the detected one is wrong: `number`, `category`, "
            "`date` or `text` (ignored).",
            example={"zip": "category"},
        ),
    ] = None
    impute: Annotated[
        Impute | None,
        _table(
            "Imputation of missing numbers: `median`, `mean`, `bin` (a separate bin) or `none` "
            "(an error) (default: median).",
            detail="`bin` applies to binned columns; the others use the median "
            "([data.md](data.md#bins))",
            example="median",
        ),
    ] = None
    missing_indicator: Annotated[
        bool | None,
        _table(
            "Add a missing-value indicator for each column with missing values in the training "
            "rows (default: on).",
            example=True,
            both_ways=True,
        ),
    ] = None
    winsorise: Annotated[
        Shares | None,
        _table(
            "Clip this fraction of values at each tail; `none` to disable (default: 0.005).",
            detail="For all columns or by column; fitted on the training rows, "
            "[data.md](data.md#outliers)",
            example=0.005,
        ),
    ] = None
    transform: Annotated[
        Transforms | None,
        _table(
            "Transform of numeric columns, for all or by column: `none`, `log`, `rank` or "
            "`yeo-johnson` (default: none).",
            detail="[What each does](data.md#transforms)",
            example={"income": "log"},
        ),
    ] = None
    bins: Annotated[
        Bins | None,
        _table(
            "Number of bins per numeric column, or bin edges, for all or by column; bins are "
            "one-hot encoded (default: 0).",
            detail="A number: quantiles of the training rows; 0 for no bins. Edges of one column: "
            "`bins.age = [25, 35, 50]` ([data.md](data.md#bins))",
            example={"age": 5},
        ),
    ] = None
    scale: Annotated[
        Scale | None,
        _table(
            "Scaling of numeric columns: `standard` (standardise) or `none` (default: standard).",
            detail="Standardised: mean 0 and standard deviation 1 on this side's training rows",
            example="standard",
        ),
    ] = None
    clip: Annotated[
        Positive | None, _table("Clip prepared values to this magnitude.", example=10.0)
    ] = None
    max_levels: Annotated[
        PositiveInt | None,
        _table(
            "Maximum number of categories per text column; rarer ones are merged into one "
            "(default: 100).",
            detail="Each category but the first becomes a column; merged ones are called `(other)`",
            example=100,
        ),
    ] = None
    min_frequency: Annotated[
        Annotated[float, Field(ge=0, lt=1)] | None,
        _table(
            "Minimum share of training rows per category; rarer ones are merged into `(other)` "
            "(default: 0.005).",
            detail="So is a category that first appears in a prediction",
            example=0.005,
        ),
    ] = None
    normalise_categories: Annotated[
        bool | None,
        _table(
            "Compare categories without case and surrounding blanks (default: on).",
            example=True,
            both_ways=True,
        ),
    ] = None
    date_format: Annotated[
        Formats | None,
        _table(
            "Date format, or a list of them, for all or by column, such as `%d.%m.%Y` (default: "
            "auto-detected).",
            detail="`iso` is ISO 8601; of several the first that fits a value is used "
            "([data.md](data.md#dates))",
            example={"opened": "%d.%m.%Y"},
        ),
    ] = None
    date_parts: Annotated[
        Annotated[tuple[DatePart, ...], BeforeValidator(_texts)] | None,
        _table(
            "Parts of each date to add as columns: `year`, `month` or `weekday`.",
            detail="The date itself becomes the number of days since 1970-01-01",
            example=["month"],
        ),
    ] = None
    separator: Annotated[
        Annotated[str, BeforeValidator(_separator)] | None,
        _table(
            "Field separator of a CSV file: one character, or `tab` (default: auto-detected).",
            example=";",
        ),
    ] = None
    decimal: Annotated[
        Decimals | None,
        _table(
            "Decimal mark of numbers, for all or by column: `.` or `,` (default: auto-detected).",
            detail="It decides where `1,234` may be either ([data.md](data.md#amounts))",
            example=",",
        ),
    ] = None
    encoding: Annotated[
        Annotated[str, BeforeValidator(_encoding)] | None,
        _table(
            "Text encoding of a CSV file, such as `latin-1` (default: UTF-8).",
            example="latin-1",
        ),
    ] = None
    na_values: Annotated[
        Names | None,
        _table(
            "Texts that mean a missing value, besides an empty field.",
            detail="They replace the default list of CSV files and databases: NA, N/A, NaN, null "
            "and ?",
            example=["NA", "unknown"],
        ),
    ] = None
    duplicates: Annotated[
        Duplicates | None,
        _table(
            "Rows that repeat an id: `error`, or keep the `first` or the `last` row of each id "
            "(default: error).",
            detail="In training, alignment and prediction; ids that are the same once normalised "
            "count as repeated",
            example="first",
        ),
    ] = None
