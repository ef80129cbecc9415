"""``sealed`` through the front door: the centralised model, an audit without signals, forecasts."""

from __future__ import annotations

from typing import Any

import pytest

from taciturn.api import train


def record(**options: Any) -> dict[str, Any]:
    return train(**{"mechanism": "sealed", "scheme": "clear", "seed": 1, **options}).to_dict()


def require_centralised(result: dict[str, Any], weights: float, *, accuracy: float = 0.0) -> None:
    assert result["max_weight_difference"] < weights
    assert abs(result["test"]["accuracy"] - result["centralised"]["accuracy"]) <= accuracy
    assert abs(result["test"]["auc"] - result["centralised"]["auc"]) < 1e-4
    assert result["sealed"]["suspected_wraps"] == 0
    assert result["ledger"]["label_epsilon_total"] == 0
    assert "IND-CPA" in result["ledger"]["assumption"]


@pytest.mark.parametrize("columns", ["all", "half"])
@pytest.mark.parametrize("dataset", ["breast-cancer", "sklearn-digits"])
@pytest.mark.sampled(2)
def test_the_small_datasets_equal_centralised_training(dataset, columns):
    require_centralised(record(dataset=dataset, alice_columns=columns), weights=0.02)


def test_a_scheme_that_hides_nothing_is_noted():
    """One note more, which names the scheme."""
    clear, hidden = (
        record(dataset="breast-cancer", scheme=scheme, passes=1)["notes"]
        for scheme in ("clear", "bfv")
    )
    (more,) = set(clear) - set(hidden)
    assert "clear" in more
    assert not set(hidden) - set(clear)


@pytest.mark.slow
@pytest.mark.parametrize("columns", ["all", "half"])
@pytest.mark.parametrize("dataset", ["census-income", "give-me-some-credit"])
def test_the_large_datasets_equal_centralised_training(dataset_dir, dataset, columns):
    folder = str(dataset_dir(dataset))
    result = record(dataset=dataset, alice_columns=columns, data_dir=folder)
    require_centralised(result, weights=0.1, accuracy=3e-4)
