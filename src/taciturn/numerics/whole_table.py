"""Whole-table training in clear: the reference of both solvers, and the optimum itself.

**On a schedule** (the optimised gradient method): where no score is seen there is no search. Each
side changes to coordinates in which the loss of *both* tables curves by at most 1, alone and
without a label (``Whitening.beside``; of columns less their means, where there is an intercept),
and then

    w_(k+1) = (I - P) y_k + X^T (y - sigma(z)) / n       z = X_A y_A + X_B y_B
    y_(k+1) = w_(k+1) + b_k (w_(k+1) - w_k) + g_k (w_(k+1) - y_k)

is a step of length 1 on the penalised loss, P the penalty in these coordinates. The momenta are
``b_k = (t_k - 1) / t_(k+1)`` and ``g_k = t_k / t_(k+1)`` with ``t_(k+1) = (1 + sqrt(1 + 4 t_k^2)) /
2``, and 8 in place of 4 for the last point. The loss of that point y_N is within ``|w*|^2 / (N +
1)^2`` of its least [KimFessler16]: half of what Nesterov's acceleration has, the case ``g = 0``.
The model is w after a step from there, which is no worse. Of many rows most steps use a block
(``table_schedule``).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.families.base import Family
from taciturn.families.registry import BINOMIAL, FAMILIES
from taciturn.memmap import over_blocks
from taciturn.numerics.damped import damped_solve
from taciturn.numerics.likelihood import Likelihood
from taciturn.numerics.logistic import Penalty
from taciturn.numerics.shared_fraction import UNIT_BITS
from taciturn.numerics.subspace import SubspaceSolver
from taciturn.numerics.table_schedule import TableSchedule
from taciturn.numerics.whitening import Whitening, centred, centring_offset, training_means

# Newton's method on a convex loss needs about ten; a loss that is not convex may need more.
_MOST_ITERATIONS = 200
_HALVINGS = 40


class Fit(NamedTuple):
    """A model of both parties' columns: weights of Alice's and of Bob's, and the rows' scores."""

    alice: FloatArray
    own: FloatArray
    scores: FloatArray


class Optimum(NamedTuple):
    """Best weights and their penalised mean loss."""

    weights: FloatArray
    loss: float


def fit_in_clear(
    alice: FloatArray,
    bob_columns: FloatArray,
    likelihood: Likelihood,
    l2: float,
    free: int,
    passes: int,
    widths: Sequence[int] = (),
    family: Family = FAMILIES[BINOMIAL],
) -> Fit:
    """Fit by the subspace search in clear, without fixed point.

    ``alice`` has the columns of all Alices, ``widths`` how many are whose. The last ``free`` of
    Bob's columns (the intercept) carry no penalty; where there is one, columns are centred.
    """
    several, means = len(widths) > 1, training_means(alice) if free else None
    if several:
        # Tables side by side, divided by one number: no direction has long weights.
        size = float(np.sqrt(np.sum(np.square(centred(alice, means))) / len(alice))) / 2.0
        whitening = Whitening(np.eye(alice.shape[1]) * (size or 1.0), means)
    else:
        whitening = Whitening.fit(alice, l2, means=means)
    price = l2 / whitening.factor[0, 0] ** 2 if several else None
    whitened = whitening.apply(alice)
    solver = SubspaceSolver(
        likelihood, bob_columns, l2, free, passes, unwhitened=price, family=family
    )
    for number in range(1, passes + 1):
        direction = solver.direction()
        solver.add(direction, whitened @ (direction @ whitened), last=number == passes)
    weights, own_weights = whitening.weights(solver.combination() @ whitened), solver.weights.copy()
    if free:
        own_weights[-1] += centring_offset(weights, means)
    return Fit(weights, own_weights, solver.scores())


def fit_on_schedule(
    alice: FloatArray,
    bob_columns: FloatArray,
    likelihood: Likelihood,
    l2: float,
    free: int,
    passes: int,
    heaviest: float = 1.0,
) -> Fit:
    """Fit by steps on the public schedule in clear, without fixed point.

    The last ``free`` of Bob's columns (the intercept) carry no penalty; where there is one, all
    columns are centred. ``heaviest`` is the largest class weight. Blocks are of the rows in the
    order given.
    """
    sides = [(values, at) for values, at in ((alice, 0), (bob_columns, free)) if values.shape[1]]
    counts = [values.shape[1] for values, _ in sides]
    rows = len(alice)
    schedule = TableSchedule(rows, sum(counts), passes)
    blocks = schedule.blocks
    whitenings = []
    for values, at in sides:
        means = training_means(values, at) if free else None
        others = sum(counts) - values.shape[1] - (free - at)
        whitening = Whitening.fit(values, l2, at, heaviest, means)
        weight, tables = heaviest * len(blocks) / rows, (values[block] for block in blocks)
        whitenings.append(whitening.bounding(tables, weight, l2).beside(others))
    table = np.hstack([w.apply(side) for w, (side, _) in zip(whitenings, sides, strict=True)])
    kept = _blocks([w.kept(l2, at) for w, (_, at) in zip(whitenings, sides, strict=True)])
    now = ahead = start = np.zeros(table.shape[1])
    residues = product = np.empty(0)
    for number in range(schedule.steps):
        block = schedule.block(number)
        if block is None:
            residues = likelihood(table @ ahead).slope
            start, product = ahead, kept @ ahead + table.T @ residues / rows
            step = product
        else:
            taken = blocks[block]
            change = likelihood(table[taken] @ ahead, taken).slope - residues[taken]
            change *= len(blocks) / rows
            step = product + kept @ (ahead - start) + change @ table[taken]
        before, now = now, step
        by_step, by_point = (one / (1 << UNIT_BITS) for one in schedule.momentum(number))
        ahead = now + by_step * (now - before) + by_point * (now - ahead)
    parts = np.split(now, np.cumsum(counts)[:-1])
    weights = [w.weights(part) for w, part in zip(whitenings, parts, strict=True)]
    if free:
        weights[1][-1] += centring_offset(weights[0], whitenings[0].means)
    return Fit(weights[0], weights[1] if len(weights) > 1 else np.empty(0), table @ now)


def _blocks(squares: list[FloatArray]) -> FloatArray:
    size = sum(len(square) for square in squares)
    whole, at = np.zeros((size, size)), 0
    for square in squares:
        whole[at : at + len(square), at : at + len(square)] = square
        at += len(square)
    return whole


def penalised_loss(
    scores: FloatArray, likelihood: Likelihood, weights: FloatArray, l2: float, free: int
) -> float:
    """Mean loss plus penalty; the last ``free`` weights (the intercept) cost nothing."""
    return Penalty(l2=l2).value(weights, free) - float(np.mean(likelihood(scores).value))


def optimum(joined: FloatArray, likelihood: Likelihood, l2: float, free: int) -> Optimum:
    """Minimum of the penalised loss over all columns, to machine precision.

    Newton's method from zero, with halved steps. Where the loss is not convex (flipped labels) it
    is a minimum, which need not be the least. The last ``free`` columns (the intercept) carry no
    penalty; where there is one, columns are centred.
    """
    means = training_means(joined, free) if free else None
    penalty = Penalty(l2=l2)
    rows, columns = joined.shape
    ridge = np.full(columns, l2)
    ridge[columns - free :] = 0.0
    weights = np.zeros(columns)

    def curved(place: slice) -> tuple[FloatArray, FloatArray]:
        block = centred(joined[place], means)
        state = likelihood(block @ weights, place)
        return state.slope @ block, (block * state.curvature[:, None]).T @ block

    def loss_of(trial: FloatArray) -> float:
        def value(place: slice) -> float:
            scores = centred(joined[place], means) @ trial
            return float(np.sum(likelihood(scores, place).value))

        mean = sum(over_blocks(value, rows, joined)) / rows
        return float(penalty.value(trial, free) - mean)

    loss = loss_of(weights)
    for _ in range(_MOST_ITERATIONS):
        slopes, curvatures = zip(*over_blocks(curved, rows, joined), strict=True)
        slope = penalty.gradient(weights, free) - reduce(operator.add, slopes) / rows
        matrix = reduce(operator.add, curvatures) / rows + np.diag(ridge)
        step = -damped_solve(matrix, slope)
        if slope @ step > 0.0:
            # Uphill, by a negative curvature of flipped labels.
            step = -damped_solve(matrix, slope, most=columns)
        for halving in range(_HALVINGS):
            trial = weights + 0.5**halving * step
            lower = loss_of(trial)
            if lower < loss:
                break
        else:
            break
        weights, loss = trial, lower
    if free:
        weights[-1] += centring_offset(weights, means)
    return Optimum(weights, loss)
