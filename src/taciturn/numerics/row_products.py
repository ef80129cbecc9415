"""Products of a matrix whose result for a row does not depend on the other rows.

A matrix product of a BLAS adds up a row in another order when there are other rows, so that its
last bit may differ. A score that is served alone must be the one that a file of rows gives:
these functions add the columns one after the other, whatever the rows.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.memmap import row_blocks


def row_products(values: FloatArray, weights: FloatArray) -> FloatArray:
    """``values @ weights``, each row for itself."""
    products = np.zeros(len(values))
    for place, block in row_blocks(values):
        total = products[place]
        for column, weight in zip(block.T, weights, strict=True):
            total += column * weight
    return products


def row_transforms(values: FloatArray, matrix: FloatArray) -> FloatArray:
    """``values @ matrix``, each row for itself."""
    transformed = np.zeros((len(values), matrix.shape[1]))
    for place, block in row_blocks(values):
        total = transformed[place]
        for column, line in zip(block.T, matrix, strict=True):
            total += column[:, np.newaxis] * line
    return transformed
