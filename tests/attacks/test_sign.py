"""The sign of summed residues, and when it is a proof."""

from __future__ import annotations

import pytest

from taciturn.attacks import SignAttack
from taciturn.audit import judge_guess as judge
from tests.attacks.evidence import DATASETS, known_run
from tests.seldom import seldom

ADD = {"mechanism": "add", "epochs": 10, "epsilon": 10.0}
ONE_SIDED = {"mechanism": "mult", "variant": "one-sided", "epochs": 10, "epsilon": 10.0, "b2": 1.0}


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
