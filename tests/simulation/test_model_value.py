"""What the partner adds, beside every training: Bob's own model against scikit-learn's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

import taciturn
from taciturn.api import TrainResult
from taciturn.errors import DivergenceError
from taciturn.numerics.convergence import SEEN_ONCE
from taciturn.numerics.label_metrics import class_metrics
from taciturn.numerics.metrics import AddedAuc, Metrics
from taciturn.privacy.row_noise import OPENING_ROWS
from taciturn.report.training import worth_facts
from taciturn.results.folder import from_record
from taciturn.results.training import TrainingRun

BASE: dict[str, Any] = {"mechanism": "none", "scheme": "clear", "seed": 3}
# After twelve passes, the default, only the optimum tells that the loss has settled.
CONVERGED: dict[str, Any] = {
    "solver": "newton",
    "alice_columns": "half",
    "intercept": True,
    "passes": 16,
}


def train(**options: Any) -> TrainResult:
    return taciturn.train(**{"dataset": "breast-cancer", **BASE, **options})


def worth(result: TrainResult) -> tuple[TrainingRun, Metrics, AddedAuc]:
    run = result.runs.first
    assert isinstance(run.metrics.partner_adds, AddedAuc)
    return run, class_metrics(run.metrics.bob_alone), run.metrics.partner_adds


@pytest.fixture(scope="module")
def newton():
    return train(**CONVERGED)


def test_bob_alone_is_scikit_learns_model_of_his_columns(newton):
    data, (run, alone, added) = newton.outcomes[0].data, worth(newton)
    columns, held_out = data.bob_train.values[:, :-1], data.bob_test.values[:, :-1]
    labels, truth = data.labels_train.values, data.labels_test.values
    # The default penalty is one divided by the rows: that of C = 1.
    fitted = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(columns, labels)
    scores, chances = fitted.decision_function(held_out), fitted.predict_proba(held_out)
    assert alone.auc == pytest.approx(roc_auc_score(truth, scores), abs=1e-9)
    assert alone.loss == pytest.approx(log_loss(truth, chances), abs=1e-5)
    assert alone.accuracy == np.mean((scores > 0) == truth)
    assert added.auc == pytest.approx(class_metrics(run.metrics.test).auc - alone.auc, abs=1e-12)
    assert added.low <= added.auc <= added.high
    assert run.convergence.converged
    assert run.convergence.last_change == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("solver", ["sgd", "newton"])
def test_without_columns_bob_alone_is_the_base_rate(solver):
    run, alone, added = worth(train(solver=solver))
    assert (run.data.bob_columns, run.agreement.intercept) == (0, False)
    assert (alone.auc, alone.ks) == (0.5, 0.0)
    rate, held_out = (
        class_metrics(part).base_rate for part in (run.metrics.train, run.metrics.test)
    )
    entropy = -held_out * math.log(rate) - (1 - held_out) * math.log(1 - rate)
    assert alone.loss == pytest.approx(entropy, abs=1e-3)
    assert added.low > 0.4


def test_columns_of_noise_add_nothing():
    draws = np.random.default_rng(1)
    own = draws.standard_normal((2000, 2))
    labels = (own.sum(axis=1) + draws.standard_normal(2000) > 0).astype(int)
    table = np.hstack([draws.standard_normal((2000, 5)), own])
    options = {**BASE, "alice_columns": "5", "mechanism": "sealed"}
    _, alone, added = worth(taciturn.train(table, labels, **options))
    assert added.low < 0 < added.high
    assert added.high - added.low < 0.02
    assert alone.auc > 0.8


def test_a_model_is_compared_with_the_optimum_only_where_that_is_wanted(newton):
    plain = train(**CONVERGED, compare_optimum=False)
    run, record = plain.runs.first, plain.to_dict()
    assert (
        run.comparison.centralised,
        run.comparison.optimum,
        run.comparison.max_weight_difference,
    ) == (None, None, None)
    assert run.convergence.converged
    assert from_record(record).to_dict() == record
    assert len(plain.runs.blocks()) == len(newton.runs.blocks())
    assert plain.weights["bob"].tolist() == newton.weights["bob"].tolist()


def test_a_wide_table_is_compared_with_the_optimum_only_where_that_is_asked_for():
    rng = np.random.default_rng(2)
    values, labels = rng.normal(size=(30, 1001)), np.arange(30) % 2
    options: dict[str, Any] = {**BASE, "solver": "newton", "passes": 1, "alice_columns": 1}
    wide, narrow = (
        taciturn.train(values[:, :columns], labels, **options).runs.first
        for columns in (1001, 1000)
    )
    assert wide.comparison.optimum is None
    assert narrow.comparison.optimum is not None


def test_where_nobody_sees_a_score_the_change_of_the_loss_is_opened_from_enough_rows_on():
    draws = np.random.default_rng(4)
    table, labels = draws.normal(size=(10_300, 2)), draws.integers(0, 2, 10_300)
    few, many = (
        taciturn.train(
            table[:rows],
            labels[:rows],
            **{**BASE, "mechanism": "mutual"},
            passes=2,
            alice_columns=1,
        ).runs
        for rows in (1_000, 10_300)
    )
    run = many.first
    assert run.data.rows >= OPENING_ROWS
    assert run.convergence.last_change == run.opened_change is not None
    assert (run.convergence.diverged, run.scores_beyond_range) == (False, 0)
    assert worth_facts(many)["converged"]
    assert run.ledger.columns is not None
    # Of held-out rows one score each, and two sums.
    assert run.ledger.columns.opened_values == run.data.held_out_rows + 2
    run = few.first
    assert (run.opened_change, run.scores_beyond_range, run.convergence.last_change) == (
        None,
        None,
        None,
    )
    assert run.ledger.columns is not None
    assert run.ledger.columns.opened_values == run.data.held_out_rows


def test_the_reason_why_convergence_is_not_known_says_who_sees_which_losses():
    assert train(epochs=1).runs.first.convergence.reason == SEEN_ONCE
    assert train(epochs=2).runs.first.convergence.reason is None


def test_a_training_that_diverged_is_an_error_with_a_way_out():
    """Finite figures, of a model that is worse than none: they used to be printed as a result."""
    draws = np.random.default_rng(1)
    table = draws.lognormal(10, 1, (300, 2))
    labels = (draws.random(300) < 0.5).astype(int)
    options = {**BASE, "scale": "none"}
    with pytest.raises(DivergenceError) as raised:
        taciturn.train(table, labels, alice_columns="1", solver="sgd", **options)
    assert raised.value.exit_code == 11
    assert 'solver="newton"' in str(raised.value)
    arrived = taciturn.train(table, labels, alice_columns="1", **options).runs.first
    assert arrived.convergence.converged
    assert not arrived.convergence.diverged


def test_noise_that_spoils_a_model_is_a_result():
    run = train(mechanism="add", epsilon=0.01, epochs=2).runs.first
    assert run.convergence.diverged
    assert run.metrics.test.loss > 1.4
