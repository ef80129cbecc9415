"""The array types that cross rooms."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
IndexArray: TypeAlias = NDArray[np.int64]
ByteArray: TypeAlias = NDArray[np.uint8]
WordArray: TypeAlias = NDArray[np.uint64]
BoolArray: TypeAlias = NDArray[np.bool_]

EVERY_ROW = slice(None)
"""The place of all rows."""

ByteLabels: TypeAlias = NDArray[np.int8]

# Labels are 0 and 1 in whatever type the caller stores them: booleans, bytes, integers or reals.
LabelArray: TypeAlias = NDArray[np.bool | np.integer[Any] | np.floating[Any]]
