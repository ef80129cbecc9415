"""Standard errors and points, against statsmodels on real rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from taciturn.errors import ConfigError
from taciturn.families.binomial import sigmoid
from taciturn_risk.scorecard.points import (
    Scale,
    covariance,
    errors_of,
    information,
    row_information,
    wald,
)


@pytest.fixture(scope="module")
def sm() -> Any:
    import statsmodels.api

    return statsmodels.api


def table() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    columns = data.data[:, [0, 1, 4, 8, 9]]
    scaled = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    return np.column_stack([scaled, np.ones(len(scaled))]), data.target


def test_errors_and_tests_are_those_of_statsmodels(sm):
    design, labels = table()
    fitted = sm.Logit(labels, design).fit(disp=0, tol=1e-12)
    scores = design @ fitted.params
    matrix = information(design[:, :-1], row_information(scores), design[:, -1])
    errors = errors_of(covariance(matrix))
    assert errors == pytest.approx(fitted.bse, rel=1e-6)
    tests = [wald(*pair) for pair in zip(fitted.params.tolist(), errors.tolist(), strict=True)]
    assert [one.z for one in tests] == pytest.approx(fitted.tvalues.tolist(), rel=1e-6)
    assert [one.p_value for one in tests] == pytest.approx(fitted.pvalues.tolist(), rel=1e-4)
    ends = [(one.low, one.high) for one in tests]
    assert np.array(ends) == pytest.approx(fitted.conf_int(), rel=1e-6)


def test_the_sandwich_is_that_of_statsmodels(sm):
    design, labels = table()
    weights = np.where(labels == 1, 0.3, 1.7)
    family = sm.families.Binomial()
    fitted = sm.GLM(labels, design, family=family, freq_weights=weights).fit(tol=1e-12)
    probabilities = sigmoid(design @ fitted.params)
    bread = information(design, weights * probabilities * (1 - probabilities))
    meat = information(design, np.square(weights * (labels - probabilities)))
    # Its sandwich, as its estimating equations give it; HC0 with weights counts rows otherwise.
    inverse = np.linalg.inv(bread)
    assert covariance(bread, meat) == pytest.approx(inverse @ meat @ inverse)
    plain = sm.GLM(labels, design, family=family).fit(tol=1e-12, cov_type="HC0")
    probabilities = sigmoid(design @ plain.params)
    bread = information(design, probabilities * (1 - probabilities))
    meat = information(design, np.square(labels - probabilities))
    assert errors_of(covariance(bread, meat)) == pytest.approx(plain.bse, rel=1e-6)


def test_knowing_less_of_her_columns_never_gives_a_larger_error(sm):
    """The bound at Bob: her part of the score as one column, against all her columns."""
    design, labels = table()
    fitted = sm.Logit(labels, design).fit(disp=0, tol=1e-12)
    scores = design @ fitted.params
    hers, his = design[:, :3], design[:, 3:]
    part = hers @ fitted.params[:3]
    weights = row_information(scores)
    alone = errors_of(covariance(information(his, weights)))
    bound = errors_of(covariance(information(his, weights, part)))[:3]
    assert np.all(alone <= bound * (1 + 1e-9))
    assert np.all(bound <= fitted.bse[3:] * (1 + 1e-9))


def test_flipped_labels_tell_less_and_as_much_as_their_law_says():
    scores = np.linspace(-4, 4, 9)
    flipped = row_information(scores, 1.5)
    assert np.all(flipped < row_information(scores))
    assert row_information(scores, 60.0) == pytest.approx(row_information(scores))
    # The expected square of the score's derivative, from the two outcomes themselves.
    kept, step = 1 / (1 + math.exp(-1.5)), 1e-5

    def seen(at: np.ndarray) -> np.ndarray:
        return sigmoid(at) * kept + (1 - sigmoid(at)) * (1 - kept)

    change = (seen(scores + step) - seen(scores - step)) / (2 * step)
    expected = change**2 / seen(scores) + change**2 / (1 - seen(scores))
    assert flipped == pytest.approx(expected, rel=1e-6)


def test_columns_that_others_determine_have_no_error_of_their_own():
    design, _ = table()
    twice = np.column_stack([design, design[:, 0], np.zeros(len(design))])
    errors = errors_of(covariance(information(twice, np.full(len(design), 0.25))))
    assert np.isnan(errors[[0, 6, 7]]).all()
    alone = errors_of(covariance(information(design, np.full(len(design), 0.25))))
    assert errors[1:6] == pytest.approx(alone[1:])
    assert math.isnan(wald(1.0, float(errors[0])).p_value)


def test_points_double_the_odds():
    scale = Scale(600.0, 30.0, 20.0)
    odds = np.array([30.0, 60.0, 120.0])
    assert scale.points(-np.log(odds)).tolist() == pytest.approx([600, 620, 640])
    assert scale.points(0.7 - np.log(odds), shift=0.7).tolist() == pytest.approx([600, 620, 640])
    parts = [0.3, -1.2]
    assert scale.offset + sum(map(scale.worth, parts)) == pytest.approx(
        float(scale.points(np.array([sum(parts)]))[0])
    )


@pytest.mark.parametrize("numbers", [(600, 0, 20), (600, 50, -1), (math.nan, 50, 20)])
def test_what_makes_no_scale_is_refused(numbers):
    with pytest.raises(ConfigError):
        Scale(*map(float, numbers))
