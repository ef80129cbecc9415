"""The scikit-learn face: its checks, its model against oracles, its words."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_class_weight_classifiers,
    check_classifiers_classes,
    check_estimators_pickle,
    check_fit_idempotent,
    parametrize_with_checks,
)

import taciturn
from taciturn.errors import ColumnError, ConfigError
from taciturn.estimator import VerticalLogisticRegression
from taciturn.jobs.train.simulation import simulate_training
from taciturn.numerics.logistic import Penalty
from taciturn.numerics.sgd import LearningRate, train_centralised
from taciturn.protocol.events import Progress
from tests.expected import refused

QUICK = VerticalLogisticRegression(scheme="clear")
# Small steps: some checks have columns with a spread of 20 and more.
BATCHES = VerticalLogisticRegression(
    scheme="clear", alice_columns="half", mechanism="none", learning_rate=0.01
)


# Some have rows that no linear model separates with these steps; it says so.
@pytest.mark.filterwarnings("ignore:the training diverged", "ignore:the training has not conv")
@parametrize_with_checks(
    [QUICK, BATCHES],
    expected_failed_checks=lambda estimator: (
        {"check_class_weight_classifiers": "ten epochs are too few for it; the next test has more"}
        if estimator.mechanism == "none"
        else {}
    ),
)
@pytest.mark.sampled(32)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow  # a second, and others show the same on less
def test_the_check_of_class_weights_given_the_epochs_that_it_needs():
    estimator = clone(BATCHES).set_params(epochs=1000)
    check_class_weight_classifiers("VerticalLogisticRegression", estimator)


@pytest.mark.filterwarnings("ignore:the training diverged", "ignore:the training has not conv")
@pytest.mark.parametrize(
    "check", [check_fit_idempotent, check_classifiers_classes, check_estimators_pickle]
)
def test_some_checks_with_the_default_scheme(check):
    check("VerticalLogisticRegression", VerticalLogisticRegression(passes=2))


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def centralised(model: Any, X: Any, y: Any, weights: Any = None) -> Any:
    """The model that one trainer with all columns makes of the same batches."""
    labels, batches = (y == model.classes_[1]).astype(np.int8), []

    def note(event):
        if isinstance(event, Progress) and event.rows is not None:
            batches.append(event.rows)

    simulate_training(model._settings(labels), model._raw(X, labels), observe=note)
    features = np.column_stack([X, np.ones(len(X))])
    rate = LearningRate(model.record_["learning_rate"])
    penalty = Penalty(model.l1, model.record_["l2"])
    return train_centralised(features, labels, batches, rate, penalty, 1, weights)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("options", "apart"),
    [
        ({"mechanism": "none"}, 1e-3),
        ({"mechanism": "none", "alice_columns": 7, "l1": 0.001}, 1e-3),
        ({"mechanism": "none", "scheme": "bfv", "epochs": 1}, 1e-3),
    ],
)
def test_the_weights_are_those_of_a_centralised_training(cancer, options, apart):
    X, y = cancer
    common = {"solver": "sgd", "scheme": "clear", "random_state": 3}
    model = VerticalLogisticRegression(**{**common, **options}).fit(X, y)
    expected = centralised(model, X, y)
    np.testing.assert_allclose(model.coef_[0], expected[:-1], atol=apart)
    np.testing.assert_allclose(model.intercept_, expected[-1:], atol=apart)
    assert model.record_["max_weight_difference"] < apart


@pytest.mark.sampled(2)
@pytest.mark.parametrize("weights", [None, {0: 1.0, 1: 4.0}, {0: 2.0}])
@pytest.mark.parametrize("mechanism", ["none", "sealed"])
def test_the_minimum_is_the_one_that_scikit_learn_finds(mechanism, weights):
    """Full batches and many steps; the largest weight is 1, as the class divides it."""
    X, y = make_classification(200, 4, random_state=5)
    X = StandardScaler().fit_transform(X)
    steps: dict[str, Any] = {"batch_size": 200, "epochs": 150, "learning_rate": 2.0}
    model = VerticalLogisticRegression(
        **(steps if mechanism == "none" else {}),
        mechanism=mechanism,
        scheme="clear",
        l2=0.02,
        class_weight=weights,
        random_state=1,
    ).fit(X, y)
    largest = max((weights or {0: 1.0}).values())
    relative = {label: (weights or {}).get(label, 1.0) / largest for label in (0, 1)}
    oracle = LogisticRegression(C=1 / (200 * 0.02), class_weight=relative, tol=1e-8).fit(X, y)
    # sealed rounds its features to some nine digits here.
    apart = 1e-4 if mechanism == "none" else 5e-3
    np.testing.assert_allclose(model.coef_, oracle.coef_, atol=apart)
    np.testing.assert_allclose(model.intercept_, oracle.intercept_, atol=apart)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mechanism", ["none", "hybrid"])
def test_class_weights_give_the_weighted_centralised_model(cancer, mechanism):
    X, y = cancer
    options: dict[str, Any] = {"epochs": 3}
    if mechanism == "hybrid":
        options |= {"l_rr": 60, "batch_size": 16}
    model = VerticalLogisticRegression(
        mechanism=mechanism, scheme="clear", random_state=2, class_weight={0: 6, 1: 2}, **options
    ).fit(X, y)
    assert model.record_["class_weight"] == [1.0, pytest.approx(1 / 3)]
    assert any("0.333333" in note for note in model.record_["notes"])
    expected = centralised(model, X, y, (1.0, 1 / 3))
    np.testing.assert_allclose(model.coef_[0], expected[:-1], atol=3e-3)
    assert model.record_["max_weight_difference"] < 3e-3
    plain = clone(model).set_params(class_weight=None).fit(X, y)
    assert np.abs(plain.coef_ - model.coef_).max() > 0.02


def test_balanced_weights_are_those_of_scikit_learn_where_nothing_is_claimed(cancer):
    X, y = cancer
    balanced, manual = (
        VerticalLogisticRegression(
            mechanism="none", scheme="clear", random_state=2, class_weight=weights
        ).fit(X, y)
        for weights in ("balanced", {0: 1 / np.sum(y == 0), 1: 1 / np.sum(y == 1)})
    )
    np.testing.assert_allclose(balanced.coef_, manual.coef_, atol=1e-9)


@pytest.mark.slow  # some seconds
def test_the_attacks_know_the_weights(cancer):
    """With other residues than Bob's the exact attacks would find nothing certain."""
    X, y = cancer
    model = VerticalLogisticRegression(
        mechanism="none",
        scheme="clear",
        fit_intercept=False,
        epochs=2,
        random_state=1,
        class_weight={0: 1, 1: 0.25},
    ).fit(X, y)
    by_name = {attack["name"]: attack for attack in model.audit(X, y, canary=False)["attacks"]}
    assert by_name["known-scores"]["accuracy"] == 1.0
    assert by_name["known-scores"]["decided_correct"] == 1.0


