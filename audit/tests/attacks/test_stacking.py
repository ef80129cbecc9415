"""All epochs' equations at once: what they determine, and what is only claimed when proven."""

from __future__ import annotations

import numpy as np
import pytest
from audit.tests.attacks.evidence import known_run, numbers, run_of

from taciturn.rng import KeyedEntropy
from taciturn_audit.attacks.linear import ExactSolveAttack, gradients
from taciturn_audit.attacks.stacking import Block, StackingAttack, System
from taciturn_audit.judge import judge
from tests.seldom import seldom


@pytest.mark.parametrize(
    ("dataset", "batch_size", "epochs"),
    # More epochs reach larger batches.
    seldom(
        [
            ("sklearn-digits", 128, 4),
            ("breast-cancer", 65, 4),
            ("breast-cancer", 128, 6),
            ("breast-cancer", 256, 10),
        ],
        always=[("breast-cancer", 65, 4), ("breast-cancer", 128, 6)],
    ),
)
@pytest.mark.parametrize("permute_labels", [False, True])
def test_recovers_and_proves_every_label_of_batches_wider_than_the_columns(
    dataset, batch_size, epochs, permute_labels
):
    """Alice has 30 columns of breast-cancer and 64 of digits."""
    view, truth = known_run(
        dataset=dataset,
        batch_size=batch_size,
        epochs=epochs,
        permute_labels=permute_labels,
        seed=1,
    )
    assert not ExactSolveAttack().infer(view).certain.all()
    score = judge("", StackingAttack().infer(view), truth)
    assert score.accuracy == score.auc == 1.0
    assert score.decided == score.decided_correct == 1.0


def test_labels_between_0_and_1_need_fewer_equations_than_rows():
    """Two epochs of 30 equations for batches of 64: LSMR alone leaves labels open."""
    view, truth = known_run(batch_size=64, epochs=2, permute_labels=True, seed=1)
    system = System.from_batches(view, list(gradients(view)), lambda done, total: None)
    assert len(system.targets) < view.features.rows
    assert np.abs(system.solve()).min() < 0.4
    score = judge("", StackingAttack().infer(view), truth)
    assert score.accuracy == score.decided == score.decided_correct == 1.0


def test_too_few_equations_leave_labels_open():
    view, truth = known_run(batch_size=256, epochs=2, permute_labels=True)
    score = judge("", StackingAttack().infer(view), truth)
    assert score.decided == 0.0
    assert 0.6 < score.auc < 1.0
    assert numbers(score.remark)[:2] == [0, 4]


def test_a_residue_that_rounds_to_zero_hides_nothing():
    """exact-solve sees no sign there; the label is the residue plus the score."""
    view, truth = known_run(epochs=3, seed=1)
    assert not ExactSolveAttack().infer(view).certain.all()
    score = judge("", StackingAttack().infer(view), truth)
    assert score.accuracy == score.decided == 1.0


@pytest.mark.parametrize("seed", [2, 3])
def test_equal_rows_that_share_every_batch_are_not_called_certain(seed):
    """Ten rows make one batch of eight columns: the twins' labels, swapped, satisfy all as well."""
    values = KeyedEntropy.from_seed(3).uniform((12, 8)) - 0.5
    values[1:3] = values[0]
    options = {"epochs": 3, "batch_size": 10, "scale": "none", "test_fraction": 0.17}
    view, truth = run_of(values, [0, 1] * 6, seed=seed, **options)
    guess = StackingAttack().infer(view)
    ids = np.array(view.features.ids.series.to_list())
    twins = np.isin(ids, ["0", "1", "2"])
    assert len(set(truth.values[twins])) == 2
    assert not guess.certain[twins].any()
    assert guess.certain[~twins].all()
    assert judge("", guess, truth).decided_correct == 1.0


def test_the_proof_holds_for_single_rows_where_others_are_open():
    """Rows 0 and 1 are equal and differ in their label; row 2 stands alone."""
    basis = np.linalg.qr(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))[0]
    block = Block(np.array([[0, 1, 2]]), basis[None])
    labels = np.array([True, False, True])
    system = System(3, [block], basis.T @ (labels - 0.5))
    nobody = np.zeros(3, dtype=bool)
    assert system.proven(labels, nobody, 2.0**-20).tolist() == [False, False, True]
    assert not system.proven(~labels, nobody, 2.0**-20).any()
    assert not system.proven(labels, nobody, 1.0).any()


def test_no_wrong_label_is_ever_proven():
    """Random equations, and labels of which some are wrong: the proof must not cover those."""
    draw = np.random.default_rng(4)
    proven = 0
    for _ in range(60):
        basis = np.linalg.qr(draw.normal(size=(12, draw.integers(5, 12))))[0]
        truth = draw.random(12) < 0.5
        system = System(12, [Block(np.arange(12)[None], basis[None])], basis.T @ (truth - 0.5))
        wrong = draw.random(12) < 0.1
        certain = system.proven(truth ^ wrong, draw.random(12) < 0.2, 2.0**-20)
        assert not (certain & wrong).any()
        proven += int(certain.sum())
    assert proven > 100


def test_equal_rows_of_equal_labels_are_proven():
    """Their sum is 2, which only two ones give."""
    basis = np.linalg.qr(np.array([[1.0], [1.0]]))[0]
    block = Block(np.array([[0, 1]]), basis[None])
    labels = np.array([True, True])
    system = System(2, [block], basis.T @ (labels - 0.5))
    assert system.proven(labels, np.zeros(2, dtype=bool), 2.0**-20).all()
