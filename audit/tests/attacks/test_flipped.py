"""Attacks on ``label-rr``: they recover flipped labels, and are right as often as these are."""

from __future__ import annotations

import numpy as np
import pytest
from audit.tests.attacks.evidence import known_run, numbers, sits_at_chance

from taciturn.data.label_table import LabelTable
from taciturn.privacy.label_response import FlippedLabels
from taciturn.simulation import RunEntropy
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.attacks.known_scores import KnownScoresAttack
from taciturn_audit.attacks.linear import ExactSolveAttack, LeastSquaresAttack, gradients
from taciturn_audit.attacks.sparse import SparseAttack
from taciturn_audit.attacks.stacking import StackingAttack, largest_gap
from taciturn_audit.runner import examine
from taciturn_audit.views.alice_view import AliceView
from tests.privacy.odds import happens
from tests.seldom import seldom

SEED = 5
SOLVERS: tuple[Attack, ...] = (
    ExactSolveAttack(),
    LeastSquaresAttack(),
    SparseAttack(),
    KnownScoresAttack(work=5_000.0),
    StackingAttack(),
)


def flipped_run(
    epsilon: float, **options: object
) -> tuple[AliceView, LabelTable, LabelTable, float]:
    """A view, the truth, the flipped labels it rests on, and how often these are true."""
    view, truth = known_run(mechanism="label-rr", epsilon=epsilon, permute_labels=True, **options)
    method = view.mechanism
    assert isinstance(method, FlippedLabels)
    entropy = RunEntropy.for_seed(SEED).bob.fork("label response")
    return view, truth, method.respond(truth, entropy), method.keep


def accuracy(guess: LabelGuess, labels: LabelTable) -> float:
    return float(((guess.scores > 0) == (labels.values == 1)).mean())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("epsilon", seldom([0.1, 1.0, 3.0], always=[1.0]))
@pytest.mark.parametrize("attack", SOLVERS, ids=lambda attack: attack.name)
def test_where_batches_are_determined_every_flipped_label_is_recovered(attack, epsilon):
    view, truth, flipped, keep = flipped_run(epsilon)
    guess = attack.infer(view)
    assert accuracy(guess, flipped) > 0.995
    right = round(truth.rows * accuracy(guess, truth))
    assert happens(right, truth.rows, keep)
    assert sits_at_chance(guess, truth)


@pytest.mark.slow  # some seconds
@pytest.mark.parametrize("epsilon", seldom([0.3, 2.0], always=[0.3]))
@pytest.mark.parametrize(
    "attack", [KnownScoresAttack(work=8_000.0), StackingAttack()], ids=lambda attack: attack.name
)
def test_larger_batches_are_solved_with_the_corrected_residues(attack, epsilon):
    """48 rows by 30 columns: no batch is determined, ten epochs together are."""
    view, _, flipped, _ = flipped_run(epsilon, batch_size=48)
    guess = attack.infer(view)
    assert accuracy(guess, flipped) > 0.99
    assert (guess.scores[guess.certain] > 0).tolist() == (
        flipped.values[guess.certain] == 1
    ).tolist()
    assert guess.certain.mean() > 0.5


def test_the_views_two_residues_are_those_of_bobs_program():
    view, _, flipped, _ = flipped_run(1.0)
    scale = 2.0**view.agreement.residue_bits
    for seen in gradients(view)[::40]:
        one, zero = view.residues(seen.rows, seen.weights)
        residues = np.where(flipped.values[seen.rows] == 1, one, zero)
        steps = np.rint(residues * scale).astype(np.int64)
        assert (steps @ view.encoded(seen.rows) == seen.gradient).all()
    assert largest_gap(view) == pytest.approx(np.tanh(0.5))


@pytest.mark.slow  # some seconds
def test_the_audit_calls_no_label_certain_and_says_what_a_flipped_one_is_worth():
    view, truth, flipped, keep = flipped_run(1.0)
    examination = examine(view, truth, attacks=SOLVERS)
    findings = examination.findings
    for score in findings.attacks:
        assert score.decided == 0.0
        assert score.decided_correct is None
        assert f"{keep:.4f}" in score.remark
    assert truth.rows in numbers(findings.attacks[0].remark)
    assert [control.name for control in findings.controls] == ["prior", "model-only"]
    assert accuracy(examination.guesses["exact-solve"], flipped) == 1.0


def test_where_bob_has_columns_the_equations_still_give_flipped_labels():
    view, truth, flipped, keep = flipped_run(1.0, alice_columns="half", batch_size=12)
    guess = ExactSolveAttack().infer(view)
    assert accuracy(guess, flipped) > 0.99
    assert happens(round(truth.rows * accuracy(guess, truth)), truth.rows, keep)
