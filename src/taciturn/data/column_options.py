"""Preparation settings, for all columns of a table or column by column."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, TypeAlias, TypeVar, get_args

from taciturn.data.column_parsing import PARTS, DatePart
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
    """Preparation settings for columns that nobody has looked at yet.

    A mapping is by column; its key ``*`` stands for every column that it does not name. With "none"
    for ``impute`` a missing number is an error; with "bin" it is a bin in columns that are cut into
    bins, and the median elsewhere. ``clip`` bounds the absolute value of any output after scaling.
    ``winsorise`` is the share of rows at either end whose numbers become the next one inwards. The
    rarest levels beyond ``max_levels``, and those of a smaller share of the rows than
    ``min_frequency``, are merged into one.
    """

    impute: Impute = "median"
    scale: Scale = "standard"
    clip: float | None = None
    scale_categories: bool = False
    drop_first: bool = True
    max_levels: int = 100
    winsorise: Mapping[str, float] = field(default_factory=dict)
    missing_indicator: bool = False
    min_frequency: float = 0.0
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
        if not 0 <= self.min_frequency < 1:
            raise _share_error("min_frequency", self.min_frequency, 1)
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
        """Every column that a setting names, with that setting."""
        for setting in ("keep", "drop", *BY_COLUMN):
            yield from ((name, setting) for name in getattr(self, setting) or () if name != EVERY)


def of_column(choices: Mapping[str, T], column: str) -> T | None:
    """Value of a by-column setting for one column.

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
