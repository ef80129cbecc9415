"""Each family: derivatives that fit its value, scikit-learn's deviance, possible labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import (
    log_loss,
    mean_gamma_deviance,
    mean_poisson_deviance,
    mean_squared_error,
)

from taciturn.data.label_table import LabelTable
from taciturn.errors import ConfigError, LabelValueError
from taciturn.families.registry import FAMILIES, family
from taciturn.numerics.label_metrics import evaluate_labels, labels_loss, most_loss
from taciturn.numerics.likelihood import response_likelihood
from taciturn.numerics.regression_metrics import RegressionMetrics
from tests.expected import refused

LABELS: dict[str, list[float]] = {
    "binomial": [0, 1, 1, 0],
    "gaussian": [-3.0, 0.0, 2.5, 100.0],
    "poisson": [0, 1, 3, 12],
    "gamma": [0.1, 1.0, 20.0, 3.5],
}
DEVIANCES: dict[str, Any] = {
    "binomial": lambda y, means: 2 * log_loss(y, means, labels=[0, 1]),
    "gaussian": mean_squared_error,
    "poisson": mean_poisson_deviance,
    "gamma": mean_gamma_deviance,
}


def metrics_of(scores: Any, labels: LabelTable) -> RegressionMetrics:
    metrics = evaluate_labels(scores, labels)
    assert isinstance(metrics, RegressionMetrics)
    return metrics


@pytest.mark.parametrize("name", FAMILIES)
def test_slope_and_curvature_are_the_values_derivatives(name):
    kind, h = family(name), 1e-4
    for label in LABELS[name]:
        at = np.linspace(-3, 3, 31)
        labels = np.full(len(at), label)
        lower, here, upper = (kind.likelihood(at + shift, labels) for shift in (-h, 0.0, h))
        slope = (upper.value - lower.value) / (2 * h)
        np.testing.assert_allclose(here.slope, slope, rtol=1e-6, atol=1e-6)
        curvature = (lower.slope - upper.slope) / (2 * h)
        np.testing.assert_allclose(here.curvature, curvature, rtol=1e-6, atol=1e-6)
        if kind.curvature is not None:
            assert here.curvature.max() <= kind.curvature


@pytest.mark.parametrize("name", FAMILIES)
def test_the_deviance_is_scikit_learns_and_twice_what_the_value_lacks(name):
    kind, at = family(name), np.array([-1.0, 0.5, 1.0, 2.0])
    labels = np.array(LABELS[name], dtype=np.float64)
    means = kind.mean(at)
    deviances = kind.deviance(labels, means)
    assert deviances.mean() == pytest.approx(DEVIANCES[name](labels, means))
    np.testing.assert_allclose(kind.likelihood(at, labels).value, -deviances / 2, atol=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "poisson", "gamma"])
@pytest.mark.parametrize("intercept", [True, False])
def test_coordinates_change_no_model(name, intercept):
    labels = LabelTable.from_data(np.array(LABELS[name]) * 1.0, family=name)
    moved = labels.standardised(intercept=intercept)
    predictor = np.array([0.1, -0.4, 0.2, 1.5])
    scores = (predictor - moved.response.location) / moved.response.scale
    plain, shifted = metrics_of(predictor, labels), metrics_of(scores, moved)
    assert shifted.deviance == pytest.approx(plain.deviance)
    assert labels_loss(scores, moved) * moved.response.scale**2 == pytest.approx(
        labels_loss(predictor, labels)
    )
    if intercept:
        # The best constant is 0: there the slopes cancel.
        slopes = response_likelihood(moved, lambda *_: pytest.fail("classes"))(np.zeros(4)).slope
        assert slopes.sum() == pytest.approx(0.0, abs=1e-9)
        assert most_loss(moved) == pytest.approx(2 * labels_loss(np.zeros(4), moved))


def test_rows_count_by_their_weight_and_exposure():
    """A row of weight 2 is two rows; an exposure is a factor of the mean."""
    values, exposure = np.array([0.0, 2.0, 1.0]), np.array([0.5, 1.0, 2.0])
    doubled = np.array([0, 1, 1, 2])
    weighted = LabelTable.from_data(
        values, family="poisson", exposure=exposure, weights=np.array([1.0, 2.0, 1.0])
    )
    repeated = LabelTable.from_data(values[doubled], family="poisson", exposure=exposure[doubled])
    scores = np.array([-0.3, 0.2, 0.1])
    assert labels_loss(scores, weighted) == pytest.approx(labels_loss(scores[doubled], repeated))
    first, second = metrics_of(scores, weighted), metrics_of(scores[doubled], repeated)
    for name in ("deviance", "deviance_explained", "mean_label", "calibration_ratio", "gini"):
        assert getattr(first, name) == pytest.approx(getattr(second, name))
    rates = LabelTable.from_data(values / exposure, family="poisson", weights=exposure)
    alike = LabelTable.from_data(values, family="poisson", exposure=exposure)
    assert metrics_of(scores, rates).mean_label == pytest.approx(
        metrics_of(scores, alike).mean_label
    )


@pytest.mark.parametrize(
    ("name", "wrong"), [("poisson", -1.0), ("gamma", 0.0), ("gaussian", np.inf)]
)
def test_impossible_labels_are_refused(name, wrong):
    with refused(LabelValueError, setting="family"):
        LabelTable.from_data(np.array([1.0, wrong]), family=name)


def test_an_unknown_family_is_refused():
    with refused(ConfigError, setting="family"):
        family("tweedie")


@pytest.mark.parametrize("name", FAMILIES)
def test_what_a_family_says_of_its_labels_is_so(name):
    kind = family(name)
    assert kind.possible(np.array(kind.two_labels)).all()
    # Classes are 0 and 1 alone.
    assert kind.has_classes == (not kind.possible(np.array([2.0])).any())
    scores, labels = np.linspace(-2, 2, 9), np.full(9, LABELS[name][-1])
    slope = kind.likelihood(scores, labels).slope
    assert kind.linear_residue == np.allclose(slope, labels - scores)
