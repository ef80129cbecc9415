"""Where scores are known, evidence names the labels and the integers prove them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from audit.tests.attacks.evidence import known_run, run_of, sits_at_chance

from taciturn_audit.attacks.base import ModelOnlyControl
from taciturn_audit.attacks.integer_program import Search, exchangeable
from taciturn_audit.attacks.known_scores import KnownScoresAttack, recover_states
from taciturn_audit.attacks.linear import gradients
from taciturn_audit.attacks.posterior import Law, gather, hear
from taciturn_audit.attacks.recovery import System, lone
from taciturn_audit.judge import judge
from taciturn_audit.views.alice_view import AliceView
from tests.seldom import seldom

# Bounded by the batches alone.
MANY_NODES = 10_000
UNHURRIED = KnownScoresAttack(nodes=MANY_NODES, work=math.inf)


@pytest.fixture(scope="module")
def hidden():
    """The paper's breast-cancer: 16 of about 40 rows, 30 columns."""
    return known_run(mechanism="hybrid", epochs=10)


@pytest.fixture(scope="module")
def wide():
    """65 rows, more than twice the 30 columns, and labels that the features do not explain."""
    return known_run(batch_size=65, epochs=3, permute_labels=True)


def search(view: AliceView, number: int, nodes: int = MANY_NODES) -> Search:
    seen = gradients(view)[number]
    odds = np.zeros(len(seen.rows))
    return Search(
        System.from_view(view, seen),
        Law.from_view(view),
        *view.residues(seen.rows, seen.weights),
        odds,
        hear(view, seen, odds).member,
        np.zeros(len(odds), dtype=bool),
        nodes,
    )


@pytest.mark.slow  # a minute
@pytest.mark.parametrize("permute_labels", [False, True], ids=["labels", "canary"])
@pytest.mark.parametrize("dataset", ["breast-cancer", "sklearn-digits"])
def test_recovers_the_labels_of_hidden_batches(dataset, permute_labels):
    """At the paper's sizes: 16 of 40 rows by 30 columns; digits 32 of 70 rows by 64 columns."""
    options = {"dataset": dataset, "permute_labels": permute_labels}
    view, truth = known_run(mechanism="hybrid", epochs=10, **options)
    guess = UNHURRIED.infer(view).completed(ModelOnlyControl().infer(view))
    score = judge("", guess, truth)
    assert score.accuracy > 0.99
    assert score.auc > 0.99
    assert score.decided > 0.9
    assert score.decided_correct == 1.0
    assert sits_at_chance(guess, truth)


@pytest.mark.parametrize(
    ("batch_size", "permute_labels"),
    seldom([(50, False), (50, True), (65, True)], always=[(50, True)]),
)
def test_proves_every_label_of_wide_batches(batch_size, permute_labels):
    """Below twice the 30 columns the linear relaxation is integral; beyond, it branches."""
    view, truth = known_run(batch_size=batch_size, epochs=2, permute_labels=permute_labels)
    score = judge("", UNHURRIED.infer(view), truth)
    assert score.accuracy == 1.0
    assert score.decided > 0.9
    assert score.decided_correct == 1.0


def test_evidence_alone_recovers_every_label_where_batches_are_wide():
    """Ten epochs of 100 rows by 30 columns, labels that the features do not explain."""
    view, truth = known_run(batch_size=100, epochs=10, permute_labels=True)
    odds = gather(view, gradients(view))
    assert ((odds > 0) == (truth.values == 1)).all()


def test_evidence_is_calibrated_enough_to_be_believed():
    """Of the odds that are still open after two epochs, those of 4 and more are rarely wrong."""
    view, truth = known_run(
        dataset="sklearn-digits", mechanism="hybrid", epochs=2, permute_labels=True, seed=1
    )
    odds = gather(view, gradients(view))
    right = (odds > 0) == (truth.values == 1)
    assert right.mean() > 0.9
    assert right[np.abs(odds) > 4].mean() > 0.99


def test_true_states_give_the_integers_that_bob_encoded():
    """For every batch of a run, to the last bit; the truth is not an attack's to know."""
    view, truth = known_run(batch_size=40, epochs=3)
    for number, seen in enumerate(gradients(view)):
        asked = search(view, number)
        states = 2 * truth.values[seen.rows].astype(np.int64) - 1
        steps = asked._encoded(states)
        assert asked.system.holds(steps)
        assert asked.proven(states) is not None
        states[0] = -states[0]
        assert asked.proven(states) is None or abs(steps[0]) < 2


def test_faint_rows_are_fitted_whatever_their_state(hidden):
    """Late in training some rows' residues are a few steps, and any state would do for them."""
    view, truth = hidden
    met = 0
    for number in range(150, 290):
        asked = search(view, number)
        states = asked.find()
        if states is None or asked.system.holds(asked._encoded(states)):
            continue
        steps = asked.proven(states)
        if steps is not None:
            rows = asked.system.seen.rows
            distinct = np.abs(steps) > 1
            assert ((steps > 0) == (truth.values[rows] == 1))[distinct].all()
            met += 1
        if met == 3:
            return
    pytest.fail(f"only {met} batches had faint rows in a wrong state")


def test_labels_that_can_be_exchanged_are_not_proven():
    """Two and two rows of equal sum: their labels can be flipped together."""
    matrix = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert exchangeable(matrix, np.array([1, 1, -1, 1])).tolist() == [True, True, True, False]
    assert not exchangeable(matrix, np.array([1, 1, 1, 1])).any()
    assert not exchangeable(matrix, np.array([1, 1, 0, -1])).any()


@pytest.mark.slow  # some seconds
def test_twins_of_different_labels_are_never_certain():
    """Columns of two levels: most rows have a twin somewhere, and some batches hold both."""
    draw = np.random.default_rng(2)
    values = draw.integers(0, 3, size=(200, 5))
    view, truth = run_of(values, draw.integers(0, 2, 200), batch_size=12, epochs=4, seed=3)
    guess = UNHURRIED.infer(view)
    assert judge("", guess, truth).decided_correct == 1.0
    proven = 0
    for seen in gradients(view):
        recovered = recover_states(view, seen, np.zeros(160), np.zeros(160, dtype=bool), MANY_NODES)
        assert not recovered.certain[~lone(view.encoded(seen.rows))].any()
        right = np.sign(recovered.residues) == 2 * truth.values[seen.rows] - 1
        assert right[recovered.certain].all()
        proven += int(recovered.certain.sum())
    assert proven > 0


def test_in_the_first_iteration_the_integer_program_must_find_no_other_solution(hidden):
    """All residues are of one size there, so that chance is no argument."""
    view, truth = hidden
    asked = search(view, 0)
    assert np.ptp(asked.one) == 0
    states = asked.find()
    assert states is not None
    assert asked.proven(states) is not None
    sure = asked.unique(states)
    rows = asked.system.seen.rows
    assert ((states > 0) == (truth.values[rows] == 1))[sure].all()


def test_a_search_that_runs_out_of_nodes_proves_nothing(wide):
    view, _ = wide
    recovered = recover_states(
        view, gradients(view)[20], np.zeros(455), np.zeros(455, dtype=bool), 0
    )
    assert recovered.failed
    assert not recovered.certified
