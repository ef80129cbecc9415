"""The likelihood ratio: its law, its success, and what it claims to be sure of."""

from __future__ import annotations

import numpy as np
import pytest
from audit.tests.attacks.evidence import ALARM, DATASETS, known_run

from taciturn.families.binomial import sigmoid
from taciturn.protocol.observations import ResiduesSeen
from taciturn_audit.attacks.released_residues import SURE, LikelihoodAttack, log_ratios
from taciturn_audit.exact_intervals import clopper_pearson
from taciturn_audit.judge import judge
from tests.seldom import seldom

ADD = {"mechanism": "add", "epochs": 10}
MULT = {"mechanism": "mult", "epochs": 10, "epsilon": 10.0, "b1": 0.1, "b2": 1.0}
NOISES = ("discrete", "continuous")
VARIANTS = ("printed", "one-sided", "mean-one")


def laplace_law(epsilon: float, epochs: int, draws: int = 200_000) -> tuple[float, float]:
    """How often the sum is right where it is not zero, and its standard error, by Monte Carlo.

    At a label of 1 a release is ``1 - f`` plus noise N of scale ``b = 2/eps``, and its ratio
    ``(|1 + N| - |N|) / b``, whatever the score. A label of 0 mirrors it.
    """
    noise = np.random.default_rng(7).laplace(scale=2 / epsilon, size=(draws, epochs))
    total = (np.abs(1 + noise) - np.abs(noise)).sum(axis=1)
    right, wrong = (total > 1e-9).sum(), (total < -1e-9).sum()
    share = right / (right + wrong)
    return float(share), float(np.sqrt(share * (1 - share) / (right + wrong)))


@pytest.mark.parametrize("permute_labels", [False, True])
@pytest.mark.parametrize(
    ("epsilon", "epochs", "noise"),
    seldom(
        [
            (1.0, 10, "discrete"),
            (1.0, 10, "continuous"),
            (3.0, 3, "discrete"),
            (10.0, 1, "discrete"),
        ],
        always=[(3.0, 3, "discrete")],
    ),
)
def test_success_against_additive_noise_is_that_of_the_exact_law(
    permute_labels, epsilon, epochs, noise
):
    """False alarm: below 1e-4 for each, by the exact interval and 4.4 standard errors."""
    view, truth = known_run(
        mechanism="add",
        dataset="sklearn-digits",
        epsilon=epsilon,
        epochs=epochs,
        noise=noise,
        permute_labels=permute_labels,
    )
    guess = LikelihoodAttack().infer(view)
    right = ((guess.scores > 0) == (truth.values == 1))[guess.signal]
    low, high = clopper_pearson(int(right.sum()), len(right), 0.9999)
    law, error = laplace_law(epsilon, epochs)
    assert low - ALARM * error <= law <= high + ALARM * error
    assert 0.7 < law < 1.0


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("dataset", "noise"),
    seldom(
        [(DATASETS[0], "discrete"), (DATASETS[0], "continuous"), (DATASETS[1], "discrete")],
        always=[(DATASETS[0], "discrete")],
    ),
)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("permute_labels", [False, True])
def test_every_variant_of_multiplicative_noise_gives_labels_away(
    dataset, noise, variant, permute_labels
):
    view, truth = known_run(
        **MULT, dataset=dataset, noise=noise, variant=variant, permute_labels=permute_labels
    )
    score = judge("", LikelihoodAttack().infer(view), truth)
    assert score.auc > {"printed": 0.8, "one-sided": 0.999, "mean-one": 0.97}[variant]
    if variant == "one-sided":
        assert score.decided > 0.98
    if score.decided:
        assert score.decided_correct == 1.0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("noise", seldom(NOISES, always=NOISES[:1]))
@pytest.mark.parametrize(
    "options",
    [{**ADD, "epsilon": 1.0}, *({**MULT, "epsilon": 2.0, "variant": v} for v in VARIANTS)],
    ids=lambda options: options.get("variant", "add"),
)
def test_ratios_are_calibrated(noise, options):
    """In a canary run the ratio with the prior is the probability of the label, all that is known.

    False alarm: about 1e-5 for each of the ratios' thirds, by the normal approximation.
    """
    view, truth = known_run(
        **options, dataset="sklearn-digits", noise=noise, permute_labels=True, learning_rate=0.05
    )
    total = LikelihoodAttack().infer(view).scores
    prior = truth.values.mean()
    posterior = sigmoid(np.clip(total, -500, 500) + np.log(prior / (1 - prior)))
    for part in np.array_split(np.argsort(total), 3):
        spread = np.sqrt((posterior[part] * (1 - posterior[part])).sum())
        apart = posterior[part].sum() - truth.values[part].sum()
        assert abs(apart) <= ALARM * spread + 1e-3


@pytest.mark.parametrize("dataset", seldom(DATASETS, always=DATASETS[:1]))
def test_what_it_calls_certain_is_right(dataset):
    """The chance of one wrong certain row is at most 1e-6 for each: below 2e-3 in all."""
    view, truth = known_run(**ADD, dataset=dataset, epsilon=5.0)
    guess = LikelihoodAttack().infer(view)
    assert 0.05 < guess.certain.mean() < 0.95
    assert judge("", guess, truth).decided_correct == 1.0
    assert (np.abs(guess.scores[guess.certain]) >= SURE).all()
    assert (np.abs(guess.scores[~guess.certain]) < SURE).all()


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.sampled(1)
def test_the_ratio_of_additive_noise_is_the_difference_of_two_distances(noise):
    view, _ = known_run(**ADD, epsilon=1.0, noise=noise)
    step = 2.0**-view.agreement.residue_bits
    released = np.rint(np.array([-3.0, -0.2, 0.1, 0.75, 4.0]) / step) * step
    scores = np.rint(np.array([0.1, 0.2, 0.5, 0.9, 0.0]) / step) * step
    expected = (np.abs(released + scores) - np.abs(released - 1 + scores)) / 2
    np.testing.assert_allclose(log_ratios(view, released, scores), expected, rtol=1e-6)


def test_the_printed_variant_says_nothing_at_a_score_of_one_half():
    view, _ = known_run(**MULT, variant="printed")
    released = view.observations.of_kind(ResiduesSeen)[0].residues
    np.testing.assert_array_equal(log_ratios(view, released, np.full(len(released), 0.5)), 0.0)


def test_a_release_that_is_impossible_under_both_labels_says_nothing():
    """A score of 1 leaves residues of 0 and -1, one of 0 leaves 1 and 0, which counts as +."""
    view, _ = known_run(**MULT, variant="one-sided")
    ratios = log_ratios(view, np.array([-0.5, 0.5, -0.5]), np.array([0.0, 1.0, 1.0]))
    assert ratios[0] == 0.0
    assert ratios[1] == np.inf
    assert ratios[2] == -np.inf
