"""``damped_solve``: a symmetric system, solved so that poorly determined directions stay small."""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray

# Curvatures below this part of the largest count as that much.
_LEAST_CURVATURE = 1e-10
TINY = 1e-100
MOST_EIGENVECTORS = 64
"""Larger matrices are solved by elimination: a seventh of the work."""


def damped_solve(
    matrix: FloatArray, right: FloatArray, *, most: int = MOST_EIGENVECTORS
) -> FloatArray:
    """Solution of ``matrix x = right`` that stays small in poorly determined directions.

    ``matrix`` is symmetric and finite, of any scales. Negative curvatures count by their size in a
    matrix of at most ``most`` rows, and as they are in a larger one.

    >>> damped_solve(np.diag([4.0, -1e12, 0.0]), np.array([2.0, 1e12, 0.0])).tolist()
    [0.5, 1.0, 0.0]
    """
    sizes = np.abs(np.diagonal(matrix))
    # What has no curvature has no slope either, and stays where it is.
    scales = np.where(sizes > TINY, 1.0, 0.0) / np.sqrt(np.maximum(sizes, TINY))
    # Which of the two depends on the size alone, and each does the same work for all matrices of
    # one size: a shorter way for some would tell the peer by its time which they are, and they
    # depend on labels.
    solve = _by_eigenvectors if len(matrix) <= most else _by_elimination
    solution: FloatArray = scales * solve(matrix * scales * scales[:, None], scales * right)
    return solution


def _by_eigenvectors(matrix: FloatArray, right: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    sizes = np.abs(values)
    sizes = np.maximum(sizes, _LEAST_CURVATURE * max(float(sizes.max(initial=0.0)), TINY))
    solution: FloatArray = vectors @ (right @ vectors / sizes)
    return solution


def _by_elimination(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve by elimination, with a ridge that keeps the matrix well away from singular.

    Its diagonal has ones at most, so that no eigenvalue exceeds its size.
    """
    size = len(matrix)
    matrix[range(size), range(size)] += _LEAST_CURVATURE * size
    try:
        return np.linalg.solve(matrix, right).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:  # pragma: no cover - a negative curvature of that very size
        return np.zeros(size)
