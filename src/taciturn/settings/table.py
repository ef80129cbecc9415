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
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field

from taciturn.settings.checked import Checked, Positive, PositiveInt
from taciturn.settings.setting import Panel, Scope, Setting

Impute = Literal["median", "mean", "bin", "none"]
Scale = Literal["standard", "none"]
ColumnType = Literal["number", "category", "date", "text"]
TransformChoice = Literal["none", "log", "rank", "yeo-johnson"]
DatePart = Literal["year", "month", "weekday"]
Decimal = Literal[".", ","]

EVERY = "*"
# What may be said column by column.
BY_COLUMN = ("type", "transform", "bins", "winsorise", "date_format")

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
        raise ValueError(f"it is a share of the rows from 0 to below 0.5, or none, not {value!r}")
    return number


def _count(value: object) -> object:
    number = _number(value, int)
    if number < 0 or number == 1:
        raise ValueError(f"it is 2 or more intervals, or 0 for none, not {value!r}")
    return number


def _bins(value: object) -> dict[str, object]:
    """In an option, numbers behind a column's first are edges of the same column."""
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
            raise ValueError(f"edges rise, each above the one before, and {high:g} follows {low:g}")
    if not edges:
        raise ValueError("a list of edges has one or more")
    return edges


def _number(value: object, kind: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - int or float
    try:
        if isinstance(value, bool) or (kind is int and isinstance(value, float)):
            raise ValueError
        return kind(value)
    except (TypeError, ValueError):
        raise ValueError(f"it is a number, not {value!r}") from None


def _format(value: object) -> object:
    if not isinstance(value, str) or "%" not in value:
        raise ValueError(f"it says how a date is written, such as %d.%m.%Y, not {value!r}")
    return value


def _separator(value: object) -> object:
    value = {"tab": "\t", "\\t": "\t"}.get(str(value), value)
    if not isinstance(value, str) or len(value) != 1 or not value.isascii() or value in '"\r\n':
        raise ValueError(f"it is one character, or tab, not {value!r}")
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
Formats = Annotated[str | dict[str, str], BeforeValidator(partial(_by_column, read=_format))]


class TableSettings(Checked):
    """How a table is read and its columns are prepared. ``None`` means the default."""

    positive: Annotated[
        Names | None,
        _table(
            "The word, or words, of the label column that mean 1; what else there is means 0.",
            detail="Of more than two words, say which mean 0 too (`negative`)",
            example="yes",
            owner="bob",
        ),
    ] = None
    negative: Annotated[
        Names | None,
        _table(
            "The words of the label column that mean 0; any other is refused.",
            example="no",
            owner="bob",
        ),
    ] = None
    keep: Annotated[
        Names | None,
        _table(
            "Only these columns, beside id and label.",
            example=["age", "income"],
        ),
    ] = None
    drop: Annotated[Names | None, _table("Not these columns.", example=["note"])] = None
    type: Annotated[
        Types | None,
        _table(
            "By column, if it is not what it looks like: `number`, `category`, `date`, or `text` "
            "(left out).",
            example={"zip": "category"},
        ),
    ] = None
    impute: Annotated[
        Impute | None,
        _table(
            "Missing numbers become the `median`, the `mean`, a `bin` of their own, or an error "
            "(`none`) (default: median).",
            detail="`bin`: in columns that are cut into bins; elsewhere the median "
            "([data.md](data.md#bins))",
            example="median",
        ),
    ] = None
    missing_indicator: Annotated[
        bool | None,
        _table(
            "A column more that says where values are missing, if training rows lack some "
            "(default: on).",
            example=True,
            both_ways=True,
        ),
    ] = None
    winsorise: Annotated[
        Shares | None,
        _table(
            "This share of the numbers at either end become the next inwards; or `none` (default: "
            "0.005).",
            detail="For all columns or by column; fitted on the training rows, "
            "[data.md](data.md#outliers)",
            example=0.005,
        ),
    ] = None
    transform: Annotated[
        Transforms | None,
        _table(
            "By column or for all numbers: `none`, `log`, `rank` or `yeo-johnson` (default: none).",
            detail="[What each does](data.md#transforms)",
            example={"income": "log"},
        ),
    ] = None
    bins: Annotated[
        Bins | None,
        _table(
            "Numbers are cut into so many intervals, or at given edges, one-hot; by column or for "
            "all (default: 0).",
            detail="A number: equally many training rows in each; 0 is none. Edges, of one column: "
            "`bins.age = [25, 35, 50]` ([data.md](data.md#bins))",
            example={"age": 5},
        ),
    ] = None
    scale: Annotated[
        Scale | None,
        _table(
            "Numbers are standardised (`standard`) or left as they are (`none`) (default: "
            "standard).",
            detail="Standardised: mean 0 and standard deviation 1 on this side's training rows",
            example="standard",
        ),
    ] = None
    clip: Annotated[Positive | None, _table("Clip prepared values to this size.", example=10.0)] = (
        None
    )
    max_levels: Annotated[
        PositiveInt | None,
        _table(
            "Of more levels than this in a text column, the rarest become one (default: 100).",
            detail="Each level but the first becomes a column; the others are `(other)`",
            example=100,
        ),
    ] = None
    min_frequency: Annotated[
        Annotated[float, Field(ge=0, lt=1)] | None,
        _table(
            "Levels of a smaller share of the training rows become one, `(other)` (default: "
            "0.005).",
            detail="So does a level that is unknown when it is predicted",
            example=0.005,
        ),
    ] = None
    date_format: Annotated[
        Formats | None,
        _table(
            "By column or for all: how dates are written, such as `%d.%m.%Y` (default: ISO 8601).",
            detail="Dates in ISO 8601 are recognised; of other columns say `type` too",
            example={"opened": "%d.%m.%Y"},
        ),
    ] = None
    date_parts: Annotated[
        Annotated[tuple[DatePart, ...], BeforeValidator(_texts)] | None,
        _table(
            "Of each date also its `year`, `month` or `weekday`.",
            detail="A date itself is the days since 1970-01-01",
            example=["month"],
        ),
    ] = None
    separator: Annotated[
        Annotated[str, BeforeValidator(_separator)] | None,
        _table(
            "What stands between a CSV file's fields: a character, or `tab` (default: looked for).",
            example=";",
        ),
    ] = None
    decimal: Annotated[
        Decimal | None,
        _table(
            "A CSV file's decimal point: `.` or `,` (default: looked for).",
            example=",",
        ),
    ] = None
    encoding: Annotated[
        Annotated[str, BeforeValidator(_encoding)] | None,
        _table(
            "How a CSV file's text is encoded, such as `latin-1` (default: UTF-8).",
            example="latin-1",
        ),
    ] = None
    na_values: Annotated[
        Names | None,
        _table(
            "What stands for a missing value in a CSV file, beside an empty field.",
            detail="In place of NA, N/A, NaN, null and ?",
            example=["NA", "unknown"],
        ),
    ] = None
