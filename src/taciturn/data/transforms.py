"""Transforms of a numeric column's shape, fitted on the training rows.

- log: ``sign(x) log(1 + |x|)``, which needs nothing fitted and takes every number.
- rank: the share of training rows below a value, from 0 to 1: straight lines between at most 101
  quantiles, the middle of its ranks where one value is several of them.
- yeo-johnson: Yeo and Johnson's power transform (Biometrika, 2000), with the power under which the
  training rows are most likely normal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias, get_args

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.errors import ConfigError, nearest

TransformKind: TypeAlias = Literal["log", "rank", "yeo-johnson"]
KINDS: tuple[TransformKind, ...] = get_args(TransformKind)

_QUANTILES = 101
# Powers outside make columns of which float64 holds little but the largest value.
_POWERS = (-4.0, 6.0)
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class Transform:
    """A fitted transform.

    ``power`` is yeo-johnson's. ``knots`` are the training rows' quantiles for rank, strictly
    rising, and ``ranks`` what each becomes: linear between them, constant beyond.
    """

    kind: TransformKind
    power: float = 1.0
    knots: tuple[float, ...] = ()
    ranks: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(
                f"there is no transform {self.kind!r}",
                where="transform",
                hint=nearest(str(self.kind), KINDS),
            )
        rising = all(low < high for low, high in pairwise(self.knots))
        finite = all(math.isfinite(number) for number in (self.power, *self.knots, *self.ranks))
        filled = (self.kind == "rank") == bool(self.knots)
        if not (rising and finite and filled and len(self.knots) == len(self.ranks)):
            raise ConfigError(
                "the numbers of a transform do not fit each other",
                where=f"transform {self.kind}",
                hint="fit it again",
            )

    def apply(self, values: FloatArray) -> FloatArray:
        """Transformed values; NaN stays NaN."""
        if self.kind == "log":
            return np.copysign(np.log1p(np.abs(values)), values)
        if self.kind == "rank":
            return np.interp(values, self.knots, self.ranks)
        return yeo_johnson(values, self.power)

    def describe(self) -> str:
        """Short description of the transform."""
        if self.kind == "log":
            return "sign(x) log(1 + |x|)"
        if self.kind == "rank":
            return f"rank from 0 to 1 by {len(self.knots)} quantiles"
        return f"Yeo-Johnson with power {self.power:g}"


def fit_transform(kind: TransformKind, values: FloatArray) -> Transform:
    """Fit a transform on values without missing ones."""
    if kind == "rank":
        places = np.linspace(0, 1, min(_QUANTILES, len(values)))
        knots, first, count = np.unique(
            np.quantile(values, places), return_index=True, return_counts=True
        )
        ranks = (places[first] + places[first + count - 1]) / 2
        return Transform(kind, knots=tuple(knots.tolist()), ranks=tuple(ranks.tolist()))
    return Transform(kind) if kind == "log" else Transform(kind, power=_most_likely_power(values))


def yeo_johnson(values: FloatArray, power: float) -> FloatArray:
    """Yeo and Johnson's transform."""
    # Where a value is of the other sign, its half is 0 and gives 0.
    above, below = np.log1p(np.maximum(values, 0.0)), np.log1p(np.maximum(-values, 0.0))
    return _power_of(above, power) - _power_of(below, 2.0 - power)


def _power_of(logarithm: FloatArray, power: float) -> FloatArray:
    return logarithm if power == 0 else np.expm1(logarithm * power) / power


def _most_likely_power(values: FloatArray) -> float:
    """Power of the greatest likelihood: a coarse grid, then a golden section."""
    total = float(np.copysign(np.log1p(np.abs(values)), values).sum())

    def unlikelihood(power: float) -> float:
        with np.errstate(all="ignore"):
            variance = float(yeo_johnson(values, power).var())
        if not (math.isfinite(variance) and variance > 0):
            return math.inf
        return len(values) / 2 * math.log(variance) - (power - 1.0) * total

    coarse = np.linspace(*_POWERS, 21)
    best = int(np.argmin([unlikelihood(float(power)) for power in coarse]))
    low, high = coarse[max(best - 1, 0)], coarse[min(best + 1, len(coarse) - 1)]
    return _least(unlikelihood, float(low), float(high))


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """Minimiser of a unimodal function."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > 1e-7:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return (low + high) / 2
