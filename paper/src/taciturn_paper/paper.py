"""Printed figures of the paper: its tables, its ranges and its statements [Tan22].

Shares are fractions here; the paper prints percent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

EPSILONS = (0.01, 0.1, 1.0, 10.0)
B1_RANGE = tuple(2.0**exponent for exponent in range(-6, 1))
B2_RANGE = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
EPSILON_RANGE = tuple(2.0**exponent for exponent in range(-4, 4))
# The figures' fixed values.
FIXED_B1, FIXED_B2, FIXED_EPSILON = 0.1, 10.0, 10.0


@dataclass(frozen=True, slots=True)
class Utility:
    """Accuracy and AUC of one model."""

    accuracy: float
    auc: float


def _row(accuracies: str, areas: str) -> tuple[Utility, ...]:
    """The baseline, ``add`` at four epsilons, ``mult`` at four."""
    pairs = zip(accuracies.split(), areas.split(), strict=True)
    return tuple(Utility(float(accuracy) / 100, float(area) / 100) for accuracy, area in pairs)


_TABLE_2 = {
    "breast-cancer": _row(
        "97.37 83.33 87.72 92.10 94.74 87.72 89.47 92.98 95.61",
        "99.87 87.52 95.84 98.92 99.43 95.90 96.79 97.78 99.21",
    ),
    "sklearn-digits": _row(
        "91.11 63.33 77.50 89.17 90.83 77.50 79.17 85.00 89.72",
        "96.66 63.02 86.99 95.84 96.72 86.36 85.90 89.71 96.14",
    ),
    "census-income": _row(
        "82.69 63.43 71.35 80.89 82.06 63.77 63.32 69.77 79.45",
        "88.79 66.72 75.85 85.95 88.76 75.57 76.88 83.45 87.74",
    ),
    "give-me-some-credit": _row(
        "85.56 71.24 77.44 82.77 85.54 63.15 69.51 71.91 88.14",
        "81.15 70.50 76.97 79.24 81.08 65.21 71.16 76.61 81.44",
    ),
}
DATASETS = tuple(_TABLE_2)


def table2(dataset: str, mechanism: str, epsilon: float | None) -> Utility:
    """A cell of Table II.

    >>> table2("breast-cancer", "none", None).accuracy
    0.9737
    >>> table2("give-me-some-credit", "mult", 10.0).auc
    0.8144
    """
    if epsilon is None:
        return _TABLE_2[dataset][0]
    place = EPSILONS.index(epsilon)
    return _TABLE_2[dataset][1 + place + (4 if mechanism == "mult" else 0)]


@dataclass(frozen=True, slots=True)
class Times:
    """A row of Table III: its sizes, and seconds of a whole training."""

    columns: int
    batch: int
    l_rr: int
    seconds: Mapping[str, float]
    ratio: float


def _times(columns: int, batch: int, l_rr: int, seconds: str, ratio: float) -> Times:
    names = ("add", "mult", "none", "hybrid")
    measured = zip(names, map(float, seconds.split()), strict=True)
    return Times(columns, batch, l_rr, dict(measured), ratio)


TABLE_3 = {
    "breast-cancer": _times(30, 16, 40, "3.5 3.5 554.2 957.4", 1.73),
    "sklearn-digits": _times(64, 32, 70, "5.6 5.7 2415.8 4142.5", 1.71),
    "census-income": _times(81, 32, 90, "100.5 101.8 74049.6 131299.8", 1.77),
    "give-me-some-credit": _times(10, 8, 15, "1374.3 1402.1 88321.9 113761.6", 1.29),
}

# What the text of its evaluation of ``add`` says is lost at epsilon 10.
TEXT_DROPS = {
    "breast-cancer": Utility(0.026, 0.004),
    "sklearn-digits": Utility(0.003, -0.0006),
    "census-income": Utility(0.006, 0.0003),
    "give-me-some-credit": Utility(0.0001, 0.0003),
}


def enumeration(l_rr: int) -> int:
    """The paper's step count of an attack on ``hybrid``: ``L (L + 1) 2^(L - 2)``.

    >>> enumeration(3)
    24
    """
    return l_rr * (l_rr + 1) << (l_rr - 2)
