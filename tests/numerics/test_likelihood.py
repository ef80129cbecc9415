"""The rows' likelihood: two derivatives that fit the value, and scores of any size."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from taciturn.errors import ShapeError
from taciturn.numerics.label_noise import corrected_likelihood, corrected_residue
from taciturn.numerics.likelihood import clip_scores, weighted_likelihood
from taciturn.numerics.logistic import log_loss, weighted_residue

KINDS = {
    "plain": partial(weighted_likelihood, class_weight=None),
    "weighted": partial(weighted_likelihood, class_weight=(0.25, 1.0)),
    "flipped 0.1": partial(corrected_likelihood, epsilon=0.1),
    "flipped 3": partial(corrected_likelihood, epsilon=3.0),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label", [0, 1])
def test_slope_and_curvature_are_the_values_derivatives(kind, label):
    scores, h = np.linspace(-8, 8, 97), 1e-4
    labels = np.full(len(scores), label)
    lower, here, upper = (KINDS[kind](scores + shift, labels) for shift in (-h, 0.0, h))
    slope = (upper.value - lower.value) / (2 * h)
    np.testing.assert_allclose(here.slope, slope, rtol=1e-6, atol=1e-8)
    curvature = (lower.slope - upper.slope) / (2 * h)
    np.testing.assert_allclose(here.curvature, curvature, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64, np.float64])
def test_value_and_slope_are_the_loss_and_the_residue_that_sgd_uses(dtype):
    rng = np.random.default_rng(1)
    scores, labels = rng.normal(size=200) * 4, rng.integers(0, 2, 200).astype(dtype)
    plain = weighted_likelihood(scores, labels, None)
    assert -np.mean(plain.value) == pytest.approx(log_loss(scores, labels), rel=1e-13)
    weighted = weighted_likelihood(scores, labels, (1.0, 0.5))
    np.testing.assert_array_equal(weighted.slope, weighted_residue(scores, labels, (1.0, 0.5)))
    flipped = corrected_likelihood(scores, labels, 0.7)
    # The flipped label is 1 with the probability p f + (1 - p) (1 - f).
    keep, chances = 1 / (1 + np.exp(-0.7)), 1 / (1 + np.exp(-scores))
    ones = keep * chances + (1 - keep) * (1 - chances)
    loss = -np.log(np.where(labels, ones, 1 - ones))
    assert -np.mean(flipped.value) == pytest.approx(loss.mean(), rel=1e-13)
    np.testing.assert_array_equal(flipped.slope, corrected_residue(scores, labels, 0.7))


@given(arrays(np.float64, 20, elements=st.floats()), st.sampled_from(sorted(KINDS)))
def test_bounded_scores_of_any_kind_have_a_finite_likelihood(scores, kind):
    labels = np.arange(20) % 2
    rows = KINDS[kind](clip_scores(scores), labels)
    assert all(np.isfinite(part).all() for part in (rows.value, rows.slope, rows.curvature))
    assert np.all(rows.value <= 0)
    assert np.all(np.abs(rows.slope) <= 1)
    least = -0.25 if "flipped" in kind else 0.0
    assert np.all((rows.curvature >= least) & (rows.curvature <= 0.25))


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_that_do_not_fit_are_refused(kind):
    with pytest.raises(ShapeError):
        KINDS[kind](np.zeros(3), np.zeros(2))
