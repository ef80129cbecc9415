"""Preparation settings, for columns that were not inspected by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, TypeAlias, TypeVar, get_args

from taciturn.data.column_parsing import PARTS, DatePart
from taciturn.data.number_formats import Mark
from taciturn.data.rule_base import check_clip
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
BY_COLUMN = ("type", "transform", "bins", "winsorise", "decimal", "date_format")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PrepareSettings:
    """Preparation settings for columns that were not inspected by hand.

    A mapping is by column; its key ``*`` stands for every column that it does not name. With "none"
    for ``impute`` a missing number is an error; with "bin" it is a bin in columns that are cut into
    bins, and the median elsewhere. ``clip`` bounds the absolute value of any output after scaling.
    ``winsorise`` is the share of rows at either end whose numbers become the next one inwards. The
    rarest levels beyond ``max_levels``, and those of a smaller share of the rows than
    ``min_frequency``, are merged into one. ``normalise_categories`` compares levels without case
    and surrounding blanks.
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
    decimal: Mapping[str, Mark] = field(default_factory=dict)
    normalise_categories: bool = False
    date_format: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    date_parts: tuple[DatePart, ...] = ()

    def __post_init__(self) -> None:
        check_clip(self.clip, "clip")
        for name, given, known in (
            ("impute", [self.impute], get_args(Impute)),
            ("scale", [self.scale], get_args(Scale)),
            ("type", self.type.values(), get_args(ColumnType)),
            ("transform", self.transform.values(), ("none", *get_args(TransformKind))),
            ("date_parts", self.date_parts, PARTS),
        ):
            for value in given:
                if value not in known:
                    _check(name, value, False, nearest(str(value), known))
        for name, shares, below in (
            ("min_frequency", [self.min_frequency], 1),
            ("winsorise", self.winsorise.values(), 0.5),
        ):
            for share in shares:
                _check(name, share, 0 <= share < below, f"use a share from 0 to below {below:g}")
        _check("max_levels", self.max_levels, self.max_levels >= 1, "use 1 or more")
        for bins in self.bins.values():
            if isinstance(bins, int):
                _check("bins", bins, bins == 0 or bins > 1, "use 2 or more, or 0 for none")
                continue
            rising = bins and all(low < high for low, high in pairwise(bins))
            way_out = "name one or more finite numbers, each larger than the one before"
            _check("bins", [*bins], rising and all(map(math.isfinite, bins)), way_out)

    def named(self) -> Iterator[tuple[str, str]]:
        """Every column that a setting names, with that setting."""
        for setting in ("keep", "drop", *BY_COLUMN):
            yield from ((name, setting) for name in getattr(self, setting) or () if name != EVERY)


def _check(name: str, value: object, sound: object, hint: str) -> None:
    if not sound:
        raise ConfigError(f"{name} is {value!r}", setting=name, hint=hint)


def of_column(choices: Mapping[str, T], column: str) -> T | None:
    """Value of a by-column setting for one column.

    >>> of_column({"*": 5, "age": 10}, "age"), of_column({"*": 5}, "age"), of_column({}, "age")
    (10, 5, None)
    """
    return choices.get(column, choices.get(EVERY))
