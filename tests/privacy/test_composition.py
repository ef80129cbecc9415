"""Composition: upper bounds, never above the sum, and close to the exact curves."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom, dlaplace

from taciturn.arrays import FloatArray
from taciturn.privacy.additive import Additive
from taciturn.privacy.composition import label_epsilon
from taciturn.privacy.events import (
    AdditiveNoise,
    HiddenBatchGradient,
    MeanOneFactor,
    NonPrivate,
    OneSidedFactor,
    PrintedFactor,
    PrivacyEvent,
)
from taciturn.privacy.prices import price

DELTAS = [1e-9, 1e-6, 1e-3, 0.1]


def basic(counts: Mapping[PrivacyEvent, int]) -> float:
    return sum(count * price(event).label for event, count in counts.items())


def epsilon_at(delta: float, losses: FloatArray, masses: FloatArray) -> float:
    """The smallest epsilon whose delta, ``E[1 - exp(eps - L)]+``, is at most this one."""

    def excess(eps: float) -> float:
        above = losses > eps
        return float(masses[above] @ -np.expm1(eps - losses[above])) - delta

    if excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, 0.0, float(losses.max()), xtol=1e-12))


# --- edges -------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.5])
@pytest.mark.parametrize(
    "event", [NonPrivate(), HiddenBatchGradient(1.0), OneSidedFactor(1.0, 0.5, 1.0)]
)
def test_infinity_stays_infinite_at_every_delta(event, delta):
    assert label_epsilon({event: 1, AdditiveNoise(1.0): 5}, delta) == math.inf
    # What never happened costs nothing.
    assert label_epsilon({event: 0, AdditiveNoise(1.0): 5}, 0.0) == 2.5


@pytest.mark.parametrize("delta", DELTAS)
def test_one_release_of_add_has_the_laplace_mechanisms_curve(delta):
    """``delta(eps) = 1 - exp((eps - label) / 2)``, known in closed form."""
    label = 0.5
    exact = max(0.0, label + 2 * math.log(1 - delta))
    epsilon = label_epsilon({AdditiveNoise(2 * label): 1}, delta)
    assert exact - 1e-12 <= epsilon <= exact + 1e-4


# --- properties --------------------------------------------------------------------------------

EVENTS = st.one_of(
    st.builds(AdditiveNoise, st.sampled_from([0.1, 0.5, 1.0, 4.0])),
    st.builds(PrintedFactor, st.just(1.0), st.sampled_from([0.3, 0.8]), st.just(1.0)),
    st.builds(MeanOneFactor, st.just(1.0), st.sampled_from([0.5]), st.just(4.0)),
)


@settings(max_examples=25)
@given(
    st.dictionaries(EVENTS, st.integers(0, 40), max_size=3), st.sampled_from([0.0, *DELTAS, 0.99])
)
def test_it_is_never_above_the_sum_nor_below_zero(counts, delta):
    assert 0 <= label_epsilon(counts, delta) <= basic(counts) * (1 + 1e-12)


@settings(max_examples=10)
@given(EVENTS, st.integers(1, 30))
@pytest.mark.slow  # seconds, and others show most of it on less
def test_more_releases_cost_no_less_and_a_larger_delta_no_more(event, count):
    by_delta = [label_epsilon({event: count}, delta) for delta in DELTAS]
    assert by_delta == sorted(by_delta, reverse=True)
    more = [label_epsilon({event: count + 1}, delta) for delta in DELTAS]
    assert all(after >= before - 1e-9 for before, after in zip(by_delta, more, strict=True))


# --- against exact curves ----------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.1])
@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 100), (0.5, 3), (1.0, 10), (10.0, 10)])
def test_it_is_what_a_finer_discretisation_gives_from_above(epsilon, count, delta):
    finer = privacy_loss_distribution.from_laplace_mechanism(
        2 / epsilon, value_discretization_interval=epsilon / 256 / 8
    )
    reference = finer.self_compose(count).get_epsilon_for_delta(delta)
    composed = label_epsilon({AdditiveNoise(epsilon): count}, delta)
    assert reference - 1e-9 <= composed <= reference + 1e-3


def discrete_losses(epsilon: float, bits: int, count: int) -> tuple[FloatArray, FloatArray]:
    """The privacy loss of ``count`` releases of a label on the grid, by convolution.

    One release is k or k + 2^bits plus noise; the loss ``(|k - N| - |k|)/sigma`` takes the values
    of N + 1 multiples of ``2/sigma``.
    """
    steps, sigma = 1 << bits, Additive(AdditiveNoise(epsilon), bits).sigma
    within = np.asarray(dlaplace.pmf(np.arange(1, steps), 1 / sigma))
    tail = float(dlaplace.sf(steps - 1, 1 / sigma))
    upper = float(dlaplace.sf(-1, 1 / sigma))
    # From k >= N, the loss -N/sigma, to k <= 0, the loss N/sigma.
    one = np.concatenate([[tail], within[::-1], [upper]])
    assert one.sum() == pytest.approx(1.0)
    masses = one
    for _ in range(count - 1):
        masses = np.convolve(masses, one)
    losses = (2 * np.arange(len(masses)) - count * steps) / sigma
    return losses, masses


@pytest.mark.parametrize("bits", [8, 10])
@pytest.mark.parametrize(("epsilon", "count"), [(0.3, 1), (1.0, 1), (1.0, 2), (2.0, 5), (0.2, 9)])
def test_it_bounds_the_discrete_mechanism_computed_by_brute_force(epsilon, count, bits):
    losses, masses = discrete_losses(epsilon, bits, count)
    for delta in DELTAS:
        exact = epsilon_at(delta, losses, masses)
        composed = label_epsilon({AdditiveNoise(epsilon): count}, delta)
        assert exact - 1e-7 <= composed <= exact + 2e-3


@pytest.mark.parametrize("count", [1, 2, 10, 40])
@pytest.mark.parametrize(
    "event", [PrintedFactor(1.0, 0.7, 1.0), PrintedFactor(0.5, 0.3, 2.0), MeanOneFactor(1, 0.9, 4)]
)
def test_other_events_compose_like_randomised_responses(event, count):
    """The worst mechanism of a given epsilon: its loss is ±epsilon, and binomial after a while."""
    label = price(event).label
    heads = np.arange(count + 1)
    masses = binom.pmf(heads, count, 1 / (1 + math.exp(-label)))
    losses = (2 * heads - count) * label
    for delta in DELTAS:
        exact = epsilon_at(delta, losses, masses)
        composed = label_epsilon({event: count}, delta)
        # Far fewer dots than the sum has: the estimate is coarse, but from above.
        assert exact - 1e-9 <= composed <= exact + 0.01 * count * label


def test_different_events_compose_on_the_same_dots():
    """Add and printed of the same price: between the compositions of either alone."""
    label = price(PrintedFactor(0.1, 0.5, 1.0)).label
    laplace, response = AdditiveNoise(2 * label), PrintedFactor(0.1, 0.5, 1.0)
    assert price(laplace).label == label
    alone = label_epsilon({laplace: 20}, 1e-6)
    mixed = label_epsilon({laplace: 10, response: 10}, 1e-6)
    worst = label_epsilon({response: 20}, 1e-6)
    assert alone < mixed < worst < 20 * label
