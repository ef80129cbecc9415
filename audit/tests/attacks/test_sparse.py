"""Basis pursuit finds hidden batches, proves what it finds, and never proves a wrong label."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from audit.tests.attacks.evidence import known_run, numbers, run_of, sits_at_chance

from taciturn.protocol.observations import GradientSeen
from taciturn_audit.attacks.base import ModelOnlyControl
from taciturn_audit.attacks.linear import gradients
from taciturn_audit.attacks.sparse import SparseAttack, recover_sparse
from taciturn_audit.judge import judge
from taciturn_audit.views.alice_view import AliceView, Observations
from tests.modules import module_of

BITS = 20


@pytest.fixture(scope="module")
def hidden():
    """The paper's breast-cancer: 16 of about 40 rows, 30 columns."""
    return known_run(mechanism="hybrid", epochs=10)


def made_up(features: np.ndarray, steps: np.ndarray) -> AliceView:
    """A view of one hidden batch with these residues, in steps of their grid."""
    rows = np.arange(len(features))
    weights = np.zeros(features.shape[1])
    seen = GradientSeen(1, 0, rows, weights, features.T @ steps, largest=8.0)
    view = SimpleNamespace(
        agreement=SimpleNamespace(feature_bits=16, residue_bits=BITS, batch_size=8),
        features=SimpleNamespace(rows=len(features)),
        encoded=lambda wanted: features[wanted],
        observations=Observations(weights, (seen,)),
    )
    return cast(AliceView, view)


def drawn(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.rint(np.random.default_rng(seed).normal(size=(rows, columns)) * 2**16).astype(int)


@pytest.mark.slow  # some seconds
@pytest.mark.parametrize("permute_labels", [False, True])
@pytest.mark.parametrize(
    ("dataset", "least", "proven"), [("breast-cancer", 0.98, 0.7), ("sklearn-digits", 0.9, 0.2)]
)
def test_recovers_the_labels_of_hidden_batches(dataset, least, proven, permute_labels):
    """Digits: the paper's 32 of about 70 rows and 64 columns, some 55 of them independent."""
    view, truth = known_run(
        dataset=dataset, mechanism="hybrid", epochs=10, permute_labels=permute_labels
    )
    guess = SparseAttack(most_batches=150).infer(view).completed(ModelOnlyControl().infer(view))
    score = judge("", guess, truth)
    assert score.accuracy > least
    assert score.decided > proven
    assert score.decided_correct == 1.0
    assert sits_at_chance(guess, truth)


def test_batches_of_full_rank_need_no_linear_program(monkeypatch):
    view, truth = known_run(batch_size=16, epochs=1, learning_rate=0.01)
    monkeypatch.setattr(module_of(SparseAttack), "linprog", None)
    guess = SparseAttack().infer(view)
    assert guess.certain.all()
    assert judge("", guess, truth).accuracy == 1.0
    assert numbers(guess.remark) == [29, 29, 29]


def test_wide_batches_that_are_not_sparse_are_estimated_and_never_certain():
    view, truth = known_run(batch_size=65, epochs=10, permute_labels=True)
    guess = SparseAttack().infer(view)
    assert not guess.certain.any()
    assert judge("", guess, truth).auc > 0.8
    assert numbers(guess.remark)[2] == 0


def test_recovers_integers_to_the_last_bit():
    steps = np.zeros(30, dtype=int)
    steps[[2, 5, 11, 17]] = [700_001, -123_457, 31, -2]
    view = made_up(drawn(30, 20), steps)
    (seen,) = gradients(view)
    recovered = recover_sparse(view, seen)
    assert recovered.certified
    assert np.rint(recovered.residues * 2**BITS).astype(int).tolist() == steps.tolist()
    assert recovered.size == 4
    assert np.flatnonzero(recovered.certain).tolist() == [2, 5, 11, 17]


def test_twins_equal_residues_and_single_steps_are_not_called_certain():
    features = drawn(30, 20)
    features[3] = features[2]
    steps = np.zeros(30, dtype=int)
    steps[[2, 5, 11, 17, 20]] = [700_001, -123_457, 1, 4_242, -4_242]
    view = made_up(features, steps)
    (seen,) = gradients(view)
    assert np.flatnonzero(recover_sparse(view, seen).certain).tolist() == [5]


def test_a_row_that_may_hide_in_others_does_not_make_them_certain():
    """Four members of which one is the sum of two less the third: three rows would do as well."""
    features = drawn(30, 20)
    features[4] = features[2] + features[5] - features[8]
    steps = np.zeros(30, dtype=int)
    steps[[2, 4, 5, 8, 11]] = [700_001, 300_007, 123_457, -250_003, 4_242]
    view = made_up(features, steps)
    (seen,) = gradients(view)
    recovered = recover_sparse(view, seen)
    assert recovered.size == 4
    assert np.flatnonzero(recovered.certain).tolist() == [11]


def test_the_first_iteration_is_never_certified(hidden):
    """All residues are of one size there, so that sums of rows can be exchanged."""
    view, _ = hidden
    first, second = gradients(view)[:2]
    assert not recover_sparse(view, first).certain.any()
    assert recover_sparse(view, second).certain.any()


def test_a_batch_without_spare_equations_is_not_certified():
    """Nine of thirty rows, ten equations: the sparsest solution is another one."""
    steps = np.zeros(30, dtype=int)
    steps[:9] = np.random.default_rng(5).integers(-(2**20), 2**20, 9)
    view = made_up(drawn(30, 10), steps)
    (seen,) = gradients(view)
    recovered = recover_sparse(view, seen)
    assert not recovered.certified
    assert not recovered.failed
    assert not recovered.certain.any()


def test_dense_hidden_batches_are_out_of_reach_for_most_but_none_is_wrong():
    """8 of 15 rows and 10 columns, the sizes of give-me-some-credit."""
    draw = np.random.default_rng(1)
    options = {"mechanism": "hybrid", "batch_size": 8, "l_rr": 15, "epochs": 5}
    view, truth = run_of(draw.normal(size=(300, 10)), draw.integers(0, 2, 300), **options)
    guess = SparseAttack().infer(view)
    score = judge("", guess, truth)
    certified = numbers(guess.remark)[2]
    assert certified < 0.3 * len(gradients(view))
    assert score.decided_correct in (None, 1.0)


def test_programs_that_take_too_long_are_counted_and_batches_are_sampled(hidden):
    view, _ = hidden
    guess = SparseAttack(most_batches=10, program=0.0).infer(view)
    assert not guess.signal.any()
    assert numbers(guess.remark) == [10, 290, 0, 10]
    assert numbers(SparseAttack(work=0.0).infer(view).remark)[:2] == [0, 290]
