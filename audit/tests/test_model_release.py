"""A model that is told with noise: its bounds, its claim tried on neighbours, its ledger."""

from __future__ import annotations

import pytest

from taciturn.rng import KeyedEntropy
from taciturn_audit.epsilon_bound import epsilon_lower_bound
from tests.privacy.test_model_release import EVENT, SAMPLES, Told


def shown(quiet: int) -> float:
    return epsilon_lower_bound(
        Told(0, quiet),
        Told(1, quiet),
        samples=SAMPLES,
        failure=1e-3,
        delta=EVENT.delta,
        entropy=KeyedEntropy.from_seed(3),
    ).epsilon


@pytest.mark.slow  # a second or two, and others show the same on less
def test_two_neighbours_are_told_apart_by_no_more_than_epsilon_with_confidence_999_in_1000():
    assert shown(quiet=1) <= EVENT.epsilon


@pytest.mark.slow  # some seconds
def test_with_a_twentieth_of_the_noise_that_is_noticed():
    """The same trial has the power to refute the claim."""
    assert shown(quiet=20) > EVENT.epsilon
