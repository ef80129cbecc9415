"""Whole-table training in clear: the reference of both solvers.

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

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.families.base import Family
from taciturn.families.registry import BINOMIAL, FAMILIES
from taciturn.numerics.likelihood import Likelihood
from taciturn.numerics.shared_fraction import UNIT_BITS
from taciturn.numerics.subspace import SubspaceSolver
from taciturn.numerics.table_schedule import TableSchedule
from taciturn.numerics.whitening import Whitening, centred, centring_offset, training_means


class Fit(NamedTuple):
    """A model of both parties' columns: weights of Alice's and of Bob's, and the rows' scores."""

    alice: FloatArray
    own: FloatArray
    scores: FloatArray


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
