"""The scikit-learn face: its checks, its model against oracles, its words."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from taciturn.errors import DataError
from taciturn.estimator import VerticalLogisticRegression


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def test_a_seed_repeats_and_none_draws_one_that_repeats_too(cancer):
    X, y = cancer
    model = VerticalLogisticRegression(mechanism="add", epsilon=1.0, epochs=1)
    first, second = clone(model).fit(X, y), clone(model).fit(X, y)
    assert np.abs(first.coef_ - second.coef_).max() > 0
    again = clone(model).set_params(random_state=first.seed_).fit(X, y)
    np.testing.assert_array_equal(again.coef_, first.coef_)
    assert first.audit(X, y, canary=False)["seed"] == first.seed_


def test_an_audit_with_other_rows_or_labels_is_refused(cancer):
    X, y = cancer
    model = VerticalLogisticRegression(
        mechanism="none", scheme="clear", epochs=1, random_state=1
    ).fit(X, y)
    with pytest.raises(DataError):
        model.audit(X, y[::-1], canary=False)
    with pytest.raises(ValueError, match="class"):
        model.audit(X, y + 5)
    with pytest.raises(ValueError, match=r"569\b.*\b3\b"):
        model.audit(X, y[:3])
