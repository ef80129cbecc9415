"""Every mechanism between parties: the joined table's model, whatever stops, kills or cuts a side.

What the parties have at the end is, number by number, what one process has that is fed their
entropy. A mechanism joins by one line in ``AGREEMENTS``.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
import pytest

from taciturn.errors import ConfigError
from taciturn.model.whole import own_part
from taciturn.numerics.likelihood import label_likelihood, weighted_likelihood
from taciturn.numerics.optimum import optimum, penalised_loss
from taciturn_risk.onnx import own_to_onnx, whole_to_onnx
from taciturn_risk.sklearn import to_sklearn
from tests.expected import refused
from tests.party.sides import (
    Company,
    records,
    scoring,
)
from tests.party.test_training import (
    AGREEMENTS,
    ALWAYS,
    CASES,
    ONE,
    Trained,
    group_shape,
    require_scores,
    seldom,
)


@pytest.fixture(scope="module", params=seldom([(case,) for case in CASES], [(c,) for c in ALWAYS]))
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    name, alices = request.param
    star = group_shape(tmp_path_factory.mktemp("trained"), name, alices)
    return Trained(name, star, records(star.run()))


@pytest.mark.parametrize("name", ["none", "sealed", "mutual"])
def test_columns_with_a_mean_are_scored_as_the_joined_table_is(tmp_path, name):
    """Bins are indicators, whose means are not zero: files, predictions and exports agree."""
    agreed = {**AGREEMENTS[name], "passes": 60 if name == "mutual" else 12}
    star = Company(tmp_path, ONE, agreement=agreed, sections={"data": {"bins": 3}})
    star.write_tables()
    star.run()
    tables = {side: star.prepared(side).tables for side in ("alice", "bob")}
    means = tables["alice"].train.values.mean(axis=0)
    assert star.share("alice").means == pytest.approx(means.tolist())
    assert np.abs(means).max() > 0.2
    labels = tables["bob"].labels
    assert labels is not None
    joined = np.hstack([side.train.values for side in tables.values()])
    likelihood = label_likelihood(labels.values, partial(weighted_likelihood, class_weight=None))
    weights, l2 = star.weights(), 1.0 / len(joined)
    best = optimum(joined, likelihood, l2, 1).loss
    # Scores of none are rounded at random in every pass, which the search is sensitive to.
    gap = penalised_loss(joined @ weights, likelihood, weights, l2, 1) - best
    assert gap < (2e-2 if name == "none" else 2e-3)
    for side in star.all:
        star.write_new(side, 120, 30)
    end = star.run(scoring)["bob"]
    require_scores(star, dict(zip(end.ids, end.scores.tolist(), strict=True)))
    frames = [pl.read_csv(star.new_rows(side)).sort("id") for side in ("alice", "bob")]
    whole = star.whole().scores(*frames)
    together = pl.concat([frames[0], frames[1].drop("id")], how="horizontal")
    exported = to_sklearn(*map(star.share, star.all)).decision_function(together)
    assert exported == pytest.approx(whole, abs=1e-9)
    if name == "none":
        parts = [own_part(star.share(side)) for side in ("alice", "bob")]
        own = [part.scores(frame) for part, frame in zip(parts, frames, strict=True)]
        assert sum(own) == pytest.approx(whole, abs=1e-9)
        assert abs(parts[0].offset) > 0.01


def test_new_rows_are_scored_and_the_model_exported(trained):
    star = trained.star
    for name in star.all:
        star.write_new(name, 120, 30)
    ends = star.run(scoring)
    assert [ends[name].scores for name in star.names] == [None] * len(star.names)
    scores = dict(zip(ends["bob"].ids, ends["bob"].scores.tolist(), strict=True))
    assert len(scores) == 30
    require_scores(star, scores)
    assert whole_to_onnx(star.whole())
    for name in star.all:
        share = star.share(name)
        if len(share.weights):
            assert own_to_onnx(own_part(share))
        else:
            with refused(ConfigError):
                own_part(share)
    if len(star.names) == 1:
        hers, his = (pl.read_csv(star.new_rows(name)).sort("id") for name in ("alice", "bob"))
        exported = to_sklearn(star.share("alice"), star.share("bob"))
        decided = exported.decision_function(hers.join(his, on="id").drop("id"))
        assert np.abs(decided - star.whole().scores(hers, his)).max() < 1e-9
