"""Steps on a public schedule: the coordinates bound the curvature, and the loss falls as proven."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.numerics.likelihood import label_likelihood, weighted_likelihood
from taciturn.numerics.optimum import optimum, penalised_loss
from taciturn.numerics.shared_fraction import UNIT_BITS, momentum
from taciturn.numerics.whitening import Whitening
from taciturn.numerics.whole_table import fit_on_schedule

ROWS = 60


def tables(seed: int, alice: int, bob: int, intercept: bool):
    """Columns that have much in common, and labels that follow them."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(ROWS, 1))
    hers = common + 0.3 * rng.normal(size=(ROWS, alice))
    his = common + 0.3 * rng.normal(size=(ROWS, bob))
    if intercept:
        his = np.hstack([his, np.ones((ROWS, 1))])
    labels = (hers[:, 0] + rng.normal(size=ROWS) > 0.3).astype(np.int8)
    return hers, his, labels


@given(
    st.integers(0, 1000), st.integers(1, 5), st.integers(0, 4), st.booleans(), st.floats(1.0, 9.0)
)
def test_both_tables_together_curve_the_loss_by_at_most_one(seed, alice, bob, intercept, heaviest):
    hers, his, _ = tables(seed, alice, bob, intercept)
    sides = [(side, free) for side, free in ((hers, 0), (his, int(intercept))) if side.shape[1]]
    blocks, penalties = [], []
    for side, free in sides:
        others = sum(other.shape[1] for other, _ in sides) - side.shape[1]
        whitening = Whitening.fit(side, 0.01, free, heaviest).beside(others)
        blocks.append(whitening.apply(side))
        penalties.append(np.eye(side.shape[1]) - whitening.kept(0.01, free))
    joined = np.hstack(blocks)
    curvature = heaviest * joined.T @ joined / (4 * ROWS)
    at = 0
    for square in penalties:
        curvature[at : at + len(square), at : at + len(square)] += square
        at += len(square)
    assert np.linalg.eigvalsh(curvature).max() <= 1 + 1e-9


@pytest.mark.parametrize("class_weight", [None, (0.5, 3.0)])
@pytest.mark.parametrize(("alice", "bob", "intercept"), [(3, 0, False), (3, 0, True), (2, 2, True)])
def test_the_gap_is_within_its_bound_and_vanishes(alice, bob, intercept, class_weight):
    hers, his, labels = tables(5, alice, bob, intercept)
    joined, free = np.hstack([hers, his]), int(intercept)
    likelihood = label_likelihood(labels, partial(weighted_likelihood, class_weight=class_weight))
    best = optimum(joined, likelihood, 0.02, free)
    heaviest = max(class_weight or (1.0, 1.0))
    whitenings = [Whitening.fit(hers, 0.02, 0, heaviest).beside(his.shape[1])]
    if his.shape[1]:
        whitenings.append(Whitening.fit(his, 0.02, free, heaviest).beside(alice))
    parts = np.split(best.weights, [alice])[: len(whitenings)]
    length = sum(
        float(np.sum(w.whitened(part) ** 2)) for w, part in zip(whitenings, parts, strict=True)
    )
    for passes in (3, 10, 400):
        fit = fit_on_schedule(hers, his, likelihood, 0.02, free, passes, heaviest)
        weights = np.concatenate([fit.alice, fit.own])
        assert fit.scores == pytest.approx(joined @ weights, abs=1e-9)
        gap = penalised_loss(fit.scores, likelihood, weights, 0.02, free) - best.loss
        # Momenta are rounded down to their grid, which the bound does not know of.
        assert -1e-12 <= gap <= 1.1 * length / passes**2
    assert gap < 1e-8


def test_momenta_rise_towards_one_until_the_last_point():
    by_step, by_point = zip(*(momentum(number, 301) for number in range(299)), strict=True)
    for drawn in (by_step, by_point):
        assert list(drawn) == sorted(drawn)
        assert drawn[-1] < 1 << UNIT_BITS
    assert by_step[0] == 0
    assert momentum(299, 301) < (by_step[-1], by_point[-1])
