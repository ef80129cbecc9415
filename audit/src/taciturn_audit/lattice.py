"""Lattice reduction: short vectors, integer relations, and the nearest plane.

LLL [LLL82] is FLINT's, through python-flint, which belongs to the extra ``audit``; the nearest
plane is Babai's [Babai86]. Integers are exact throughout. Floating point only decides which steps
are taken: a wrong decision costs quality and never truth, and the user of a result checks it
against the equations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from taciturn.arrays import FloatArray, IntArray

IntegerMatrix: TypeAlias = NDArray[np.object_]
"""Rows of Python integers of any size."""

# Large enough that no relation pays for a residue other than zero.
_EXACT = 1 << 80
_ROUNDS = 6
# As near to the strict reduction as FLINT takes at no cost to speak of.
_DELTA, _ETA = 0.999, 0.501


def reduce_rows(rows: IntegerMatrix | IntArray) -> IntegerMatrix:
    """LLL-reduced basis of the lattice that integer rows span, in LLL's order.

    The rows may depend on one another: what they span is reduced, without rows of zeros.

    >>> reduce_rows(np.array([[1, 0], [1000, 1]])).tolist()
    [[1, 0], [0, 1]]
    """
    # Loaded here: a party does without the extra that has it.
    from flint import fmpz_mat

    reduced = fmpz_mat(rows.tolist()).lll(False, _DELTA, _ETA).tolist()
    basis = [[int(entry) for entry in row] for row in reduced if any(row)]
    matrix: IntegerMatrix = np.array(basis, dtype=object)
    return matrix.reshape(len(basis), rows.shape[1])


def by_length(vectors: IntegerMatrix) -> IntegerMatrix:
    """The same vectors, the shortest first."""
    # Sums of Python integers, which no length overflows.
    return vectors[sorted(range(len(vectors)), key=lambda place: (vectors[place] ** 2).sum())]


def kernel(matrix: IntegerMatrix | IntArray) -> IntegerMatrix:
    """Reduced basis of the integer relations ``{u: u M = 0}``, the shortest first.

    >>> kernel(np.array([[1], [2], [3]])).tolist()
    [[-1, -1, 1], [-2, 1, 0]]
    """
    rows, columns = matrix.shape
    weighted = matrix.astype(object) * _EXACT
    reduced = reduce_rows(np.hstack([weighted, np.eye(rows, dtype=int).astype(object)]))
    return by_length(reduced[~reduced[:, :columns].any(axis=1), columns:])


def nearest_residues(basis: IntArray, targets: IntArray) -> IntArray:
    """Difference between each target and the lattice vector next to it, by Babai's nearest plane.

    Rows of ``basis`` are a reduced basis; no difference on the way may leave int64.

    >>> nearest_residues(np.array([[1, 0], [0, 10]]), np.array([[7, 11]])).tolist()
    [[0, 1]]
    """
    axes, triangle = np.linalg.qr(basis.T.astype(np.float64))
    residues = targets.copy()
    # A target far away is reached in several rounds: each is exact to 53 bits of what is left.
    for _ in range(_ROUNDS):
        along = residues.astype(np.float64) @ axes
        steps = np.zeros((len(residues), len(basis)), dtype=np.int64)
        for place in range(len(basis) - 1, -1, -1):
            step = np.rint(along[:, place] / triangle[place, place])
            steps[:, place] = step
            along -= step[:, None] * triangle[:, place]
        if not steps.any():
            break
        residues -= steps @ basis
    return residues


@dataclass(frozen=True, slots=True)
class Reduced:
    """Reduced basis of independent rows, and their Gram-Schmidt vectors."""

    basis: IntArray = field(repr=False)
    orthogonal: FloatArray = field(repr=False)

    def nearest(self, target: FloatArray, width: int = 1) -> IntArray:
        """Vectors of the lattice near a point, the nearest of them first.

        Plane after plane the two nearest are tried, and the best so far are kept.

        ``width`` is how many are kept; with 1 it is Babai's nearest plane.

        >>> reduce_basis(np.array([[1, 0], [3, 1]])).nearest(np.array([4.2, -0.9])).tolist()
        [[4, -1]]
        """
        left = target[None, :].astype(np.float64)
        norms = np.einsum("ij,ij->i", self.orthogonal, self.orthogonal)
        apart = np.zeros(1)
        for row in range(len(self.basis) - 1, -1, -1):
            exact = left @ self.orthogonal[row] / norms[row]
            near = np.rint(exact)
            other = np.where(exact >= near, near + 1, near - 1)
            steps = np.concatenate([near, other])
            far = np.tile(apart, 2) + (np.tile(exact, 2) - steps) ** 2 * norms[row]
            kept = np.argsort(far, kind="stable")[:width]
            apart = far[kept]
            left = left[kept % len(left)] - steps[kept, None] * self.basis[row]
        # What is left is target less vector: exact for integers of this size but for rounding.
        return np.rint(target - left).astype(np.int64)


def reduce_basis(basis: IntArray) -> Reduced:
    """Reduces independent rows, and keeps their Gram-Schmidt vectors.

    >>> reduce_basis(np.array([[1, 0], [1000, 1]])).basis.tolist()
    [[1, 0], [0, 1]]
    """
    rows = reduce_rows(basis).astype(np.int64)
    q, r = np.linalg.qr(rows.astype(np.float64).T)
    return Reduced(rows, (q * np.diag(r)).T)