@pytest.mark.parametrize("mechanism", ["add", "mult", "label-rr"])
@pytest.mark.parametrize("weights", [{0: 1, 1: 2}, "balanced"])
def test_class_weights_are_refused_where_a_guarantee_does_not_know_them(mechanism, weights):
    model = VerticalLogisticRegression(mechanism=mechanism, epsilon=1.0, class_weight=weights)
    with refused(ConfigError, setting="class_weight", names=(mechanism, "class_weight=")):
        model.fit(*make_classification(40, random_state=1))


def test_weights_from_labels_are_refused_where_the_ledger_says_that_nothing_is_told():
    model = VerticalLogisticRegression(class_weight="balanced")
    with refused(ConfigError, setting="class_weight"):
        model.fit(*make_classification(40, random_state=1))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame])
def test_frames_keep_their_names_and_alices_columns_may_be_named(make):
    X, y = make_classification(80, 4, random_state=2)
    names = ["age", "income", "balance", "years"]
    frame = make(dict(zip(names, X.T, strict=True)))
    model = VerticalLogisticRegression(
        alice_columns=["years", "income"], mechanism="none", scheme="clear", random_state=1
    ).fit(frame, y)
    assert model.feature_names_in_.tolist() == names
    assert (model.record_["alice_columns"], model.record_["bob_columns"]) == (2, 2)
    bare = clone(model).set_params(alice_columns=["x1", "x3"]).fit(X, y)
    np.testing.assert_array_equal(model.coef_, bare.coef_)
    np.testing.assert_array_equal(model.predict(frame), bare.predict(X))
    with refused(ColumnError, setting="alice_columns", names="'sex'"):
        clone(model).set_params(alice_columns=["sex"]).fit(frame, y)


