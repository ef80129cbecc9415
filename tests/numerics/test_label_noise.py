"""Forward correction of flipped labels: its gradient, bounded and stable."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from taciturn.errors import ShapeError
from taciturn.numerics.label_noise import corrected_residue
from taciturn.numerics.logistic import residue

EPSILONS = [0.01, 0.1, 1.0, 3.0, 10.0]
FINITE = st.floats(-1e6, 1e6)
EPSILON = st.floats(1e-6, 1e3)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_residue_is_the_textbook_quotient_where_that_can_be_computed(epsilon):
    z = np.linspace(-6, 6, 241)
    f, p = expit(z), expit(epsilon)
    q = p * f + (1 - p) * (1 - f)
    for label in (0, 1):
        expected = (label - q) * (2 * p - 1) * f * (1 - f) / (q * (1 - q))
        residues = corrected_residue(z, np.full(len(z), label), epsilon)
        np.testing.assert_allclose(residues, expected, rtol=1e-9)


@given(FINITE, st.integers(0, 1), EPSILON)
def test_the_residue_has_the_labels_sign_and_at_most_the_size_tanh_of_a_quarter(z, label, epsilon):
    value = corrected_residue(np.array([z]), np.array([label]), epsilon)[0]
    assert math.isfinite(value)
    assert abs(value) <= math.tanh(epsilon / 4) * (1 + 1e-12)
    assert value >= 0 if label else value <= 0


@given(FINITE, EPSILON)
def test_exchanging_labels_and_turning_the_score_turns_the_residue(z, epsilon):
    one = corrected_residue(np.array([z]), np.array([1]), epsilon)[0]
    zero = corrected_residue(np.array([-z]), np.array([0]), epsilon)[0]
    assert one == -zero


@given(FINITE, st.integers(0, 1), EPSILON)
def test_the_gap_between_the_labels_is_largest_at_a_score_of_zero(z, label, epsilon):
    """The stacking attack scales its equations by it."""
    one, zero = (corrected_residue(np.array([z]), np.array([y]), epsilon)[0] for y in (1, 0))
    assert 0 <= one - zero <= math.tanh(epsilon / 2) * (1 + 1e-12)


def test_without_flips_it_is_the_ordinary_residue():
    z, labels = np.linspace(-5, 5, 11), np.arange(11) % 2
    np.testing.assert_allclose(corrected_residue(z, labels, 60.0), residue(z, labels), atol=1e-12)


def test_shapes_that_do_not_fit_are_refused():
    for scores, labels in (
        (np.zeros(2), np.zeros(3)),
        (np.zeros((2, 1)), np.zeros((2, 1))),
        (np.zeros(0), np.zeros(0)),
    ):
        with pytest.raises(ShapeError):
            corrected_residue(scores, labels, 1.0)
