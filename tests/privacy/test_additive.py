"""``add``: r + Lap(2/eps) on the grid, its exact law, and why it is not done in floating point."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import dlaplace, laplace

from taciturn.arrays import BoolArray, FloatArray
from taciturn.privacy.additive import Additive
from taciturn.privacy.events import AdditiveNoise
from taciturn.privacy.noise import divisor
from taciturn.privacy.prices import price
from taciturn.rng import KeyedEntropy

BITS = 8
ONE = 1 << BITS
EPSILONS = [0.01, 0.1, 1.0, 10.0]


def add(epsilon: float, bits: int = BITS) -> Additive:
    return Additive(AdditiveNoise(epsilon), bits)


def entropy(purpose: str) -> KeyedEntropy:
    return KeyedEntropy.from_seed(2024).fork(purpose)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("bits", [8, 20])
def test_the_scale_is_two_over_epsilon_in_steps_of_the_grid(epsilon, bits):
    wanted = 2 / epsilon * 2**bits
    assert wanted <= add(epsilon, bits).sigma <= wanted * (1 + 2.0**-20)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_probabilities_are_scipys_and_sum_to_one(epsilon):
    mechanism = add(epsilon)
    reach = int(20 * mechanism.sigma)
    outputs = np.arange(-reach, reach + 1)
    probabilities = np.exp(mechanism.log_probability(outputs, np.full_like(outputs, 77)))
    assert probabilities.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(probabilities, dlaplace.pmf(outputs, 1 / mechanism.sigma, loc=77))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_on_the_grid_the_residue_costs_epsilon_and_the_label_half_of_it(epsilon):
    """All outputs that matter, all residues; the label at every score the grid has."""
    mechanism, cost = add(epsilon), price(AdditiveNoise(epsilon))
    outputs = np.arange(-3 * ONE, 3 * ONE + 1)
    residues = np.arange(-ONE, ONE + 1)
    logs = mechanism.log_probability(outputs[None, :], residues[:, None])
    residue_loss = (logs.max(axis=0) - logs.min(axis=0)).max()
    # The residues of one row: 1 - f where the label is 1, -f where it is 0.
    label_losses = np.abs(logs[ONE:] - logs[: ONE + 1]).max(axis=1)
    # The divisor rounds the scale up, so the loss down, by a part in it.
    slack = 1 / divisor(2 / epsilon * ONE) + 1e-12
    assert cost.residue * (1 - slack) <= residue_loss <= cost.residue * (1 + 1e-12)
    assert (label_losses <= cost.label * (1 + 1e-12)).all()
    assert (label_losses >= cost.label * (1 - slack)).all()


@given(st.floats(-50, 50), st.floats(-1, 1), st.sampled_from(EPSILONS))
def test_the_density_is_scipys(z, r, epsilon):
    densities = add(epsilon).log_density(np.array([z]), np.array([r]))
    assert densities[0] == pytest.approx(laplace.logpdf(z, loc=r, scale=2 / epsilon))


# --- Mironov's attack --------------------------------------------------------------------------


def reachable(outputs: FloatArray, residue: float, scale: float) -> BoolArray:
    """Which outputs some uniform number gives, for this residue, in the floating-point sampler.

    The sampler's size is ``-log1p(-u) scale`` with u a multiple of 2^-53. Inverting it gives u up
    to a step or two; those are tried.
    """
    away = outputs - residue
    nearest = np.rint(-np.expm1(-np.abs(away) / scale) * 2**53)
    reached = np.zeros(len(outputs), dtype=bool)
    for step in range(-3, 4):
        size = -np.log1p(-(nearest + step) * 2.0**-53)
        reached |= residue + np.where(away < 0, -size, size) * scale == outputs
    return reached


def test_floating_point_noise_tells_the_label_and_the_grid_does_not():
    """At epsilon 0.01 a label is worth 0.005; in floating point the low bits tell it outright.

    Noise of scale 200 comes in steps of 200 * 2^-53, the doubles below 1 in steps of 2^-53 or
    less: of those only one in some hundred is reachable from a given residue.
    """
    mechanism, score = add(0.01), 0.3141592653589793
    candidates = (1.0 - score, -score)
    for label, residue in enumerate(reversed(candidates)):
        size = 200_000
        real = mechanism.release_real(np.full(size, residue), entropy(f"mironov {label}")).value
        small = real[np.abs(real) < 1]
        assert len(small) > 500
        truth, other = (reachable(small, r, 200.0) for r in (residue, candidates[label]))
        assert truth.all()
        assert other.mean() < 0.05
        # On the grid every output is as reachable from either: the ratio is within e^(eps/2).
        outputs = np.arange(-4 * ONE, 4 * ONE)
        likely = [
            mechanism.log_probability(outputs, np.full_like(outputs, round(r * ONE)))
            for r in candidates
        ]
        assert np.isfinite(likely).all()
        assert np.abs(likely[0] - likely[1]).max() <= math.nextafter(0.005, 1.0) + 1e-12
