"""A study on one machine: which models it trains, what they cost, and which is best."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import taciturn
from taciturn.data.ids import fold_numbers
from taciturn.errors import ConfigError, ShapeError, TaciturnError
from taciturn.jobs.study.report import study_blocks, study_page
from taciturn.jobs.study.result import SimulatedStudy
from taciturn.privacy.solvers import resolved
from taciturn.results.folder import from_record
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, arrange, load_raw
from tests.expected import refused

SAME: dict[str, Any] = {
    "dataset": "breast-cancer",
    "scheme": "clear",
    "seed": 3,
    "alice_columns": "half",
}


@pytest.fixture(scope="module")
def studied() -> SimulatedStudy:
    """Two penalties and two numbers of passes, newton, in the open."""
    vary: dict[str, Any] = {"l2": [0.001, 0.1], "passes": [20, 24]}
    return taciturn.study(vary=vary, folds=3, solver="newton", **SAME)


def test_folds_have_the_figures_of_scikit_learn(studied):
    settings = resolved(Settings.from_mapping({**SAME, "solver": "newton"}))
    data = arrange(settings, load_raw(settings), RunEntropy.for_seed(3).data)
    rows = np.hstack([data.alice_train.values, data.bob_train.values])
    labels = data.labels_train.values
    folds = fold_numbers(data.labels_train.ids, 3, "3")
    for setting in studied.study.settings:
        assert setting.folds is not None
        for fold, said in enumerate(setting.folds):
            inside = folds == fold
            penalty = 1 / (float(str(setting.values["l2"])) * np.count_nonzero(~inside))
            best = LogisticRegression(C=penalty, fit_intercept=False, tol=1e-10, max_iter=10_000)
            best.fit(rows[~inside], labels[~inside])
            expected = log_loss(labels[inside], best.predict_proba(rows[inside])[:, 1])
            assert said.loss == pytest.approx(expected, rel=0.01)


def test_it_says_what_all_models_open_and_cost(studied):
    assert studied.study.models == 16
    # The two penalties share a search, of two passes more for each.
    assert studied.scores_per_row == 3 * (20 + 4) + 2 + 3 * (24 + 4) + 2
    assert studied.ledger.label_epsilon_total == 0
    assert studied.study.choice_bits == 2
    assert studied.workers >= 1


def test_the_record_is_read_back_and_shown(studied):
    assert from_record(studied.to_dict()).to_dict() == studied.to_dict()
    best = studied.study.best_setting
    assert best is not None
    assert best.loss == min(one.loss for one in studied.study.settings if one.loss is not None)
    assert len(study_blocks(studied)) > 2
    page = study_page(studied)
    assert page.figures[0].svg.startswith("<svg")


@pytest.mark.slow  # a second or two, and others show the same on less
def test_how_many_processes_train_changes_nothing(studied):
    vary: dict[str, Any] = {"l2": [0.001, 0.1], "passes": [20, 24]}
    again = taciturn.study(vary=vary, folds=3, solver="newton", processes=1, **SAME)
    for one, two in zip(again.study.settings, studied.study.settings, strict=True):
        assert (one.folds, one.loss) == (two.folds, two.loss)


@pytest.mark.parametrize(
    ("vary", "options", "named"),
    [
        ({}, {}, ()),
        ({"l2": [0.1]}, {"seeds": 2}, "seed"),
        ({"l2": [0.1], "passes": [2]}, {"mechanism": "none", "solver": "sgd"}, "model 1"),
        ({"columns": [["bob"]]}, {}, "columns"),
        ({"bins": [0, 4]}, {}, "bins"),
        ({"epsilon": [1.0], "l2": [0.1]}, {"folds": 99}, "folds"),
        ({"epsilons": [1.0]}, {}, "epsilons"),
    ],
)
def test_what_cannot_be_studied_is_refused_by_name(vary, options, named):
    with refused(ConfigError, names=named):
        taciturn.study(vary=vary, **{**SAME, **options})


def test_too_few_rows_for_the_folds_are_refused():
    rng = np.random.default_rng(1)
    with refused(ShapeError, names=20):
        taciturn.study(
            rng.normal(size=(24, 2)),
            np.arange(24) % 2,
            vary={"l2": [0.1]},
            folds=20,
            alice_columns=1,
            scheme="clear",
        )


def test_a_model_that_fails_in_its_process_is_named():
    with pytest.raises(TaciturnError) as raised:
        taciturn.study(vary={"epsilon": [1.0, 1e-9]}, folds=0, epochs=1, mechanism="add", **SAME)
    assert "model 2" in str(raised.value)


@pytest.mark.slow  # a second or two, and others show the same on less
def test_a_priced_mechanism_pays_for_every_model():
    result = taciturn.study(
        vary={"epsilon": [1.0, 3.0]}, folds=2, mechanism="add", epochs=2, **SAME
    )
    # Half of each epsilon a release, two epochs, in one of two folds and on all rows.
    assert result.ledger.label_epsilon_total == pytest.approx((0.5 + 1.5) * 2 * 2)
    assert math.isfinite(result.study.settings[0].loss or math.nan)
