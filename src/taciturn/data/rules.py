"""Rules: what becomes of one source column.

With ``c`` the centre and ``s`` the scale:

- numeric: missing values take ``impute``; the value is held between ``lower`` and ``upper``, goes
  through the transform, and becomes ``(x - c) / s``, clipped to ±``clip``. Where the rule says so,
  a second column ``column=(missing)`` is 1 where the value was missing.
- categorical: one output column ``column=level`` per level but the dropped one, 1 where the row has
  that level. An unknown level counts as the level ``unknown`` and a missing one as ``missing``;
  where the rule names none for it, the row is the average of the training rows in each column,
  which is none of the levels. Then ``(x - c) / s``, clipped.
- binned: one output column per interval of numbers but the first, 1 where the value lies in it. An
  interval holds its lower end and not its upper one. A missing value may be a bin of its own. A bin
  that no training row was in has a column of zeros, and a new row in it is the average of the
  training rows in the others.

``s = 0`` is the mark of a column that says nothing on the training rows: its output is zero
whatever the input, in training and ever after.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from taciturn.arrays import FloatArray
from taciturn.data.binned_rule import BinnedRule
from taciturn.data.column_parsing import NUMBER, Reading, filled
from taciturn.data.ids import RowIds
from taciturn.data.rule_base import (
    MISSING,
    Bin,
    ColumnRule,
    OneHotRule,
    check_clip,
    clip_step,
    clipped,
    described,
    gap_step,
    kind_step,
    missing_step,
    require,
    require_finite,
)
from taciturn.data.transforms import Transform


@dataclass(frozen=True, slots=True)
class NumericRule(ColumnRule):
    """Rule of a numeric column.

    ``impute`` None refuses missing values. ``scale`` 0 makes the output zero whatever the input.
    ``missing`` adds an indicator column of missing values.
    """

    column: str
    impute: float | None = None
    center: float = 0.0
    scale: float = 1.0
    clip: float | None = None
    lower: float | None = None
    upper: float | None = None
    transform: Transform | None = None
    missing: bool = False
    reading: Reading = NUMBER

    def __post_init__(self) -> None:
        for name in ("impute", "lower", "upper", "center", "scale"):
            require_finite(self.column, name, getattr(self, name))
        check_clip(self.clip, f"rule of column {self.column!r}")
        require(self.scale >= 0, self.column, "a scale must be 0 or more")
        bounds = [bound for bound in (self.lower, self.upper) if bound is not None]
        rising = bounds == sorted(bounds)
        require(rising, self.column, "the lower bound exceeds the upper bound")
        marked = not self.missing or self.impute is not None
        require(marked, self.column, "missing values are marked and refused")

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the output columns."""
        return (self.name, f"{self.name}={MISSING}") if self.missing else (self.name,)

    def describe(self) -> str:
        """One-line description of the rule."""
        if self.scale == 0:
            zeros = "zeros (constant or empty on the training rows)"
            return described(self.name, zeros, missing_step(self.missing))
        bounded = self.lower is not None and self.upper is not None
        plain = (self.center, self.scale) == (0.0, 1.0)
        shift = f"minus {self.center:g}, divided by {self.scale:g}"
        return described(
            self.name,
            kind_step(self.reading),
            gap_step(self.impute),
            f"winsorised to {self.lower:g} … {self.upper:g}" if bounded else None,
            None if self.transform is None else self.transform.describe(),
            "not scaled" if plain else shift,
            clip_step(self.clip),
            missing_step(self.missing),
        )

    def arrays(self, series: pl.Series, ids: RowIds | None = None) -> Iterator[FloatArray]:
        """The output column, and the indicator of missing values where the rule has one."""
        if self.scale == 0 and not self.missing:
            yield np.zeros(len(series))
            return
        values = self.reading.numbers(series, ids)
        if self.scale == 0:
            yield np.zeros(len(series))
        else:
            known = filled(series.name, values, self.impute, ids)
            yield clipped((self.shaped(known) - self.center) / self.scale, self.clip)
        if self.missing:
            yield clipped(np.isnan(values).astype(np.float64), self.clip)

    def shaped(self, values: FloatArray) -> FloatArray:
        """Values before scaling: held between the bounds, and transformed."""
        if self.lower is not None or self.upper is not None:
            values = np.clip(values, self.lower, self.upper)
        return values if self.transform is None else self.transform.apply(values)


