"""Solving for residues: what a batch determines, and what is only claimed when proven."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from audit.tests.attacks.evidence import known_run, numbers, run_of
from threadpoolctl import threadpool_info, threadpool_limits

from taciturn.engine.callbacks import ReportProgress
from taciturn.families.binomial import sigmoid
from taciturn.protocol.observations import GradientSeen
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.attacks.linear import ExactSolveAttack, gradients, residue_step, solve
from taciturn_audit.judge import judge
from taciturn_audit.views.alice_view import AliceView, Observations


def made_up(features: list[list[int]], *epochs: list[int], largest: float = 1.0) -> AliceView:
    """A view in which all rows make one batch an epoch; its gradients are given."""
    matrix = np.array(features)
    rows = np.arange(len(matrix))
    weights = np.zeros(matrix.shape[1])
    seen = tuple(
        GradientSeen(epoch, epoch, rows, weights, np.array(gradient), largest)
        for epoch, gradient in enumerate(epochs)
    )
    view = SimpleNamespace(
        agreement=SimpleNamespace(residue_bits=20),
        features=SimpleNamespace(rows=len(matrix)),
        encoded=lambda wanted: matrix[wanted],
        observations=Observations(weights, seen),
    )
    return cast(AliceView, view)


def blas_threads() -> set[int]:
    """On how many threads each library of linear algebra works now."""
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


class Counting(Attack):
    """Notes on how many threads it was run."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        self.threads = blas_threads()
        none = np.zeros(view.features.rows, dtype=bool)
        return LabelGuess(none * 1.0, none, none)


def test_whoever_runs_an_attack_runs_it_on_one_thread():
    attack = Counting()
    with threadpool_limits(limits=2, user_api="blas"):
        attack.infer(made_up([[1]]))
        assert attack.threads == {1}
        assert blas_threads() == {2}


@pytest.mark.parametrize(
    ("batch_size", "certain", "batches"),
    # Of batches wider than her 30 columns only the short last one is solved.
    [(16, 455, [29, 29]), (64, 455 % 64, [1, 8])],
)
def test_exact_solve_is_certain_and_says_how_many_batches_it_solved(batch_size, certain, batches):
    view, truth = known_run(batch_size=batch_size, epochs=1, learning_rate=0.01)
    guess = ExactSolveAttack().infer(view)
    assert guess.certain.sum() == certain
    assert judge("", guess, truth).decided_correct == 1.0
    assert numbers(guess.remark) == batches


def test_a_residue_that_rounds_to_zero_has_no_sign_and_is_not_called_certain():
    """With seed 1 one row is scored so surely that its residue is below half a step of the grid."""
    view, truth = known_run(epochs=3, seed=1)
    guess = ExactSolveAttack().infer(view)
    (row,) = np.flatnonzero(~guess.certain)
    batch = next(seen for seen in gradients(view) if row in seen.rows)
    score = view.features.values[row] @ batch.weights
    assert abs(truth.values[row] - 1 / (1 + np.exp(-score))) < 2.0**-21
    assert not guess.signal[row]


def test_exact_solve_says_not_determined_where_no_batch_is():
    """Batches of 65 rows, of which 455 make exactly seven: no short one."""
    view, _ = known_run(batch_size=65, epochs=4)
    guess = ExactSolveAttack().infer(view)
    assert not guess.certain.any()
    assert not guess.signal.any()
    assert numbers(guess.remark) == [28]


def test_solved_residues_are_the_true_ones_to_the_last_bit():
    """The residues are recomputed from labels and scores, which no attack has."""
    view, truth = known_run(epochs=3)
    for solved in solve(view, gradients(view)[:29]):
        rows = solved.seen.rows
        scores = view.features.values[rows] @ solved.seen.weights
        residues = truth.values[rows] - 1 / (1 + np.exp(-scores))
        assert solved.exact
        assert solved.full_rank
        assert np.abs(solved.residues - residues).max() < residue_step(view)
        np.testing.assert_allclose(solved.leverage, 1.0)


