"""A model of counts, amounts or numbers between two parties, from training to exports."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

import taciturn
from taciturn.errors import ConfigError
from tests.expected import refused


def test_a_study_ranks_by_the_loss_and_a_forecast_knows_the_family():
    rng = np.random.default_rng(1)
    X, years = rng.normal(size=(120, 4)), rng.uniform(0.5, 2, 120)
    table = pl.DataFrame({f"x{j}": X[:, j] for j in range(4)}).with_columns(
        years=years, y=rng.poisson(years * np.exp(0.5 * X[:, 0]))
    )
    given: Any = {"label": "y", "family": "poisson", "exposure": "years", "scheme": "clear"}
    given["mechanism"] = "sealed"
    study = taciturn.study(table, vary={"l2": [1e-3, 10.0]}, folds=2, seed=1, **given)
    assert study.study.best == 1
    assert study.blocks()
    with refused(ConfigError, setting="rank_by"):
        taciturn.study(table, vary={"l2": [1e-3, 10.0]}, rank_by="auc", **given)
    assert taciturn.estimate(table, **given).bytes_to_bob > 0
    with refused(ConfigError, setting="family"):
        taciturn.woe(table, min_rows=10, **given)
