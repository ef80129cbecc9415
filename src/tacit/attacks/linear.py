"""The linear system of a batch: ``X^T r = g`` with ``d_A`` equations and ``|B|`` unknowns.

With the singular value decomposition ``X = U S V^T`` the solution of least norm is ``U S^-1 V^T
g``. Row i is determined by the system exactly when the i-th unit vector lies in the column space of
X, that is when its leverage ``sum_k U_ik^2`` (over the non-zero singular values) is 1. A batch of
full rank determines all of its rows; others may still determine some.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from tacit.arrays import BoolArray, FloatArray, IntArray
from tacit.protocol.events import GradientSeen
from tacit.view.alice_view import AliceView

# A leverage is 1 up to rounding; what falls short of it by more is mixed with other rows.
DETERMINED = 1.0 - 1e-8
_STACK_ENTRIES = 1 << 20


@dataclass(frozen=True, slots=True)
class Solved:
    """The least-norm residues of one batch.

    Args:
        seen: The batch.
        residues: Its least-norm solution.
        leverage: For each row, how much of it the system sees: 1 is all, 0 is nothing.
        exact: The rounded residues satisfy the integer equations to the last bit, and only they do.
        rounding: How far floating-point rounding may have moved a determined residue.
    """

    seen: GradientSeen
    residues: FloatArray = field(repr=False)
    leverage: FloatArray = field(repr=False)
    exact: bool
    rounding: float

    @property
    def determined(self) -> BoolArray:
        """The rows whose residue the equations fix."""
        return self.leverage >= DETERMINED


def solve(view: AliceView, batches: Iterable[GradientSeen]) -> Iterator[Solved]:
    """Solves each batch; equal sizes are stacked, which makes small systems an order faster."""
    for _, same_size in groupby(batches, key=lambda seen: len(seen.rows)):
        stack: list[GradientSeen] = []
        for seen in same_size:
            stack.append(seen)
            if len(stack) * len(seen.rows) * len(seen.gradient) >= _STACK_ENTRIES:
                yield from _solve_stack(view, stack)
                stack = []
        if stack:
            yield from _solve_stack(view, stack)


def _solve_stack(view: AliceView, stack: list[GradientSeen]) -> Iterator[Solved]:
    features = np.stack([view.encoded(seen.rows) for seen in stack])
    totals = np.stack([seen.gradient for seen in stack])
    residue_unit = 2.0**-view.agreement.residue_bits
    u, s, vt = np.linalg.svd(features.astype(np.float64), full_matrices=False)
    kept = _nonzero(s, features.shape)
    inverse = np.divide(1.0, s, out=np.zeros_like(s), where=kept)
    projected = np.einsum("kde,ke->kd", vt, totals.astype(np.float64)) * inverse
    residues = np.einsum("kbd,kd->kb", u, projected) * residue_unit
    leverage = np.einsum("kbd,kd->kb", u**2, kept.astype(np.float64))
    whole = np.rint(residues / residue_unit).astype(np.int64)
    exact = _satisfied(features, whole, totals) & (kept.sum(axis=1) == features.shape[1])
    # The usual first-order bound, condition number times unit roundoff, with room for constants.
    rounding = s[:, 0] * np.max(inverse, axis=1) * features.shape[1] * 8 * np.finfo(np.float64).eps
    for number, seen in enumerate(stack):
        yield Solved(
            seen, residues[number], leverage[number], bool(exact[number]), float(rounding[number])
        )


def _nonzero(s: FloatArray, shape: tuple[int, ...]) -> BoolArray:
    """The singular values that rounding cannot explain (NumPy's convention for a rank)."""
    tolerance = s.max(axis=1, keepdims=True) * max(shape[1:]) * np.finfo(np.float64).eps
    found: BoolArray = s > tolerance
    return found


def _satisfied(features: IntArray, residues: IntArray, totals: IntArray) -> BoolArray:
    check: BoolArray = (np.einsum("kbd,kb->kd", features, residues) == totals).all(axis=1)
    return check
