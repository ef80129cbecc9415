"""Closed forms of the Laplace distribution, on integers and on reals, in logarithms.

With ``sigma`` the scale::

    integers  P(k) = tanh(1/(2 sigma)) exp(-|k|/sigma)      P(K >= k) = exp(-k/sigma)/(1+exp(-1/sigma)), k >= 1
    reals     p(x) = exp(-|x|/sigma) / (2 sigma)            P(X >= x) = exp(-x/sigma)/2,            x >= 0

**Guarantee.** Exact up to the rounding of double precision.

**Assumes.** Nothing.
"""  # noqa: E501 - the two lines are read side by side

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from taciturn.arrays import FloatArray, IntArray

Scale: TypeAlias = float | FloatArray
Numbers: TypeAlias = NDArray[Any]
"""Integers or reals, as the law has it."""


def log_mass(k: IntArray, sigma: Scale) -> FloatArray:
    """``log P(K = k)`` on integers.

    >>> float(np.exp(log_mass(np.arange(-60, 61), 3.0)).sum().round(6))
    1.0
    """
    logs: FloatArray = np.log(np.tanh(0.5 / np.asarray(sigma))) - np.abs(k) / sigma
    return logs


def log_mass_at_least(k: IntArray, sigma: Scale) -> FloatArray:
    """``log P(K >= k)`` on integers.

    >>> float(np.exp(log_mass_at_least(np.array([-100]), 2.0))[0].round(6))
    1.0
    """
    at = np.asarray(k, dtype=np.float64)
    step = np.log1p(np.exp(-1.0 / np.asarray(sigma)))
    upper = -np.maximum(at, 1.0) / sigma - step
    lower = np.log1p(-np.exp(-(1.0 - np.minimum(at, 0.0)) / sigma - step))
    logs: FloatArray = np.where(at >= 1, upper, lower)
    return logs


def log_density(x: FloatArray, sigma: Scale) -> FloatArray:
    """``log p(x)`` on reals.

    >>> float(np.exp(log_density(np.array([0.0]), 0.5))[0])
    1.0
    """
    logs: FloatArray = -np.abs(x) / sigma - np.log(2.0 * np.asarray(sigma))
    return logs


def log_at_least(x: FloatArray, sigma: Scale) -> FloatArray:
    """``log P(X >= x)`` on reals.

    >>> float(np.exp(log_at_least(np.array([0.0]), 7.0))[0])
    0.5
    """
    at = np.asarray(x)
    upper = -np.maximum(at, 0.0) / sigma - np.log(2.0)
    lower = np.log1p(-0.5 * np.exp(np.minimum(at, 0.0) / sigma))
    logs: FloatArray = np.where(at >= 0, upper, lower)
    return logs


@dataclass(frozen=True, slots=True)
class Law:
    """Probability mass (or density) function and survival function, in logarithms."""

    log_point: Callable[[Numbers, Scale], FloatArray]
    log_at_least: Callable[[Numbers, Scale], FloatArray]


ON_INTEGERS = Law(log_mass, log_mass_at_least)
ON_REALS = Law(log_density, log_at_least)
