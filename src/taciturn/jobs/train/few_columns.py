"""Tables so narrow that scores reveal their columns: one column, or two of whole numbers.

A score opens one linear function of a row. Of one column it is the column itself, up to scale and
shift, once the partner knows his own part. Two columns of whole numbers take few values on a
grid, and the scores of some rows give the two weights and with them each row's pair of values.

**Assumes.** A larger number of columns is no protection by itself: it is no bound on attacks.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable

_LOOKED_AT = 50_000
_MOST_STEPS = 1 << 20
_TOLERANCE = 0.01
_LEAST_LEVELS = 4


def few_columns_text(table: FeatureTable) -> str:
    """Warn that scores reveal Alice's few columns; empty for other tables.

    ``table`` may be a sample of her prepared rows.
    """
    columns = table.values[:_LOOKED_AT].T
    if len(columns) == 1:
        return "Alice has one column: scores reveal its values, up to scale and shift"
    if len(columns) == 2 and all(map(is_whole, columns)):
        return (
            "Alice has two columns of whole numbers, or of few decimals: scores of a few rows "
            "reveal their values"
        )
    return ""


def is_whole(column: FloatArray) -> bool:
    """Whether a column has whole numbers, in some unit and with some offset.

    A prepared column is shifted and scaled. So the unit is the greatest common divisor of the
    differences of its values.

    >>> is_whole((np.array([3.0, 5.0, 8.0, 9.0]) - 5.3) / 1.7)
    True
    >>> is_whole(np.array([0.0, 0.12345678, 0.73910123, 2.0]))
    False
    """
    values = np.unique(column)
    if len(values) > _LEAST_LEVELS:
        # Values beyond a bound are moved to it, and it may be between two whole numbers.
        values = values[1:-1]
    least = float(np.ptp(values)) / _MOST_STEPS
    steps = np.diff(values)
    # Below this they are rounding errors of one value.
    steps = steps[steps > least]
    while len(steps) > 1:
        unit = float(steps.min())
        rest = np.abs(steps - unit * np.rint(steps / unit))
        if rest.max() <= _TOLERANCE * unit:
            break
        steps = np.append(rest[rest > _TOLERANCE * unit], unit)
        if steps.min() <= least:
            return False
    return True
