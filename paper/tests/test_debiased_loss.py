"""Losses of flipped labels: the corrected one is bounded, and the debiased one is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from taciturn.errors import ShapeError
from taciturn.numerics.label_noise import corrected_residue
from taciturn.numerics.logistic import log_loss, residue
from taciturn_paper.debiased_loss import corrected_loss, debiased_loss, debiased_residue

EPSILONS = [0.01, 0.1, 1.0, 3.0, 10.0]
FINITE = st.floats(-1e6, 1e6)
EPSILON = st.floats(1e-6, 1e3)


@pytest.mark.parametrize("loss_and_slope", ["corrected", "debiased"])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("label", [0, 1])
def test_the_residue_is_minus_the_losss_slope_by_finite_differences(epsilon, label, loss_and_slope):
    loss, slope = {
        "corrected": (corrected_loss, corrected_residue),
        "debiased": (debiased_loss, debiased_residue),
    }[loss_and_slope]
    labels, h = np.array([label]), 1e-5
    for z in np.linspace(-8, 8, 33):
        numerical = (loss(np.array([z - h]), labels, epsilon)) - loss(
            np.array([z + h]), labels, epsilon
        )
        analytic = slope(np.array([z]), labels, epsilon)[0]
        assert analytic == pytest.approx(numerical / (2 * h), abs=1e-9, rel=1e-6)


@given(FINITE, st.integers(0, 1), EPSILON)
def test_the_loss_is_finite_and_bounded_on_both_sides_as_no_label_is_ever_impossible(
    z, label, epsilon
):
    loss = corrected_loss(np.array([z]), np.array([label]), epsilon)
    least = math.log1p(math.exp(-epsilon))
    assert least * (1 - 1e-9) - 1e-12 <= loss <= (least + epsilon) * (1 + 1e-9) + 1e-12


def test_without_flips_both_are_the_ordinary_loss():
    z, labels = np.linspace(-5, 5, 11), np.arange(11) % 2
    for slope in (corrected_residue, debiased_residue):
        np.testing.assert_allclose(slope(z, labels, 60.0), residue(z, labels), atol=1e-12)
    for loss in (corrected_loss, debiased_loss):
        assert loss(z, labels, 60.0) == pytest.approx(log_loss(z, labels))


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_debiased_residue_is_right_on_average_and_the_corrected_one_at_the_truth_only(epsilon):
    """The mean over flips: unbiased everywhere, against a root at the true probability."""
    keep = expit(epsilon)
    for z in (-2.0, 0.0, 1.5):
        at, f = np.array([z]), expit(z)
        for label in (0, 1):
            mean = keep * debiased_residue(at, np.array([label]), epsilon) + (
                1 - keep
            ) * debiased_residue(at, np.array([1 - label]), epsilon)
            assert mean[0] == pytest.approx(label - f)
        q = keep * f + (1 - keep) * (1 - f)
        ones, zeros = (corrected_residue(at, np.array([y]), epsilon)[0] for y in (1, 0))
        assert q * ones + (1 - q) * zeros == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_debiased_loss_has_no_lower_bound(epsilon):
    losses = [debiased_loss(np.array([z]), np.array([1]), epsilon) for z in (1e2, 1e4, 1e6)]
    assert losses[0] > losses[1] > losses[2]
    assert losses[2] < -1e5


@pytest.mark.parametrize(
    "function", [corrected_residue, corrected_loss, debiased_residue, debiased_loss]
)
def test_shapes_that_do_not_fit_are_refused(function):
    for scores, labels in (
        (np.zeros(2), np.zeros(3)),
        (np.zeros((2, 1)), np.zeros((2, 1))),
        (np.zeros(0), np.zeros(0)),
    ):
        with pytest.raises(ShapeError):
            function(scores, labels, 1.0)
