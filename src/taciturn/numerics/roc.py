"""The receiver operating characteristic, and the point where the two classes lie furthest apart.

At each distinct score used as a threshold, with ``P`` ones and ``N`` zeros::

    true positives  TP/P      false positives  FP/N
    KS = max |TP/P - FP/N|, reached at the threshold that is given with it      [Smirnov48]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.numerics.ranked import Ranked


@dataclass(frozen=True, slots=True)
class RocPoint:
    """A threshold, and the fractions of zeros and of ones at or above it."""

    score: float
    zeros: float
    ones: float


@dataclass(frozen=True, slots=True)
class KsPoint:
    """Where the distributions of the two classes lie furthest apart.

    ``score`` is the lowest score that counts as above; ``ones`` and ``zeros`` are fractions at or
    above it.
    """

    distance: float
    score: float
    ones: float
    zeros: float


def roc_points(ranked: Ranked, most: int = 200) -> tuple[RocPoint, ...]:
    """The curve from (0, 0) to (1, 1) in about ``most`` points; empty where a class is absent.

    >>> [(point.zeros, point.ones) for point in roc_points(_example())]
    [(0.0, 0.0), (0.0, 0.5), (0.5, 0.5), (1.0, 1.0)]
    """
    if not ranked.both_classes:
        return ()
    ones = np.append(0, ranked.ones) / ranked.total_ones
    zeros = np.append(0, ranked.rows - ranked.ones) / (ranked.total - ranked.total_ones)
    levels = np.append(np.inf, ranked.levels)
    places = np.arange(len(ones))
    if len(places) > most:
        # Along the curve, which rises and goes right by two in all; the point of KS stays.
        along = np.searchsorted(ones + zeros, np.linspace(0.0, 2.0, most))
        ends = (0, len(ones) - 1, int(np.argmax(np.abs(ones - zeros))))
        places = np.unique(np.append(np.minimum(along, len(ones) - 1), ends))
    parts = (values[places].tolist() for values in (levels, zeros, ones))
    return tuple(RocPoint(*point) for point in zip(*parts, strict=True))


def ks_point(ranked: Ranked) -> KsPoint | None:
    """Where KS is reached, at the highest such score; None where a class is absent.

    >>> ks_point(_example())
    KsPoint(distance=0.5, score=0.8, ones=0.5, zeros=0.0)
    """
    if not ranked.both_classes:
        return None
    zeros_in_all = ranked.total - ranked.total_ones
    # In integers: equal distances must be seen to be equal.
    gaps = ranked.ones * zeros_in_all - (ranked.rows - ranked.ones) * ranked.total_ones
    place = int(np.argmax(np.abs(gaps)))
    ones = int(ranked.ones[place])
    return KsPoint(
        distance=int(abs(gaps[place])) / (ranked.total_ones * zeros_in_all),
        score=float(ranked.levels[place]),
        ones=ones / ranked.total_ones,
        zeros=(int(ranked.rows[place]) - ones) / zeros_in_all,
    )


def _example() -> Ranked:
    return Ranked.of(np.array([0.1, 0.4, 0.1, 0.8]), np.array([0, 0, 1, 1]))
