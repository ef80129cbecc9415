"""Standard errors: what Bob computes alone is never more than what both tables give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn_risk.scorecard.card import Fit, bound_errors, exact_errors

FITS = (Fit(), Fit(flip_epsilon=1.0))


def drawn(
    seed: int, hers: int, his: int, alike: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Columns of both, more or less alike, with weights and labels."""
    entropy = np.random.default_rng(seed)
    alice = entropy.normal(size=(60, hers))
    bob = entropy.normal(size=(60, his)) + alike * alice[:, :1]
    weights = entropy.normal(size=hers + his)
    return alice, bob, weights, entropy.integers(0, 2, 60)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 5),
    st.integers(1, 4),
    st.floats(0, 5),
    st.sampled_from(FITS),
)
def test_the_bound_holds_whatever_the_columns(seed, hers, his, alike, fit):
    alice, bob, weights, labels = drawn(seed, hers, his, alike)
    scores = alice @ weights[:hers] + bob @ weights[hers:]
    bound = bound_errors(bob, weights[hers:], scores, fit, 60)
    exact = exact_errors([alice, bob], scores, labels, fit)[hers:]
    known = ~np.isnan(exact)
    assert np.all(bound[known] <= exact[known] * (1 + 1e-6))
    if hers == 1:
        # Her part of the score is her column: nothing is missing.
        assert bound[known] == pytest.approx(exact[known], rel=1e-5)


def test_class_weights_of_one_change_hardly_more_than_the_model_assumes():
    """With weights of one the sandwich has the true labels in it, and the same law on average."""
    entropy = np.random.default_rng(3)
    columns = entropy.normal(size=(20_000, 3))
    scores = columns @ np.array([0.5, -1.0, 0.2])
    labels = (entropy.uniform(size=20_000) < 1 / (1 + np.exp(-scores))).astype(int)
    plain = exact_errors([columns], scores, labels, Fit())
    sandwich = exact_errors([columns], scores, labels, Fit(class_weight=(1.0, 1.0)))
    assert sandwich == pytest.approx(plain, rel=0.05)
