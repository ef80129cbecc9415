"""The sign of summed residues, and when it is a proof."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.attacks import SignAttack
from taciturn.audit import judge_guess as judge
from tests.attacks.evidence import DATASETS, applies, known_run, sits_at_chance
from tests.seldom import seldom

ADD = {"mechanism": "add", "epochs": 10, "epsilon": 10.0}
ONE_SIDED = {"mechanism": "mult", "variant": "one-sided", "epochs": 10, "epsilon": 10.0, "b2": 1.0}


@pytest.mark.parametrize("dataset", seldom(DATASETS, always=DATASETS[:1]))
@pytest.mark.parametrize(("permute_labels", "least"), [(False, 0.75), (True, 0.99)])
def test_noise_averages_out(dataset, permute_labels, least):
    """A model that has learnt leaves small residues: the canary run is the easier one."""
    view, truth = known_run(**ADD, dataset=dataset, permute_labels=permute_labels)
    guess = SignAttack().infer(view)
    assert judge("", guess, truth).auc > least
    assert not guess.certain.any()


@pytest.mark.parametrize("dataset", seldom(DATASETS, always=DATASETS[:1]))
@pytest.mark.parametrize("noise", ["discrete", "continuous"])
@pytest.mark.parametrize("permute_labels", [False, True])
@pytest.mark.sampled(1)
def test_a_sign_that_is_kept_is_a_proof(dataset, noise, permute_labels):
    view, truth = known_run(
        **ONE_SIDED, dataset=dataset, noise=noise, permute_labels=permute_labels
    )
    score = judge("", SignAttack().infer(view), truth)
    assert score.decided > 0.97
    assert score.decided_correct == 1.0
    assert score.accuracy > 0.97


def test_a_positive_release_is_no_proof_where_the_residue_may_have_been_zero():
    """Steep training: rows labelled 0 with scores below half a step release positive numbers."""
    view, truth = known_run(**ONE_SIDED, dataset="breast-cancer")
    guess = SignAttack().infer(view)
    open_rows = ~guess.certain
    assert open_rows.any()
    assert (truth.values[open_rows] == 0).any()
    assert (guess.scores[open_rows] > 0).all()


@pytest.mark.parametrize("options", [ADD, ONE_SIDED], ids=["add", "one-sided"])
@pytest.mark.parametrize("dataset", seldom(DATASETS, always=DATASETS[:1]))
def test_sits_at_chance_against_labels_shuffled_after_the_run(dataset, options):
    """False alarm: about 2e-5 for each."""
    view, truth = known_run(**options, dataset=dataset)
    assert sits_at_chance(SignAttack().infer(view), truth)


@pytest.mark.parametrize("dataset", seldom(DATASETS, always=DATASETS[:1]))
@pytest.mark.parametrize("options", [ADD, ONE_SIDED], ids=["add", "one-sided"])
def test_with_columns_at_bob_only_a_negative_release_is_a_proof(dataset, options):
    view, truth = known_run(**options, dataset=dataset, alice_columns="half", intercept=True)
    guess = SignAttack().infer(view)
    assert judge("", guess, truth).auc > 0.7
    assert (guess.scores[guess.certain] < 0).all()
    assert guess.certain.any() == (options is ONE_SIDED)
    assert not truth.values[guess.certain].any()


def test_the_printed_variant_keeps_no_sign():
    """The noise is symmetric; the atom at +b2 is hit about as often under both labels."""
    view, truth = known_run(mechanism="mult", epsilon=1.0, epochs=10, permute_labels=True)
    guess = SignAttack().infer(view)
    assert not guess.certain.any()
    assert 0.35 < judge("", guess, truth).auc < 0.65


def test_rows_without_a_release_have_no_signal():
    view, _ = known_run(**ADD, dataset="breast-cancer")
    guess = SignAttack().infer(view.until(0))
    assert not guess.signal.any()
    assert np.array_equal(guess.scores, np.zeros(view.features.rows))


def test_it_needs_residues():
    assert not applies(SignAttack(), known_run(epochs=1)[0])


def test_progress_runs_from_nothing_to_everything():
    reports: list[tuple[int, int]] = []
    view, _ = known_run(**ADD, dataset="breast-cancer")
    SignAttack().infer(view, lambda done, total: reports.append((done, total)))
    assert reports[0] == (0, 290)
    assert reports[-1] == (290, 290)
