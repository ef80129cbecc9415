"""Attacks that estimate and prove little or nothing: signs, sizes, directions, enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from audit.tests.attacks.evidence import DATASETS, known_run, rare_run, sits_at_chance

from taciturn_audit.attacks.gradient_statistics import GradientDirectionAttack, GradientNormAttack

# private: its ties are broken in a way that no public result shows
from taciturn_audit.attacks.label_enumeration import CLUSTERS, _preferences
from taciturn_audit.attacks.linear import gradients
from taciturn_audit.attacks.released_residues import SignAttack
from taciturn_audit.judge import judge
from tests.seldom import seldom

ADD = {"mechanism": "add", "epochs": 10, "epsilon": 10.0}
ONE_SIDED = {"mechanism": "mult", "variant": "one-sided", "epochs": 10, "epsilon": 10.0, "b2": 1.0}
NOISY = {"mechanism": "add", "epsilon": 20.0}


# --- the sign of summed residues -----------------------------------------------------------------


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


# --- large gradients are the rare class's --------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rare", [0, 1])
@pytest.mark.parametrize("options", [{}, {**NOISY, "batch_size": 16}], ids=["none", "add"])
def test_finds_the_rare_class_whichever_it_is(rare, options):
    view, truth = rare_run(rare, **options)
    guess = GradientNormAttack().infer(view)
    score = judge("", guess, truth)
    assert score.auc > 0.9
    assert score.accuracy > 0.8
    assert not guess.certain.any()
    assert sits_at_chance(guess, truth)


@pytest.mark.parametrize("options", [NOISY, {}], ids=["add", "none"])
def test_says_little_of_classes_that_are_about_even(options):
    """Without an intercept the model is even-handed: sizes tell surprise, not the label."""
    view, truth = known_run(**options, epochs=3, permute_labels=True)
    guess = GradientNormAttack().infer(view)
    assert 0.3 < judge("", guess, truth).auc < 0.7
    assert sits_at_chance(guess, truth)


# --- the matched filter --------------------------------------------------------------------------


def test_alone_in_its_batch_a_row_is_told_for_sure():
    view, truth = known_run(batch_size=1, epochs=1, learning_rate=0.001)
    assert judge("", GradientDirectionAttack().infer(view), truth).accuracy == 1.0


def test_the_score_is_the_sum_of_products_over_the_length():
    view, _ = known_run(dataset="breast-cancer", epochs=10)
    values, row = view.features.values, 17
    bits = view.agreement.feature_bits + view.agreement.residue_bits
    parts = [
        values[row] @ (seen.gradient / 2.0**bits) for seen in gradients(view) if row in seen.rows
    ]
    assert len(parts) == 10
    score = GradientDirectionAttack().infer(view).scores[row]
    np.testing.assert_allclose(score, sum(parts) / np.linalg.norm(values[row]))


# --- every labelling of a few clusters -----------------------------------------------------------


def test_the_preferences_are_those_of_trying_every_mapping():
    entropy = np.random.default_rng(1)
    vectors = entropy.normal(size=(CLUSTERS + 2, 40))
    cosines = {
        mapping: _cosine(vectors[0] + np.array(mapping) @ vectors[1:-1], vectors[-1])
        for mapping in itertools.product((0, 1), repeat=CLUSTERS)
    }
    # The length of what was seen is the same for all mappings.
    length = np.linalg.norm(vectors[-1])
    expected = [
        max(c for m, c in cosines.items() if m[at])
        - max(c for m, c in cosines.items() if not m[at])
        for at in range(CLUSTERS)
    ]
    np.testing.assert_allclose(_preferences(vectors @ vectors.T) / length, expected, atol=1e-12)


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
