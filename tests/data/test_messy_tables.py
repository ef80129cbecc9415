"""Messy tables give the model of clean ones, with the defaults and one setting a side."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from taciturn.data.csv_files import Dialect
from taciturn.data.ids import Normalisation
from taciturn.data.prepare import Preparation, fit
from taciturn.data.source import TableSource
from taciturn.data.user_table import DEFAULTS
from tests.messy_tables import STYLES, Pair, messy_pair, with_duplicates

ROWS = 3000
WORDS = ("town", "zip", "job")


def careful(pair: Pair, new: Pair) -> float:
    """AUC of scikit-learn with ordinary care, of people whom it has not seen."""
    names = pair.clean.columns
    numbers = [at for at, name in enumerate(names) if name not in WORDS]
    words = [at for at, name in enumerate(names) if name in WORDS]
    # A value of 1e9 among counts up to 12 would rule its column.
    frames = [frame.with_columns(pl.col("visits").clip(0, 12)) for frame in (pair.clean, new.clean)]
    filled = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    model = make_pipeline(
        ColumnTransformer(
            [
                ("numbers", filled, numbers),
                ("words", OneHotEncoder(handle_unknown="ignore", min_frequency=15), words),
            ]
        ),
        LogisticRegression(max_iter=2000),
    )
    train, test = (np.array(frame.rows(), dtype=object) for frame in frames)
    model.fit(train, pair.labels)
    return float(roc_auc_score(new.labels, model.decision_function(test)))


@pytest.mark.parametrize("name", STYLES)
def test_messy_tables_give_the_quality_of_clean_ones(tmp_path, name):
    style = STYLES[name]
    pair, new = messy_pair(ROWS, style, seed=1), messy_pair(ROWS * 2, style, seed=2, first=ROWS)
    order = np.random.default_rng(3).permutation(ROWS)
    hers, his = (
        prepared(tmp_path / "alice.csv", pair.alice[order], style.ids),
        prepared(tmp_path / "bob.csv", pair.bob.drop("outcome"), style.ids),
    )
    assert [*hers[2]] == [*his[2]]
    # Of what means nothing only a note is left.
    assert not any(column.startswith(("phone", "note")) for column in hers[0].columns)
    model = LogisticRegression(max_iter=2000)
    model.fit(np.hstack([hers[1], his[1]]), pair.labels)
    rows = np.hstack([hers[0].apply(new.alice), his[0].apply(new.bob)])
    auc = float(roc_auc_score(new.labels, model.decision_function(rows)))
    assert abs(auc - careful(pair, new)) < 0.003


def prepared(
    path: object, table: pl.DataFrame, ids: str
) -> tuple[Preparation, np.ndarray, list[str]]:
    """A side's preparation, its rows in the order of the common ids, and these."""
    with_duplicates(table).write_csv(path)  # type: ignore[call-overload]
    source = TableSource.at(path, Dialect(duplicates="first"))
    frame = source.frame(text=["customer"])
    distinct = source.distinct(frame, "customer", Normalisation.parse(ids))
    frame = distinct.taken_from(frame).drop("customer")
    plan = fit(frame, DEFAULTS)
    names = distinct.common.series
    order = names.str.replace_all(r"\D", "").cast(pl.Int64).arg_sort().to_numpy()
    return plan, plan.apply(frame)[order], names.gather(order).to_list()