def test_who_has_which_column_does_not_change_the_order_of_the_weights(cancer):
    X, y = cancer
    models = [
        VerticalLogisticRegression(
            alice_columns=columns, mechanism="none", scheme="clear", solver="sgd", random_state=4
        ).fit(X, y)
        for columns in ("all", "half", 3, ["x29", "x0"], np.array(["x5"]))
    ]
    for model in models[1:]:
        np.testing.assert_allclose(model.coef_, models[0].coef_, atol=1e-3)


@pytest.mark.parametrize(("columns", "parties"), [("all", 3), ("x29,x0;x3", 2), ("equal", 4)])
@pytest.mark.parametrize("mechanism", ["none", "sealed"])
@pytest.mark.sampled(2)
def test_several_alices_have_scikit_learns_model(cancer, mechanism, columns, parties):
    X, y = cancer
    model = VerticalLogisticRegression(
        alice_columns=columns, parties=parties, mechanism=mechanism, scheme="clear", random_state=4
    ).set_params(passes=40)
    model.fit(X, y)
    oracle = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(model.coef_, oracle.coef_, atol=0.01)
    np.testing.assert_allclose(model.predict_proba(X), oracle.predict_proba(X), atol=1e-3)
    assert (model.predict(X) == oracle.predict(X)).all()
    assert len(model.record_["parties"]) == parties


@pytest.mark.parametrize("classes", [("no", "yes"), (-1, 1), (False, True), (2.0, 7.0)])
@pytest.mark.sampled(1)
def test_labels_may_be_any_two_values(classes):
    X, y = make_classification(80, random_state=2)
    model = VerticalLogisticRegression(mechanism="none", scheme="clear", random_state=1)
    named = np.array(classes)[y]
    model.fit(X, named)
    assert model.classes_.tolist() == list(classes)
    assert set(model.predict(X)) <= set(named)
    assert model.score(X, named) > 0.8
    np.testing.assert_array_equal(model.coef_, clone(model).fit(X, y).coef_)


def test_wrong_rows_and_labels_are_named():
    X, y = make_classification(60, random_state=1)
    model = VerticalLogisticRegression(scheme="clear")
    for labels in (np.arange(60) % 3, np.zeros(60)):
        with pytest.raises(ValueError, match="class"):
            model.fit(X, labels)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(np.arange(60)[:, None] == 7, np.nan, X), y)
    for name in ("sample_weight", "groups"):
        with pytest.raises(TypeError, match=name):
            model.fit(X, y, **{name: np.ones(60)})
    with pytest.raises(NotFittedError):
        clone(model).audit(X, y)
    with refused(ConfigError, setting="mechanism", names="seeled"):
        VerticalLogisticRegression(mechanism="seeled").fit(X, y)
    with refused(ConfigError, setting="epochs"):
        VerticalLogisticRegression(epochs=0).fit(X, y)


def test_columns_as_they_come_may_be_too_large_for_sealed_and_that_is_said(cancer):
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(ConvergenceWarning):
        VerticalLogisticRegression(
            mechanism="none", solver="sgd", scheme="clear", random_state=1
        ).fit(X, y)


def test_a_training_of_mutual_that_is_too_short_or_leaves_the_range_warns(cancer):
    options: dict[str, Any] = {"mechanism": "mutual", "scheme": "clear", "random_state": 1}
    # With few rows nothing is opened that could tell a party; a simulation knows the optimum.
    with pytest.warns(ConvergenceWarning) as few:
        VerticalLogisticRegression(passes=2, **options).fit(*cancer)
    assert len(few) == 1
    X, y = (np.concatenate([part] * 15) for part in cancer)
    with pytest.warns(ConvergenceWarning) as short:
        VerticalLogisticRegression(passes=2, **options).fit(X, y)
    assert len(short) == 1
    with pytest.warns(ConvergenceWarning) as wide:
        VerticalLogisticRegression(passes=3, score_range=4.0, l2=1e-5, **options).fit(X, y)
    assert len(wide) == 1


