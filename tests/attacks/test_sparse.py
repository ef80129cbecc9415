"""Basis pursuit: hidden batches come back, proofs are right, and where recovery must stop it does."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.attacks.recovery import independent_columns, independent_rows, lone
from tacit.attacks.sparse import SparseAttack, recover_sparse
from tacit.audit.judge import judge
from tacit.audit.transition import first_hidden, largest_sparsity, recoverable
from tacit.protocol.events import GradientSeen
from tacit.rng import KeyedEntropy
from tests.attacks.evidence import DATASETS, applies, known_run, sits_at_chance


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("permute_labels", [False, True])
def test_recovers_the_labels_of_the_papers_hybrid(dataset, permute_labels):
    """At the paper's own L_RR, with labels that the columns explain and with shuffled ones."""
    view, truth = known_run(
        dataset=dataset, mechanism="hybrid", epochs=3, permute_labels=permute_labels
    )
    found = judge("", SparseAttack().infer(view), truth)
    assert found.accuracy > 0.9
    assert found.decided > 0.3
    assert found.decided_correct == 1.0


@pytest.mark.parametrize("dataset", DATASETS)
def test_sits_at_chance_against_labels_shuffled_after_the_run(dataset):
    view, truth = known_run(dataset=dataset, mechanism="hybrid", epochs=3)
    assert sits_at_chance(SparseAttack().infer(view), truth)


def test_a_batch_of_full_rank_needs_no_program():
    view, truth = known_run(epochs=1)
    found = judge("", SparseAttack().infer(view), truth)
    assert found.accuracy == found.decided == found.decided_correct == 1.0


def test_it_says_how_many_batches_were_looked_at():
    view, _ = known_run(mechanism="hybrid", epochs=3)
    assert "looked at 10 of" in SparseAttack(most_batches=10).infer(view).remark


def test_progress_is_told():
    view, _ = known_run(mechanism="hybrid", epochs=3)
    heard: list[tuple[int, int]] = []
    SparseAttack(most_batches=8).infer(view, lambda done, total: heard.append((done, total)))
    assert heard[-1] == (8, 8)


def test_it_needs_gradients():
    assert not applies(SparseAttack(), known_run(mechanism="add", epsilon=1.0, epochs=1)[0])
    assert applies(SparseAttack(), known_run(mechanism="hybrid", epochs=3)[0])


def test_the_residues_are_those_that_bob_encoded():
    """Certified members are the true batch, and their scaled residues tell its size."""
    view, truth = known_run(mechanism="hybrid", epochs=3)
    batch_size, proven = view.agreement.batch_size, 0
    for seen in view.observations.of(GradientSeen)[1:40]:
        found = recover_sparse(view, seen)
        if not found.certified:
            continue
        proven += 1
        f = view.probabilities(seen.rows, seen.weights)
        expected = batch_size / found.size * (truth.values[seen.rows] - f)
        np.testing.assert_allclose(
            found.residues[found.certain], expected[found.certain], atol=2.0**-19
        )
    assert proven > 5


# --- where it must stop ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delta", "rho"), [(0.1, 0.189), (0.25, 0.267), (0.5, 0.386), (0.9, 0.678)]
)
def test_the_curve_has_its_published_values(delta, rho):
    assert largest_sparsity(delta) == pytest.approx(rho, abs=1e-3)


@pytest.mark.parametrize("delta", [0.0, -1.0, 1.1])
def test_the_curve_is_of_shares(delta):
    with pytest.raises(ValueError, match="delta"):
        largest_sparsity(delta)


def test_the_first_hidden_length_is_the_first():
    for equations, nonzero in ((30, 16), (64, 32), (81, 32), (10, 5)):
        length = first_hidden(equations, nonzero)
        assert not recoverable(length, equations, nonzero)
        assert recoverable(length - 1, equations, nonzero)


@pytest.mark.parametrize(("length", "recovers"), [(60, True), (1200, False)])
def test_random_columns_follow_the_curve_away_from_it(length, recovers):
    """Forty equations, twelve non-zero residues: far below and far above the transition."""
    from tacit.attacks.sparse import _pursue

    coins = KeyedEntropy.from_seed(length)
    matrix = coins.uniform((length, 40)) - 0.5
    residues = np.zeros(length)
    residues[coins.permutation(length)[:12]] = np.where(coins.uniform((12,)) < 0.5, -0.5, 0.5)
    found = _pursue(matrix, matrix.T @ residues, 1.0, 10.0)
    error = np.abs(found.x[:length] - found.x[length:] - residues).max()
    assert (error < 1e-6) is recovers
    assert recoverable(length, 40, 12) is recovers


# --- helpers -----------------------------------------------------------------------------------


def test_twins_and_zero_rows_are_not_alone():
    rows = np.array([[1, 2], [3, 4], [1, 2], [0, 0]])
    assert lone(rows).tolist() == [False, True, False, False]


def test_independence_of_rows_and_columns():
    assert independent_rows(np.array([[1, 0], [0, 1], [1, 0]]))
    assert not independent_rows(np.array([[1, 0], [0, 1], [1, 1]]))
    matrix = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0]])
    assert len(independent_columns(matrix)) == np.linalg.matrix_rank(matrix) == 2
