"""Generalised linear models against scikit-learn's and statsmodels', with real keys.

Half of the columns are Alice's. Fixed point has 16 bits or fewer of a feature: coefficients agree
to a few thousandths of the largest, and what a model is worth to many digits more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.linear_model import GammaRegressor, PoissonRegressor, Ridge
from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance, mean_squared_error
from sklearn.utils.estimator_checks import parametrize_with_checks

import taciturn
from taciturn.errors import ColumnError, ConfigError
from taciturn.regressors import VerticalGammaRegressor, VerticalPoissonRegressor, VerticalRidge
from taciturn.settings.schema import DEFAULT_MECHANISM
from tests.expected import refused

MODELS: dict[str, Any] = {
    "gaussian": VerticalRidge,
    "poisson": VerticalPoissonRegressor,
    "gamma": VerticalGammaRegressor,
}
DEVIANCES: dict[str, Any] = {
    "gaussian": mean_squared_error,
    "poisson": mean_poisson_deviance,
    "gamma": mean_gamma_deviance,
}
ROWS = 1500


class Rows(NamedTuple):
    X: Any
    y: Any
    exposure: Any
    weights: Any


def rows_of(family: str, rows: int = ROWS) -> Rows:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(rows, 8))
    X[:, 1] = 0.6 * X[:, 6] + 0.8 * X[:, 1]
    effect = X @ np.array([0.3, -0.2, 0.4, 0.0, 0.1, 0.25, -0.3, 0.2])
    exposure, weights = rng.uniform(0.1, 2.0, rows), rng.integers(1, 5, rows).astype(float)
    y = {
        "gaussian": lambda: 2e5 + 5e4 * (effect + rng.normal(size=rows)),
        "poisson": lambda: rng.poisson(exposure * np.exp(effect - 1.5)).astype(float),
        "gamma": lambda: rng.gamma(2.0, exposure * np.exp(effect + 7) / 2.0),
    }[family]()
    return Rows(X, y, exposure, weights)


def fitted(family: str, rows: Rows, **options: Any) -> Any:
    options = {"mechanism": "sealed", **options}
    model = MODELS[family](alice_columns="half", random_state=1, **options)
    exposure = None if family == "gaussian" else rows.exposure
    return model.fit(rows.X, rows.y, rows.weights, exposure=exposure)


def scikit_learns(family: str, rows: Rows, l2: float) -> Any:
    X, y, exposure, weights = rows
    if family == "gaussian":
        return Ridge(alpha=l2 * weights.sum()).fit(X, y, weights)
    if family == "poisson":
        # A rate whose weight is its exposure is a count with that exposure.
        model = PoissonRegressor(alpha=l2 * weights.sum() / (weights * exposure).sum(), tol=1e-10)
        return model.set_params(max_iter=10_000).fit(X, y / exposure, weights * exposure)
    return GammaRegressor(alpha=l2, tol=1e-10, max_iter=10_000).fit(X, y / exposure, weights)


@pytest.mark.parametrize("mechanism", ["none", "sealed"])
@pytest.mark.parametrize("family", MODELS)
def test_it_is_scikit_learns_model(family, mechanism):
    rows, l2 = rows_of(family), 0.01
    model, oracle = (
        fitted(family, rows, l2=l2, mechanism=mechanism),
        scikit_learns(family, rows, l2),
    )
    largest = np.abs(oracle.coef_).max()
    np.testing.assert_allclose(model.coef_, oracle.coef_, atol=4e-3 * largest)
    ours, theirs = model.predict(rows.X), oracle.predict(rows.X)
    np.testing.assert_allclose(ours, theirs, rtol=4e-3)
    factor = 1.0 if family == "gaussian" else rows.exposure
    deviances = [DEVIANCES[family](rows.y, factor * means) for means in (ours, theirs)]
    assert deviances[0] == pytest.approx(deviances[1], rel=2e-4)


@pytest.mark.parametrize("family", MODELS)
def test_it_is_statsmodels_glm_with_offset_and_weights(family):
    rows = rows_of(family)
    model = fitted(family, rows, l2=1e-9)
    kind = {
        "gaussian": sm.families.Gaussian(),
        "poisson": sm.families.Poisson(),
        "gamma": sm.families.Gamma(sm.families.links.Log()),
    }[family]
    offset = None if family == "gaussian" else np.log(rows.exposure)
    X = np.column_stack([rows.X, np.ones(len(rows.X))])
    oracle = sm.GLM(rows.y, X, kind, offset=offset, var_weights=rows.weights).fit(tol=1e-12)
    largest = np.abs(oracle.params[:-1]).max()
    np.testing.assert_allclose(model.coef_, oracle.params[:-1], atol=4e-3 * largest)
    assert model.intercept_ == pytest.approx(oracle.params[-1], abs=4e-3 * largest)
    trained = model.record_["train"]
    deviance = trained["deviance"] * rows.weights.sum()
    assert deviance == pytest.approx(oracle.deviance, rel=1e-4)
    explained = 1 - oracle.deviance / oracle.null_deviance
    assert trained["deviance_explained"] == pytest.approx(explained, abs=1e-4)
    if family == "poisson":
        # Of a gamma regression the sums of labels and means differ.
        assert trained["calibration_ratio"] == pytest.approx(1.0, abs=1e-2)
    assert model.record_["converged"]
    assert model.record_["optimum"]["gap"] < 1e-5


@pytest.mark.parametrize("family", MODELS)
def test_without_an_intercept_nothing_is_centred(family):
    rows = rows_of(family)
    # Without one, a mean of 1 or 0 is where a model starts.
    y = rows.y - 2e5 if family == "gaussian" else rows.y / np.median(rows.y + 1)
    rows = rows._replace(y=y)
    model = fitted(family, rows, scheme="clear", fit_intercept=False, l2=1e-9)
    assert model.intercept_ == 0
    assert model.record_["optimum"]["gap"] < 1e-4


def test_several_alices_train_the_same_model():
    rows = rows_of("poisson")
    one, three = (fitted("poisson", rows, scheme="clear", parties=parties) for parties in (1, 3))
    np.testing.assert_allclose(one.coef_, three.coef_, atol=2e-3)


def test_ridge_where_nobody_sees_a_score():
    rows = rows_of("gaussian")
    model = VerticalRidge(alice_columns="half", mechanism="mutual", l2=0.01, random_state=1)
    model.fit(rows.X, rows.y)
    oracle = Ridge(alpha=0.01 * len(rows.X)).fit(rows.X, rows.y)
    largest = np.abs(oracle.coef_).max()
    np.testing.assert_allclose(model.coef_, oracle.coef_, atol=1e-3 * largest)
    assert model.record_["optimum"]["gap"] < 1e-7
    assert model.record_["ledger"]["label_epsilon_total"] == 0
    # No sigmoid is exchanged: fewer bytes than a logistic regression of the same rows.
    logistic = taciturn.VerticalLogisticRegression(
        alice_columns="half", mechanism="mutual", l2=0.01, random_state=1, passes=3
    ).fit(rows.X, rows.y > rows.y.mean())
    short = VerticalRidge(
        alice_columns="half", mechanism="mutual", l2=0.01, random_state=1, passes=3
    ).fit(rows.X, rows.y)
    sizes = [one.record_["bytes_to_alice"] for one in (short, logistic)]
    assert sizes[0] < 0.6 * sizes[1]
    with refused(ConfigError, setting="weights"):
        model.fit(rows.X, rows.y, rows.weights)


def test_the_score_is_the_deviance_explained():
    rows = rows_of("poisson")
    model = fitted("poisson", rows, scheme="clear")
    given = (rows.X, rows.y, rows.weights)
    explained = model.record_["train"]["deviance_explained"]
    assert model.score(*given, exposure=rows.exposure) == pytest.approx(explained, abs=1e-3)
    means = model.predict(rows.X, rows.exposure)
    np.testing.assert_allclose(means, rows.exposure * np.exp(model.linear_predictor(rows.X)))


def test_what_cannot_be_is_refused_by_name():
    rows = rows_of("poisson")
    with pytest.raises(ValueError, match="gamma"):
        VerticalGammaRegressor().fit(rows.X, rows.y)
    assert VerticalRidge().mechanism == VerticalPoissonRegressor().mechanism == DEFAULT_MECHANISM
    for mechanism in ("add", "mutual"):
        with refused(ConfigError, setting="family"):
            VerticalPoissonRegressor(mechanism=mechanism).fit(rows.X, rows.y)
    with refused(ColumnError, setting="exposure"):
        VerticalPoissonRegressor().fit(rows.X, rows.y, exposure=0 * rows.exposure)


@parametrize_with_checks(
    [kind(mechanism="sealed", scheme="clear", alice_columns="half") for kind in MODELS.values()],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "fixed point rounds to fewer digits"
    },
)
@pytest.mark.sampled(32)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_they_are_exported():
    assert taciturn.VerticalRidge is VerticalRidge