@pytest.mark.parametrize("alice", ["all", "half"])
@pytest.mark.parametrize("mechanism", ["none", "sealed"])
@pytest.mark.sampled(1)
def test_with_nothing_to_tune_it_is_scikit_learns_model(mechanism, alice):
    """Columns as they come, with spreads from 0.003 to 570: whitening makes them alike."""
    X, y = load_breast_cancer(return_X_y=True)
    model = VerticalLogisticRegression(
        alice_columns=alice, mechanism=mechanism, scheme="clear", passes=30, random_state=1
    ).fit(X, y)
    oracle = LogisticRegression(C=1.0, tol=1e-10, max_iter=100_000, solver="newton-cholesky")
    oracle.fit(X, y)
    ours, theirs = (fitted.predict_proba(X)[:, 1] for fitted in (model, oracle))
    assert np.abs(ours - theirs).max() < 0.02
    assert model.record_["optimum"]["gap"] < 1e-4


def test_a_column_that_does_not_vary_is_left_as_it_is():
    X, y = make_classification(60, 3, n_informative=2, n_redundant=0, random_state=1)
    X[:, 2] = 1.0
    model = VerticalLogisticRegression(
        mechanism="none", scheme="clear", fit_intercept=False, random_state=1
    ).fit(X, y)
    assert model.coef_[0, 2] != 0
    assert model.intercept_.tolist() == [0.0]


def test_nothing_of_the_rows_or_labels_is_kept(cancer):
    X, y = cancer
    model = VerticalLogisticRegression(mechanism="none", scheme="clear", random_state=1).fit(X, y)
    # 569 rows of 30 columns take 136,560 bytes.
    assert len(pickle.dumps(model)) < 20_000
    assert all(np.shape(attribute)[:1] != (len(y),) for attribute in vars(model).values())


def test_the_page_in_a_notebook_says_what_is_protected(cancer):
    X, y = cancer
    model = VerticalLogisticRegression(mechanism="none", scheme="clear", random_state=1)
    assert "taciturn-protection" not in model._repr_html_()
    page = model.fit(X, y)._repr_html_()
    assert page == model._repr_mimebundle_()["text/html"] or "taciturn-protection" in page
    assert "infinite" in page
    assert "safe" not in page.split("taciturn-protection")[1]


def test_what_a_page_shows_is_escaped():
    X, y = make_classification(40, random_state=1)
    model = VerticalLogisticRegression(mechanism="none", scheme="clear").fit(X, y)
    model.record_["ledger"]["assumption"] = "<script>"
    assert "<script>" not in model._protection_html()


def test_importing_taciturn_does_not_load_scikit_learn():
    program = (
        "import sys, taciturn; assert 'sklearn' not in sys.modules; taciturn.train; sys.exit(7)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 7
    assert taciturn.VerticalLogisticRegression is VerticalLogisticRegression
    with pytest.raises(AttributeError, match="HorizontalRegression"):
        taciturn.HorizontalRegression  # type: ignore[attr-defined]  # noqa: B018


def test_probabilities_are_corrected_for_class_weights():
    """A rare class: weighted twenty times, a model without correction says half where it is 5 %."""
    draws = np.random.default_rng(4)
    X = draws.standard_normal((3000, 3))
    y = (draws.random(3000) < 1 / (1 + np.exp(3.3 - X[:, 0]))).astype(int)
    weights = {0: 0.05, 1: 1.0}
    model = VerticalLogisticRegression(
        mechanism="sealed", scheme="clear", class_weight=weights, random_state=1
    ).fit(X, y)
    oracle = LogisticRegression(C=1.0, class_weight=weights).fit(X, y)
    probabilities = model.predict_proba(X)[:, 1]
    assert oracle.predict_proba(X)[:, 1].mean() > 5 * y.mean()
    assert probabilities.mean() == pytest.approx(y.mean(), rel=0.05)
    plain = LogisticRegression(C=1.0).fit(X, y).predict_proba(X)[:, 1]
    assert np.abs(probabilities - plain).mean() < 0.01
    # The class is the one that the weights ask for.
    assert np.mean(model.predict(X) == oracle.predict(X)) > 0.99
    record = model.record_
    assert record["train"]["calibration_ratio"] == pytest.approx(1, rel=0.05)
    assert record["train"]["loss"] == pytest.approx(log_loss(y, probabilities), rel=1e-3)
    assert record["bob_alone"]["calibration_ratio"] == pytest.approx(1, rel=0.05)
    assert any("0.04762" in note for note in record["notes"])
