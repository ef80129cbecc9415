"""The report of a simulated model: exact errors, on the joined table."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

from taciturn import api
from taciturn.errors import ConfigError
from taciturn.results.folder import from_record


@pytest.fixture(scope="module")
def result() -> api.TrainResult:
    return api.train(
        dataset="breast-cancer", scheme="clear", seed=1, mechanism="none", alice_columns="half"
    )


def test_errors_are_those_of_the_joined_table(result):
    report, outcome = result.model_report(costs=(1.0, 5.0)), result.outcomes[0]
    data = outcome.data
    design = np.concatenate([data.alice_train.values, data.bob_train.values], axis=1)
    weights = np.concatenate([outcome.alice_weights, outcome.bob_weights])
    errors = np.sqrt(
        np.diag(np.linalg.inv(-sm.Logit(data.labels_train.values, design).hessian(weights)))
    )
    names = [("alice", name) for name in data.alice_train.columns]
    names += [("bob", name) for name in data.bob_train.columns]
    known = {(one.side, one.column): one.error for one in report.coefficients}
    assert [known[name] for name in names] == pytest.approx(errors.tolist(), rel=2.0**-12)
    assert report.errors == "exact"
    held_out = report.judged[-1]
    assert held_out.metrics == result.runs.first.metrics.test
    assert held_out.cheapest is not None
    # Raw units come from the preparation.
    assert all(
        one.original is not None for one in report.coefficients if one.column != "(intercept)"
    )
    assert from_record(report.to_dict()).to_dict() == report.to_dict()


def test_wrong_numbers_are_refused(result):
    with pytest.raises(ConfigError):
        result.model_report(bands=0)
    with pytest.raises(ConfigError):
        result.model_report(points=(600.0, 0.0, 20.0))
