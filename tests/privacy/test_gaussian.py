"""Discrete Gaussian noise: the sampler against exact probabilities, sigma against exact deltas."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import norm

from taciturn.privacy.gaussian import delta_of, deviation, draw
from taciturn.rng import KeyedEntropy
from tests.privacy.odds import fits

DRAWS = 6000


def pmf(sigma: float, reach: int) -> np.ndarray:
    """Probabilities of -reach to reach; what lies beyond is below 1e-15."""
    masses: np.ndarray = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2.0 * sigma**2))
    masses /= masses.sum()
    return masses


# --- the sampler ----------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [1, 2, 7])
def test_draws_have_the_exact_probabilities_by_chi_square_with_false_alarm_rate_1e_minus_6(sigma):
    reach, entropy = 9 * sigma, KeyedEntropy.from_seed(sigma)
    counts = Counter(draw(sigma, entropy) for _ in range(DRAWS))
    assert max(map(abs, counts)) <= reach
    assert fits([counts[k] for k in range(-reach, reach + 1)], pmf(sigma, reach))
    # The same counts are not those of a sigma a tenth larger: the test has power.
    assert not fits([counts[k] for k in range(-reach, reach + 1)], pmf(1.1 * sigma, reach))


@pytest.mark.parametrize("sigma", [10**6, 3 * 2**35 + 1])
def test_a_large_sigma_is_drawn_as_the_bell_says(sigma):
    entropy = KeyedEntropy.from_seed(sigma % 1000)
    drawn = np.array([draw(sigma, entropy) for _ in range(DRAWS)], dtype=np.float64) / sigma
    edges = np.linspace(-3.0, 3.0, 25)
    inside = norm.cdf(edges)
    probabilities = np.diff(np.concatenate([[0.0], inside, [1.0]]))
    counts = np.bincount(np.searchsorted(edges, drawn), minlength=len(probabilities))
    assert fits(counts, probabilities)


def test_the_low_digits_of_a_large_draw_are_even():
    """A sampler in floating point would leave some of them out."""
    entropy = KeyedEntropy.from_seed(5)
    low = Counter(draw(2**40 + 3, entropy) % 16 for _ in range(DRAWS))
    assert fits([low[k] for k in range(16)], np.full(16, 1 / 16))


# --- how much of it -------------------------------------------------------------------------------


def exact_delta(sigma: int, shift: tuple[int, ...], epsilon: float) -> float:
    """Of noise on each entry, by enumeration: the sum of ``P(x) - e^epsilon P(x - shift)``."""
    reach = 8 * sigma + max(map(abs, shift))
    alone = pmf(sigma, reach)
    first = second = np.ones(1)
    for step in shift:
        moved = np.roll(alone, step)
        first = np.multiply.outer(first, alone).ravel()
        second = np.multiply.outer(second, moved).ravel()
    return float(np.maximum(0.0, first - math.exp(epsilon) * second).sum())


CLAIMS = list(itertools.product([0.5, 1.0, 4.0], [1e-2, 1e-4]))
SHIFTS = [(5,), (3, 4), (0, -5)]


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
@pytest.mark.parametrize("shift", SHIFTS)
def test_sigma_is_enough_for_its_claim_and_not_much_too_large(epsilon, delta, shift):
    sigma = deviation(math.hypot(*shift), epsilon, delta)
    assert exact_delta(sigma, shift, epsilon) <= delta
    # Between integers of this size a fifth is the least that can be told apart.
    assert exact_delta(math.floor(0.75 * sigma), shift, epsilon) > delta


def test_the_stated_delta_is_never_below_the_exact_one():
    for sigma in (3, 6, 12, 24):
        for epsilon in (0.3, 1.0, 3.0):
            assert exact_delta(sigma, (5,), epsilon) <= delta_of(sigma, 5.0, epsilon)
