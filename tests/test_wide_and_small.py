"""Tables of awkward shapes, by defaults: the model is scikit-learn's on the joined rows."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import taciturn
from taciturn.numerics.sorted_scores import SortedScores

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "wide-and-small"
TABLES = runpy.run_path(str(EXAMPLE / "make_tables.py"))


@pytest.mark.parametrize(("name", "columns"), [("small", 5), ("wide", 300)])
@pytest.mark.sampled(1)
def test_the_model_is_that_of_the_joined_rows_and_says_what_the_partner_adds(name, columns):
    from sklearn.linear_model import LogisticRegression

    frame = TABLES[name](np.random.default_rng(5))
    hers = tuple(f"a{place}" for place in range(columns))
    result = taciturn.train(
        frame, id="person", label="label", alice_columns=hers, scheme="clear", seed=1
    )
    data, record = result.outcomes[0].data, result.to_dict()
    train, test = (
        np.hstack([alice.values, bob.values[:, :-1]])
        for alice, bob in ((data.alice_train, data.bob_train), (data.alice_test, data.bob_test))
    )
    joined = LogisticRegression(max_iter=2000).fit(train, data.labels_train.values)
    scores, truth = joined.decision_function(test), data.labels_test.values
    ranked = SortedScores.from_scores(scores, truth)
    # 0.3 points, which the tutorial's larger tables keep too.
    assert record["test"]["auc"] == pytest.approx(ranked.auc(), abs=0.003)
    # KS moves in steps of one row of a class.
    assert record["test"]["ks"] == pytest.approx(ranked.ks(), abs=2 / truth.sum())
    assert record["converged"]
    assert record["test"]["auc"] > record["bob_alone"]["auc"]
    adds = record["partner_adds"]
    assert adds["low"] < adds["auc"] < adds["high"]
    # Of 60 held-out rows nobody can say much of what the partner adds, and the interval shows it.
    assert (adds["high"] - adds["low"] > 0.2) == (name == "small")