@pytest.fixture(scope="module")
def heavy_tailed():
    """One column with a few huge values, which all but drown the other rows of their batch."""
    normal = np.random.default_rng(0).normal(size=800)
    labels = np.random.default_rng(1).integers(0, 2, size=800)
    values = np.minimum(np.exp(4 * normal), 1e5)[:, None]
    options = {"scale": "none", "learning_rate": 0.01, "batch_size": 4, "epochs": 5}
    return run_of(values, labels, **options)


def test_other_rows_add_no_more_than_the_mixing(heavy_tailed):
    view, truth = heavy_tailed
    for solved in solve(view, gradients(view)):
        rows = solved.seen.rows
        residues = truth.values[rows] - sigmoid(view.features.values[rows] @ solved.seen.weights)
        added = np.abs(solved.residues - solved.leverage * residues)
        slack = solved.rounding + 2 * residue_step(view)
        assert (added <= solved.mixing + slack).all()


# Two rows of determinant 1 and condition number 4 * 2^36: of full rank, yet hard to solve.
STEEP = [[1 << 18, (1 << 18) - 1], [(1 << 18) + 1, 1 << 18]]


def test_an_ill_conditioned_batch_counts_as_of_full_rank_without_a_certificate():
    gradient = np.array(STEEP).T @ np.array([500_001, -250_003])
    view = made_up(STEEP, gradient.tolist())
    (solved,) = solve(view, gradients(view))
    assert solved.full_rank
    assert not solved.exact
    guess = ExactSolveAttack().infer(view)
    assert guess.scores.tolist() == [1.0, -1.0]
    assert numbers(guess.remark) == [1, 1, 1]


def test_no_certificate_for_residues_that_cannot_be():
    """A residue of 4 solves the equation, but residues are at most 1: the integers say nothing."""
    view = made_up([[1 << 40]], [1 << 62])
    (solved,) = solve(view, gradients(view))
    assert solved.residues.tolist() == [4.0]
    assert solved.full_rank
    assert not solved.exact


def test_a_row_is_taken_from_the_first_batch_that_determines_it():
    """The second row's residue is zero at first, so the batch is looked at again."""
    unit = [[1 << 16, 0], [0, 1 << 16]]
    half = 1 << 35
    view = made_up(unit, [half, 0], [-half, half])
    assert ExactSolveAttack().infer(view).scores.tolist() == [1.0, 1.0]


def test_rows_that_cannot_be_told_apart_are_not_called_certain():
    """Of two equal rows in one batch only the sum of their residues is known."""
    features = np.array([[1 << 16, 0], [1 << 16, 0], [0, 1 << 16]])
    gradient = features.T @ np.array([500_001, -250_003, 400_000])
    guess = ExactSolveAttack().infer(made_up(features.tolist(), gradient.tolist()))
    assert guess.certain.tolist() == [False, False, True]


def test_a_guess_without_signal_takes_the_fallback():
    partial = LabelGuess(
        np.array([1.0, 9.0]), np.array([True, False]), np.array([True, False]), "half"
    )
    other = LabelGuess(np.array([-1.0, -0.25]), np.ones(2, bool), np.zeros(2, bool))
    whole = partial.completed(other)
    assert whole.scores.tolist() == [1.0, -0.25]
    assert whole.certain.tolist() == [True, False]
    assert whole.remark == "half"


def test_a_large_residue_of_another_row_is_not_taken_for_a_sign():
    """The first row is seen almost alone; the other's residue of 3 outweighs its own."""
    features, residues = np.array([[100_000], [7]]), np.array([-105, 3 << 20])
    view = made_up(features.tolist(), (residues @ features).tolist(), largest=3.0)
    (solved,) = solve(view, gradients(view))
    assert solved.determined[0]
    assert solved.residues[0] > 0
    assert not ExactSolveAttack().infer(view).certain.any()