@dataclass(frozen=True, slots=True)
class CategoricalRule(OneHotRule):
    """Rule of a column of categories.

    ``dropped`` is the level that gets no column. ``centers`` and ``scales`` have one entry per
    output column, and are empty where nothing is scaled. ``average`` is what a row without a level
    has in each output column, before scaling; empty for 0.
    """

    column: str
    levels: tuple[str, ...]
    dropped: str | None = None
    centers: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    clip: float | None = None
    unknown: str | None = None
    missing: str | None = None
    average: tuple[float, ...] = ()
    reading: Reading = NUMBER

    def __post_init__(self) -> None:
        once = len({*self._spelled()}) == len(self.levels)
        require(once, self.column, "a level is repeated")
        for name in ("dropped", "unknown", "missing"):
            known = getattr(self, name) in (None, *self.levels)
            require(known, self.column, f"the {name} level is not a level")
        for name in ("centers", "scales", "average"):
            given = getattr(self, name)
            require_finite(self.column, name, *given)
            fitting = len(given) in (0, len(self.kept))
            problem = f"there are {len(given)} {name} for {len(self.kept)} output columns"
            require(fitting, self.column, problem)
        require(min(self.scales, default=0) >= 0, self.column, "a scale must be 0 or more")
        check_clip(self.clip, f"rule of column {self.column!r}")

    @property
    def kept(self) -> tuple[str, ...]:
        """Levels with a column."""
        return tuple(level for level in self.levels if level != self.dropped)

    @property
    def bins(self) -> tuple[Bin, ...]:
        """Every level, in order, the reference included."""
        return tuple(
            Bin(
                f"{self.name} missing" if level == MISSING else f"{self.name} = {level}",
                None if level == self.dropped else f"{self.name}={level}",
            )
            for level in self.levels
        )

    def describe(self) -> str:
        """One-line description of the rule."""
        count, zeros = len(self.kept), self.scales.count(0)
        none = "is the average of the training rows" if self.average else "gets no column"
        absent = [f"an unknown or missing level {none}"]
        if (self.unknown, self.missing) != (None, None):
            pairs = (("an unknown or rare", self.unknown), ("a missing", self.missing))
            absent = [
                f"{which} level {none if level is None else f'is {level}'}"
                for which, level in pairs
            ]
        return described(
            self.name,
            f"one-hot, {count} column{'' if count == 1 else 's'}",
            None if self.dropped is None else f"level {self.dropped} gets no column",
            *absent,
            "each centred and scaled" if self.centers or self.scales else "0 and 1, not scaled",
            f"{zeros} of them zeros (constant on the training rows)" if zeros else None,
            clip_step(self.clip),
        )

    def places(self, series: pl.Series, ids: RowIds | None = None) -> NDArray[np.int64]:
        """Level of each row, counted from 0; the number of levels for a row without one."""
        return self.places_of(self.reading.levels(series))

    def places_of(self, text: pl.Series) -> NDArray[np.int64]:
        """Places of texts as ``Reading.levels`` gives them."""
        if not self.levels:
            return np.zeros(len(text), dtype=np.int64)
        place = {level: at for at, level in enumerate((*self.levels, None))}
        known = text.cast(pl.Enum(self._spelled()), strict=False).to_physical().cast(pl.Int64)
        known = known.fill_null(place[self.unknown])
        if self.missing != self.unknown and text.null_count():
            known = known.set(text.is_null(), place[self.missing])
        return known.to_numpy()

    def table(self) -> FloatArray:
        """Output values of each level, and of a row without one: levels by columns."""
        kept = [level != self.dropped for level in self.levels]
        values = np.vstack([np.eye(len(kept))[:, kept], self.average or np.zeros(sum(kept))])
        scales = np.array(self.scales or (1.0,))
        values = (values - (self.centers or 0.0)) / np.where(scales == 0, 1.0, scales)
        return clipped(np.where(scales == 0, 0.0, values), self.clip)

    def _spelled(self) -> list[str]:
        """Levels as rows are compared with them."""
        return self.reading.spelled(pl.Series(self.levels, dtype=pl.String)).to_list()


Rule: TypeAlias = NumericRule | CategoricalRule | BinnedRule
