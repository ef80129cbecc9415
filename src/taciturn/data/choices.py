"""Choices: how a table's columns are prepared, said for all of them or column by column."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, TypeAlias, TypeVar, get_args

from taciturn.data.readings import PARTS, DatePart
from taciturn.data.rules import check_clip
from taciturn.data.transforms import TransformKind
from taciturn.errors import ConfigError, nearest

Impute: TypeAlias = Literal["median", "mean", "bin", "none"]
Scale: TypeAlias = Literal["standard", "none"]
ColumnType: TypeAlias = Literal["number", "category", "date", "text"]
TransformChoice: TypeAlias = Literal["none"] | TransformKind
Bins: TypeAlias = int | tuple[float, ...]
"""So many intervals of about equally many rows; or where they begin, but for the first."""

# What a choice by column says of every column that it does not name.
EVERY = "*"
# The choices that may be made column by column.
BY_COLUMN = ("type", "transform", "bins", "winsorise", "date_format")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PrepareSettings:
    """How to prepare columns that nobody has looked at yet.

    What is a mapping is said by column; its key ``*`` stands for every column that it does not
    name.

    Args:
        impute: What a missing number becomes; with "none" it is an error. With "bin" it is a bin of
            its own, in columns that are cut into bins, and the median elsewhere.
        scale: "standard" subtracts the mean and divides by the standard deviation.
        clip: The largest absolute value of any output, applied after scaling; None for no limit.
        scale_categories: Whether one-hot columns are scaled too, or stay 0 and 1.
        drop_first: Whether the first level gets no column.
        max_levels: Of a text column with more levels than this, the rarest are grouped into one.
        winsorise: The share of rows at either end whose numbers become the next one inwards.
        missing_indicator: Whether a column more says where a value is missing.
        rare_share: Levels of a smaller share of the rows are grouped into one.
        keep: Only these columns, where it is given.
        drop: Not these columns.
        type: Number, category, date, or text that is left out; what it looks like where not said.
        transform: What changes the shape of numbers before they are scaled.
        bins: Into how many intervals numbers are cut, or where; 0 for none.
        date_format: How dates are written in text; ISO 8601 where not said.
        date_parts: What else is made of each date: year, month, weekday.

    Raises:
        ConfigError: If a setting is unknown or out of range.

    >>> PrepareSettings().impute
    'median'
    """

    impute: Impute = "median"
    scale: Scale = "standard"
    clip: float | None = None
    scale_categories: bool = False
    drop_first: bool = True
    max_levels: int = 100
    winsorise: Mapping[str, float] = field(default_factory=dict)
    missing_indicator: bool = False
    rare_share: float = 0.0
    keep: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    type: Mapping[str, ColumnType] = field(default_factory=dict)
    transform: Mapping[str, TransformChoice] = field(default_factory=dict)
    bins: Mapping[str, Bins] = field(default_factory=dict)
    date_format: Mapping[str, str] = field(default_factory=dict)
    date_parts: tuple[DatePart, ...] = ()

    def __post_init__(self) -> None:
        _one_of("impute", self.impute, get_args(Impute))
        _one_of("scale", self.scale, get_args(Scale))
        check_clip(self.clip, "clip")
        if self.max_levels < 1:
            raise ConfigError(
                f"max_levels is {self.max_levels}", setting="max_levels", hint="use 1 or more"
            )
        if not 0 <= self.rare_share < 1:
            raise _share_error("rare_share", self.rare_share, 1)
        for share in self.winsorise.values():
            if not 0 <= share < 0.5:
                raise _share_error("winsorise", share, 0.5)
        for kind in self.type.values():
            _one_of("type", kind, get_args(ColumnType))
        for transform in self.transform.values():
            _one_of("transform", transform, ("none", *get_args(TransformKind)))
        for bins in self.bins.values():
            _check_bins(bins)
        for part in self.date_parts:
            _one_of("date_parts", part, PARTS)

    def named(self) -> Iterator[tuple[str, str]]:
        """Every column that a choice names, with the setting that names it."""
        for setting in ("keep", "drop", *BY_COLUMN):
            yield from ((name, setting) for name in getattr(self, setting) or () if name != EVERY)


def of_column(choices: Mapping[str, T], column: str) -> T | None:
    """What choices by column say of one column.

    >>> of_column({"*": 5, "age": 10}, "age"), of_column({"*": 5}, "age"), of_column({}, "age")
    (10, 5, None)
    """
    return choices.get(column, choices.get(EVERY))


def _check_bins(bins: Bins) -> None:
    if isinstance(bins, int):
        if bins < 0 or bins == 1:
            raise ConfigError(
                f"bins is {bins}", setting="bins", hint="use 2 or more, or 0 for none"
            )
        return
    rising = all(low < high for low, high in pairwise(bins))
    if not bins or not rising or not all(map(math.isfinite, bins)):
        raise ConfigError(
            f"the edges of bins are {list(bins)}",
            setting="bins",
            hint="name one or more finite numbers, each larger than the one before",
        )


def _share_error(name: str, value: float, below: float) -> ConfigError:
    return ConfigError(
        f"{name} is {value}", setting=name, hint=f"use a share from 0 to below {below:g}"
    )


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"{name} is {value!r}", setting=name, hint=nearest(str(value), known))
