"""``exact-solve`` and ``least-squares``: the linear system of each batch, ``X^T r = g``.

It has ``d_A`` equations and ``|B|`` unknowns. With the singular value decomposition ``X = U S V^T``
the solution of least norm is ``U S^-1 V^T g``, which is ``P r`` with the projection ``P = U U^T``
(over the non-zero singular values). Row i is determined by the system exactly when the i-th unit
vector lies in the column space of X, that is when its leverage ``h = P_ii`` is 1. A batch of full
rank determines all of its rows; others may still determine some.

A leverage just below 1 lets the other rows in: ``P`` is a projection, so ``sum_j P_ij^2 = h``, and
residues are at most ``largest`` in size (1, or more in ``hybrid``, which scales them), so by Cauchy
and Schwarz they add at most ``largest sqrt(h (1 - h) (|B| - 1))``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, IntArray
from taciturn.engine.callbacks import ReportProgress
from taciturn.protocol.observations import GradientSeen, Signal
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.views.alice_view import AliceView

# Beyond this a row is a candidate; whether its sign can be trusted is a question of ``mixing``.
DETERMINED = 1.0 - 1e-8
_STACK_ENTRIES = 1 << 20


@dataclass(frozen=True, slots=True)
class Solved:
    """The least-norm residues of one batch.

    ``leverage`` is how much of a row the system sees: 1 is all, 0 is nothing. ``full_rank`` is
    numerical. ``exact``: besides, the rounded residues are possible ones and satisfy the integer
    equations to the last bit; as the rank is full, only they do. ``rounding`` bounds how far
    floating-point rounding may have moved a determined residue.
    """

    seen: GradientSeen
    residues: FloatArray = field(repr=False)
    leverage: FloatArray = field(repr=False)
    full_rank: bool
    exact: bool
    rounding: float

    @property
    def determined(self) -> BoolArray:
        """The rows whose residue the equations fix, but for rounding and ``mixing``."""
        return self.leverage >= DETERMINED

    @property
    def mixing(self) -> FloatArray:
        """Per row, an upper bound on what the other rows may have added to its residue."""
        others = len(self.leverage) - 1
        bound: FloatArray = np.sqrt(np.clip(self.leverage * (1 - self.leverage), 0, None) * others)
        return self.seen.largest * bound


def gradients(view: AliceView) -> tuple[GradientSeen, ...]:
    """The gradient of every batch that Alice saw in clear, in order."""
    return view.observations.of_kind(GradientSeen)


def residue_step(view: AliceView) -> float:
    """The step of the public grid on which residues lie."""
    return 2.0**-view.agreement.residue_bits


def solve(view: AliceView, batches: Iterable[GradientSeen]) -> Iterator[Solved]:
    """Solve each batch; equal sizes are stacked, which makes small systems an order faster."""
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
    u, s, vt = np.linalg.svd(features.astype(np.float64), full_matrices=False)
    nonzero = _nonzero(s, features.shape)
    inverse = np.divide(1.0, s, out=np.zeros_like(s), where=nonzero)
    projected = np.einsum("kde,ke->kd", vt, totals.astype(np.float64)) * inverse
    # The solution in steps of the residues' grid, as the equations are integers.
    steps = np.einsum("kbd,kd->kb", u, projected)
    leverage = np.einsum("kbd,kd->kb", u**2, nonzero.astype(np.float64))
    full_rank = nonzero.sum(axis=1) == features.shape[1]
    largest = max(seen.largest for seen in stack) * 2.0**view.agreement.residue_bits
    exact = full_rank & _satisfied(features, steps, totals, largest)
    # The usual first-order bound, condition number times unit roundoff, with room for constants.
    rounding = s[:, 0] * np.max(inverse, axis=1) * features.shape[1] * 8 * np.finfo(np.float64).eps
    residues = steps * residue_step(view)
    for number, seen in enumerate(stack):
        yield Solved(
            seen,
            residues[number],
            leverage[number],
            bool(full_rank[number]),
            bool(exact[number]),
            seen.largest * float(rounding[number]),
        )


def _nonzero(s: FloatArray, shape: tuple[int, ...]) -> BoolArray:
    tolerance = s.max(axis=1, keepdims=True) * max(shape[1:]) * np.finfo(np.float64).eps
    significant: BoolArray = s > tolerance
    return significant


def _satisfied(
    features: IntArray, steps: FloatArray, totals: IntArray, largest: float
) -> BoolArray:
    """Which batches' rounded residues are possible ones and solve the equations in integers.

    No residue exceeds ``largest`` steps, so that the protocol's capacity keeps every sum below
    2^63: int64 products are the true ones and not their remainders.
    """
    whole = np.rint(steps)
    possible: BoolArray = np.abs(whole).max(axis=1) <= largest
    integers = np.where(possible[:, None], whole, 0.0).astype(np.int64)
    solved = (np.einsum("kbd,kb->kd", features, integers) == totals).all(axis=1)
    both: BoolArray = possible & solved
    return both


class ExactSolveAttack(Attack):
    """The paper's attack: the sign of a batch's solution ``r_i`` is the label.

    Where a batch is numerically of full rank the residues are integers on the public grid, and the
    attack checks that they satisfy Alice's integer equations to the last bit: a certificate, not an
    estimate. Without it a row is called certain only where its residue stands clear of rounding and
    of whatever the other rows may have mixed in.
    """

    name = "exact-solve"
    reference = "[Tan22] Sec. III-C, Eqs. 3 and 4"
    needs = frozenset({Signal.FEATURES, Signal.GRADIENTS})

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        rows = view.features.rows
        scores = np.zeros(rows)
        certain = np.zeros(rows, dtype=bool)
        # Less than half a step of the grid is a residue of zero, whose sign says nothing.
        half_step = residue_step(view) / 2
        tried = full = certified = 0
        for _, epoch in groupby(gradients(view), key=lambda seen: seen.epoch):
            open_batches = [seen for seen in epoch if not certain[seen.rows].all()]
            for solved in solve(view, open_batches):
                tried += 1
                full += solved.full_rank
                certified += solved.exact
                doubt = 0.0 if solved.exact else solved.rounding + solved.mixing
                clear = np.abs(solved.residues) > np.maximum(half_step, doubt)
                sure = solved.determined & clear & ~certain[solved.seen.rows]
                scores[solved.seen.rows[sure]] = np.sign(solved.residues[sure])
                certain[solved.seen.rows[sure]] = True
        remark = _remark(tried, full, certified, int(certain.sum()))
        return LabelGuess(scores, certain, certain, remark)


def _remark(tried: int, full: int, certified: int, rows: int) -> str:
    if not full:
        fixed = f", though they fix {rows} single rows" if rows else ""
        return f"not determined: none of {tried} batches has full rank{fixed}"
    others = "; the others are not determined" if full < tried else ""
    doubtful = f"; {full - certified} not certified to the last bit" if certified < full else ""
    return f"{full} of {tried} batches determined{others}{doubtful}"


_SEEN_AT_ALL = 1e-12


class LeastSquaresAttack(Attack):
    """The minimum-norm solution of each batch, whatever its size, summed over the epochs.

    Where a batch has more rows than Alice has columns the system leaves freedom; the solution of
    least norm is the projection of the true residues onto what she can see, and its sign is right
    more often than not. An estimate is ``leverage * residue`` plus a share of the other rows, so
    that the sum ranks first the rows she sees best; dividing by the leverage would rank first those
    she sees least.
    """

    name = "least-squares"
    reference = "minimum-norm solution of [Tan22] Eq. 3"
    needs = frozenset({Signal.FEATURES, Signal.GRADIENTS})

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        rows = view.features.rows
        total, weight = np.zeros(rows), np.zeros(rows)
        for solved in solve(view, gradients(view)):
            total[solved.seen.rows] += solved.residues
            weight[solved.seen.rows] += solved.leverage
        # A residue of less than half a step of the grid is zero, and its estimate only rounding:
        # the ratio is the estimate at the scale of a residue, however little of it was seen.
        residues = np.divide(total, weight, out=np.zeros(rows), where=weight > _SEEN_AT_ALL)
        signal = np.abs(residues) > residue_step(view) / 2
        return LabelGuess(total, signal, np.zeros(rows, dtype=bool))
