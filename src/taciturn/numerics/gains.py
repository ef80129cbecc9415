"""Gains and lift: of the rows that score highest, how many of the ones they hold.

The rows are cut by score into parts of equal size, the riskiest first. With ``P`` ones in ``n``
rows, of which the first ``k`` parts hold ``P_k`` in ``n_k``::

    gain_k = P_k / P              lift of a part = its rate of ones / (P/n)
    lift up to part k = (P_k / n_k) / (P/n)

Where a part ends within rows of equal score, these share their ones evenly (``ranked``): counts of
ones may then have fractions, and no order of the file decides anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.errors import ConfigError
from taciturn.numerics.ranked import Ranked


@dataclass(frozen=True, slots=True)
class GainsRow:
    """One part of the rows, and all up to it.

    ``part`` 1 scores highest. ``ones`` is a fraction where rows of equal score are shared. Lifts
    and ``ones_so_far`` are NaN where there is no one; ``..._so_far`` counts all rows up to here.
    """

    part: int
    rows: int
    lowest: float
    ones: float
    rate: float
    lift: float
    rows_so_far: float
    ones_so_far: float
    lift_so_far: float


def gains(ranked: Ranked, parts: int = 10) -> tuple[GainsRow, ...]:
    """The table of gains in at most ``parts`` parts, the riskiest first.

    >>> ranked = Ranked.of(np.array([4.0, 3.0, 2.0, 1.0]), np.array([1, 1, 0, 0]))
    >>> [(row.rows, row.ones, row.lift) for row in gains(ranked, 2)]
    [(2, 2.0, 2.0), (2, 0.0, 0.0)]
    """
    if parts < 1:
        raise ConfigError(f"gains in {parts} parts", where="parts", hint="use 10, for example")
    rows, total_ones = ranked.total, ranked.total_ones
    ends = np.linspace(0, rows, min(parts, rows) + 1).round().astype(np.int64)
    held = ranked.ones_among(ends.astype(np.float64))
    lowest = ranked.levels[np.searchsorted(ranked.rows, ends[1:], side="left")]
    base = total_ones / rows
    table = []
    for number in range(1, len(ends)):
        count, ones = int(ends[number] - ends[number - 1]), float(held[number] - held[number - 1])
        so_far = float(held[number])
        table.append(
            GainsRow(
                part=number,
                rows=count,
                lowest=float(lowest[number - 1]),
                ones=ones,
                rate=ones / count,
                lift=ones / count / base if base else float("nan"),
                rows_so_far=int(ends[number]) / rows,
                ones_so_far=so_far / total_ones if total_ones else float("nan"),
                lift_so_far=so_far / int(ends[number]) / base if base else float("nan"),
            )
        )
    return tuple(table)
