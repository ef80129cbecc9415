"""Closed forms against scipy, and against their own sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import dlaplace
from scipy.stats import laplace as reals

from taciturn.privacy.noise import (
    ON_INTEGERS,
    ON_REALS,
    log_at_least,
    log_density,
    log_mass,
    log_mass_at_least,
)

SIGMAS = [0.02, 0.5, 1.0, 17.3, 4000.0]


@pytest.mark.parametrize("sigma", SIGMAS)
def test_mass_is_scipys(sigma):
    # scipy takes the logarithm of the mass, which is zero far out.
    reach = min(300, int(500 * sigma))
    k = np.arange(-reach, reach + 1)
    expected = dlaplace.logpmf(k, 1 / sigma)
    np.testing.assert_allclose(log_mass(k, sigma), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_tail_is_the_sum_of_the_masses(sigma):
    reach = int(60 * sigma) + 20
    k = np.arange(-reach, reach + 1)
    masses = np.exp(log_mass(k, sigma))
    tails = np.cumsum(masses[::-1])[::-1]
    near = np.abs(k) < 15 * sigma + 10
    computed = np.exp(log_mass_at_least(k, sigma))
    np.testing.assert_allclose(computed[near], tails[near], rtol=1e-9, atol=1e-25)


@given(st.integers(-(10**6), 10**6), st.floats(0.02, 1e9))
def test_a_tail_and_its_mirror_are_everything(k, sigma):
    """P(K >= k) + P(K >= 1 - k) = 1, by symmetry."""
    both = np.exp(log_mass_at_least(np.array([k, 1 - k]), sigma))
    assert both.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_reals_are_scipys(sigma):
    x = np.linspace(-5, 5, 101) * sigma
    density, tail = reals.logpdf(x, scale=sigma), reals.logsf(x, scale=sigma)
    np.testing.assert_allclose(log_density(x, sigma), density, atol=1e-12)
    np.testing.assert_allclose(log_at_least(x, sigma), tail, atol=1e-12)


@pytest.mark.parametrize("law", [ON_INTEGERS, ON_REALS])
def test_far_out_a_logarithm_is_still_a_number(law):
    far = np.array([-(10**15), 10**15])
    assert law.log_point(far, 3.0).tolist() == pytest.approx([-(10**15) / 3] * 2)
    assert law.log_at_least(far, 3.0).tolist() == pytest.approx([0.0, -(10**15) / 3])
