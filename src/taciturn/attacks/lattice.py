"""Short and near vectors of integer lattices: LLL with deep insertions, and the nearest plane.

The basis is changed by whole-number steps only and in exact integers, so that it always spans the
same lattice; its Gram-Schmidt vectors, which decide on the steps, are floating-point numbers made
anew from those integers at every visit. A wrong decision costs quality and never truth: whoever
uses a result checks it against the equations.

[LLL82], with the deep insertions of [SchnorrEuchner94] and the nearest plane of [Babai86]. Work is
counted in visits of a row, never timed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from taciturn.arrays import FloatArray, IntArray

# How much shorter a vector must become for it to move up.
_DELTA = 0.99
# Beyond one half a coefficient can be made smaller; the rest is room for rounding.
_HALF = 0.5 + 1e-6
# A row that is still not reduced after so many corrections has numbers too large for float64.
_MOST_CORRECTIONS = 20


@dataclass(frozen=True, slots=True)
class Reduced:
    """A reduced basis.

    Args:
        basis: Its rows, short and nearly at right angles.
        orthogonal: Their Gram-Schmidt vectors.
        visits: How many visits of a row it took.
        complete: No limit ended it.
    """

    basis: IntArray = field(repr=False)
    orthogonal: FloatArray = field(repr=False)
    visits: int
    complete: bool

    def nearest(self, target: FloatArray, width: int = 1) -> IntArray:
        """Vectors of the lattice near a point, the nearest of them first.

        Plane after plane the two nearest are tried, and the best so far are kept.

        Args:
            target: The point.
            width: How many are kept; with 1 it is Babai's nearest plane.

        >>> reduce_basis(np.array([[1, 0], [3, 1]]), 100).nearest(np.array([4.2, -0.9])).tolist()
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


def reduce_basis(basis: IntArray, most_visits: int) -> Reduced:
    """Reduces the rows of a basis.

    Args:
        basis: Independent rows; no entry above 2^40, so that no step leaves int64.
        most_visits: The limit on visits; the basis reached by then spans the same lattice.

    >>> reduce_basis(np.array([[1, 0], [1000, 1]]), 100).basis.tolist()
    [[1, 0], [0, 1]]
    """
    # Deep insertions take far fewer visits on a basis that neighbours' exchanges have reduced.
    first = _reduced(basis, most_visits, deep=False)
    second = _reduced(first.basis, most_visits - first.visits, deep=True)
    return replace(second, visits=first.visits + second.visits)


def _reduced(basis: IntArray, most_visits: int, *, deep: bool) -> Reduced:
    rows = basis.copy()
    count = len(rows)
    stars, norms = np.zeros(rows.shape), np.zeros(count)
    shares = np.zeros((count, count))
    at = visits = 0
    while at < count:
        if visits >= most_visits:
            return Reduced(rows, _gram_schmidt(rows), visits, complete=False)
        visits += 1
        _shorten(rows, at, stars, norms, shares)
        place = _insertion(rows[at], shares[at, :at], norms[:at], 0 if deep else max(0, at - 1))
        if place < at:
            rows[place : at + 1] = np.roll(rows[place : at + 1], 1, axis=0)
            at = place
            continue
        rest = rows[at] - shares[at, :at] @ stars[:at]
        # Once more, for what rounding left of the earlier directions.
        rest -= (stars[:at] @ rest / norms[:at]) @ stars[:at]
        stars[at], norms[at] = rest, rest @ rest
        at += 1
    return Reduced(rows, stars, visits, complete=True)


def _shorten(
    rows: IntArray, at: int, stars: FloatArray, norms: FloatArray, shares: FloatArray
) -> None:
    """Takes multiples of earlier rows off a row until all of its shares are below one half."""
    for _ in range(_MOST_CORRECTIONS):
        own = stars[:at] @ rows[at] / norms[:at]
        shares[at, :at] = own
        if not (np.abs(own) > _HALF).any():
            return
        steps = np.zeros(at, dtype=np.int64)
        for earlier in range(at - 1, -1, -1):
            if abs(own[earlier]) > _HALF:
                steps[earlier] = round(own[earlier])
                own[:earlier] -= steps[earlier] * shares[earlier, :earlier]
        rows[at] -= steps @ rows[:at]


def _insertion(row: IntArray, shares: FloatArray, norms: FloatArray, first: int) -> int:
    """The first place, from ``first`` on, at which a row is shorter than what stands there."""
    squared = float(row.astype(np.float64) @ row)
    rest = squared - np.concatenate([[0.0], np.cumsum(shares**2 * norms)[:-1]])
    shorter = np.flatnonzero(rest[first : len(norms)] < _DELTA * norms[first:])
    return first + int(shorter[0]) if len(shorter) else len(norms)


def _gram_schmidt(rows: IntArray) -> FloatArray:
    q, r = np.linalg.qr(rows.astype(np.float64).T)
    stars: FloatArray = (q * np.diag(r)).T
    return stars
