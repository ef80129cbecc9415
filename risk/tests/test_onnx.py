"""ONNX models score as ours do: raw columns in, gaps and unknown categories included."""

from __future__ import annotations

import builtins
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.__main__ import run
from taciturn.arrays import FloatArray
from taciturn.data.datasets import load
from taciturn.data.prepare import Preparation, fit
from taciturn.data.rules import CategoricalRule, NumericRule
from taciturn.data.user_table import DEFAULTS
from taciturn.errors import ConfigError
from taciturn.families.binomial import sigmoid
from taciturn.model.share import ModelShare
from taciturn.model.whole import ModelPart, WholeModel, input_names, own_part, whole_model
from taciturn_risk.onnx import own_to_onnx, whole_to_onnx
from taciturn_risk.scorecard.card import card
from taciturn_risk.sklearn import to_sklearn
from tests.expected import refused
from tests.model.models import SHAPES, WAYS, feeds, halves, pair_of, people, share_of, strange

CLOSE = 1e-6


def session(content: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def inputs(ready: Any) -> set[str]:
    return {node.name for node in ready.get_inputs()}


def whole_inputs(ready: Any, whole: WholeModel, *frames: pl.DataFrame) -> dict[str, Any]:
    """All parties' columns as a session of the whole model takes them."""
    pairs = zip(frames, input_names(whole.parts), strict=True)
    return {
        name: values
        for frame, names in pairs
        for name, values in feeds(frame, names, inputs(ready)).items()
    }


def side_by_side(whole: WholeModel, *frames: pl.DataFrame) -> pl.DataFrame:
    """All parties' columns in one frame, under the names of the whole model."""
    pairs = zip(frames, input_names(whole.parts), strict=True)
    return pl.concat([frame.rename(names) for frame, names in pairs], how="horizontal")


def part_scores(part: ModelPart, frame: pl.DataFrame) -> FloatArray:
    """A part's scores by ONNX."""
    ready = session(own_to_onnx(part))
    plain = {rule.column: rule.column for rule in part.model.preparation.rules}
    (scores,) = ready.run(["score"], feeds(frame, plain, inputs(ready)))
    column: FloatArray = scores[:, 0]
    return column


def compare(hers: pl.DataFrame, his: pl.DataFrame, pair: tuple[ModelShare, ModelShare]) -> float:
    """The largest difference of any score or probability, of the whole and of each part."""
    whole = whole_model(*pair)
    ready = session(whole_to_onnx(whole))
    given_columns = whole_inputs(ready, whole, hers, his)
    score, probability, label = ready.run(["score", "probability", "label"], given_columns)
    exact = whole.scores(hers, his).reshape(-1, 1)
    assert score.dtype == probability.dtype == np.float64
    assert np.array_equal(label, (score > 0).astype(np.int64))
    apart = [np.abs(score - exact).max(), np.abs(probability - sigmoid(exact)).max()]
    joined = side_by_side(whole, hers, his)
    apart.append(np.abs(to_sklearn(*pair).decision_function(joined) - exact[:, 0]).max())
    for part, frame in zip(whole.parts, (hers, his), strict=True):
        apart.append(np.abs(part_scores(part, frame) - part.scores(frame)).max())
    return float(max(apart))


@pytest.mark.parametrize("way", [*WAYS, *SHAPES], ids=str)
def test_people_with_gaps_categories_and_a_column_on_both_sides(way):
    hers, his = people()
    assert compare(strange(hers), strange(his), pair_of(hers, his, way)) < CLOSE


def test_bobs_intercept_absorbs_alices_means_in_the_whole_model(tmp_path):
    hers, his = people()
    alice, bob = pair_of(hers, his, WAYS[0])
    centred = replace(alice, means=tuple(0.25 * place for place in range(len(alice.columns))))
    centred.save(tmp_path / "alice.json")
    assert ModelShare.load(tmp_path / "alice.json").offset == centred.offset
    assert centred.offset == pytest.approx(-float(np.array(centred.means) @ alice.weights))
    assert centred.offset != 0.0
    assert compare(hers, his, (centred, bob)) < CLOSE
    plain, whole = whole_model(alice, bob), whole_model(centred, bob)
    assert whole.scores(hers, his) == pytest.approx(plain.scores(hers, his) + centred.offset)
    # Alone her part has the offset, which ONNX has too.
    part = own_part(centred)
    assert part.scores(hers) == pytest.approx(whole.parts[0].scores(hers) + centred.offset)
    assert part_scores(part, hers) == pytest.approx(part.scores(hers), abs=CLOSE)


def test_bins_score_the_same_and_each_is_on_the_card(tmp_path):
    frame = pl.DataFrame({"debt": [*np.arange(200.0).tolist(), None]})
    plan = fit(frame, replace(DEFAULTS, bins={"debt": 10}, impute="bin"))
    share_of(plan, "bob", intercept=True).save(tmp_path / "bob.json")
    share = ModelShare.load(tmp_path / "bob.json")
    assert share.preparation == plan
    part = own_part(share)
    rows = pl.DataFrame({"debt": [-1.0, 20.0, 77.0, 1e6, None]})
    assert np.allclose(part_scores(part, rows), part.scores(rows), atol=CLOSE)
    shown = card(share).coefficients
    assert shown is not None
    assert {one.column for one in shown} == {*plan.columns}


def test_a_date_goes_in_as_days_and_its_parts_are_refused_by_name():
    frame = pl.DataFrame({"opened": ["2026-01-31", "2025-02-01", "2026-12-07", None]})
    plan = fit(frame, DEFAULTS)
    part = own_part(share_of(plan, "bob"))
    days = plan.rules[0].reading.numbers(frame["opened"]).reshape(-1, 1)
    (scores,) = session(own_to_onnx(part)).run(["score"], {"opened": days})
    assert np.allclose(scores[:, 0], part.scores(frame), atol=CLOSE)
    parts = own_part(share_of(fit(frame, replace(DEFAULTS, date_parts=("month",))), "bob"))
    with refused(ConfigError, names="'opened.month'"):
        own_to_onnx(parts)


def test_a_constant_column_with_gaps_says_where_they_are():
    frame = pl.DataFrame({"x": [1.0, None, 1.0]})
    part = own_part(share_of(fit(frame, DEFAULTS), "bob"))
    scores = part_scores(part, frame)
    assert np.allclose(scores, part.scores(frame), atol=CLOSE)
    assert len(set(scores.tolist())) == 2


@pytest.mark.parametrize(
    "name", ["breast-cancer", "sklearn-digits", "census-income", "give-me-some-credit"]
)
def test_datasets_by_their_own_preparation(name, request):
    large = {"census-income": "census", "give-me-some-credit": "credit"}
    raw = request.getfixturevalue(large[name]) if name in large else load(name)
    hers, his = (half.head(3000) for half in halves(raw))
    gaps = raw.settings.impute != "none"
    odd, even = strange(hers, gaps=gaps), strange(his, gaps=gaps)
    assert compare(odd, even, pair_of(hers, his, raw.settings)) < CLOSE


@settings(max_examples=30)
@given(
    values=st.lists(st.none() | st.floats(-1e12, 1e12), min_size=1, max_size=12),
    center=st.floats(-1e3, 1e3),
    scale=st.floats(1e-3, 1e3),
    clip=st.none() | st.floats(0.1, 100.0),
    impute=st.floats(-1e3, 1e3),
)
def test_any_numeric_rule(values, center, scale, clip, impute):
    plan = Preparation((NumericRule("x", impute, center, scale, clip),))
    part = own_part(share_of(plan, "alice"))
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)})
    assert np.allclose(part_scores(part, frame), part.scores(frame), rtol=1e-12, atol=1e-12)


@settings(max_examples=30)
@given(
    levels=st.lists(st.text(min_size=1, max_size=4), min_size=2, max_size=6, unique=True),
    data=st.data(),
)
def test_any_levels(levels, data):
    plan = Preparation((CategoricalRule("c", tuple(levels), dropped=levels[0]),))
    part = own_part(share_of(plan, "alice"))
    values = data.draw(
        st.lists(st.sampled_from(levels) | st.none() | st.text(max_size=3), min_size=1, max_size=9)
    )
    frame = pl.DataFrame({"c": pl.Series(values, dtype=pl.String)})
    assert np.allclose(part_scores(part, frame), part.scores(frame), atol=1e-12)


def test_spellings_of_a_level_and_amounts_as_numbers():
    frame = pl.DataFrame(
        {
            "town": ["Ulm", "ULM", "ulm", "Bonn", None] * 4,
            "member": ["yes", "No", "Y", "n", None] * 4,
        }
    )
    part = own_part(share_of(fit(frame, DEFAULTS), "bob"))
    rows = frame.head(5).vstack(pl.DataFrame({"town": ["bonn"], "member": ["maybe"]}))
    assert np.allclose(part_scores(part, rows), part.scores(rows), atol=1e-12)
    money = pl.DataFrame({"income": ["€ 1.834,51", "€ 12,00", None, "€ 7,5"]})
    part = own_part(share_of(plan := fit(money, DEFAULTS), "bob"))
    numbers = plan.rules[0].reading.numbers(money["income"]).reshape(-1, 1)
    (scores,) = session(own_to_onnx(part)).run(["score"], {"income": numbers})
    assert np.allclose(scores[:, 0], part.scores(money), atol=CLOSE)


def test_only_standard_operators_and_where_it_comes_from():
    import onnx

    hers, his = people()
    model = onnx.load_from_string(whole_to_onnx(whole_model(*pair_of(hers, his, WAYS[1]))))
    assert {opset.domain for opset in model.opset_import} == {"", "ai.onnx.ml"}
    assert {node.domain for node in model.graph.node} <= {"", "ai.onnx.ml"}
    facts = {entry.key: entry.value for entry in model.metadata_props}
    assert facts["taciturn.session"] == "ab" * 16
    assert json.loads(facts["taciturn.parts"]) == ["alice", "bob"]
    names = {node.name for node in model.graph.input}
    assert names == {"alice/age", "bob/age", "town", "grade", "debt"}


def test_a_gap_that_the_preparation_refuses_gives_no_number():
    part = own_part(share_of(Preparation((NumericRule("x"),)), "alice"))
    (scores,) = session(own_to_onnx(part)).run(["score"], {"x": np.array([[np.nan]])})
    assert np.isnan(scores).all()


def test_bob_with_an_intercept_alone_is_in_the_whole_and_nothing_by_himself():
    hers, _ = people()
    alice = share_of(fit(hers, WAYS[0]), "alice")
    bob = share_of(Preparation(()), "bob", intercept=True)
    whole = whole_model(alice, bob)
    ready = session(whole_to_onnx(whole))
    plain = {rule.column: rule.column for rule in alice.preparation.rules}
    (scores,) = ready.run(["score"], feeds(hers, plain, inputs(ready)))
    nothing = pl.DataFrame({"id": range(hers.height)})
    assert np.allclose(scores[:, 0], whole.scores(hers, nothing), atol=1e-12)
    with refused(ConfigError):
        own_to_onnx(ModelPart(bob, bob.weights))


def test_the_package_missing_is_named_with_the_way_out(tmp_path, monkeypatch, capsys):
    """In an installation without the extra the import fails; here it is made to."""
    really = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "onnx":
            raise ModuleNotFoundError(name, name=name)
        return really(name, *rest)

    hers, his = people()
    path = tmp_path / "bob.model.json"
    pair_of(hers, his, WAYS[0])[1].save(path)
    monkeypatch.setattr(builtins, "__import__", without)
    assert run(["model", "export", str(path), "--onnx", str(tmp_path / "out.onnx")]) == 10
    assert ".[onnx]" in capsys.readouterr().err
    assert not (tmp_path / "out.onnx").exists()


def test_the_command_writes_a_part_and_the_whole(tmp_path, capsys):
    hers, his = people()
    alice, bob = pair_of(hers, his, WAYS[0])
    files: list[Path] = []
    for share in (alice, bob):
        files.append(tmp_path / f"{share.role}.model.json")
        share.save(files[-1])
    out = tmp_path / "whole.onnx"
    assert run(["model", "export", *map(str, files), "--onnx", str(out), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["outputs"] == ["score", "probability", "label"]
    assert record["bytes"] == out.stat().st_size
    assert out.stat().st_mode & 0o077 == 0
    assert out.read_bytes() == whole_to_onnx(whole_model(bob, alice))
    assert run(["model", "export", str(files[0]), "--onnx", str(tmp_path / "part.onnx")]) == 0
    assert (tmp_path / "part.onnx").read_bytes() == own_to_onnx(own_part(alice))


def test_the_label_is_by_the_threshold_that_the_training_chose():
    """In ONNX and in scikit-learn's pipeline, as in a joint prediction; the metadata says it."""
    hers, his = people()
    alice, bob = pair_of(hers, his, WAYS[0])
    even = whole_model(alice, bob).scores(hers, his)
    score = float(np.quantile(even, 0.3))
    threshold = {
        "probability": float(sigmoid(np.array([score]))[0]),
        "score": score,
        "rule": "youden",
        "rows": 9,
    }
    bob = replace(bob, metrics={"threshold": threshold})
    whole = whole_model(alice, bob)
    ready = session(whole_to_onnx(whole))
    (label,) = ready.run(["label"], whole_inputs(ready, whole, hers, his))
    assert np.array_equal(label[:, 0], even > score)
    assert not np.array_equal(label[:, 0], even > 0)
    about = ready.get_modelmeta().custom_metadata_map
    assert float(about["taciturn.threshold"]) == threshold["probability"]
    joined = side_by_side(whole, hers, his)
    assert np.array_equal(to_sklearn(alice, bob).predict(joined), label[:, 0])
    with refused(ConfigError):
        _ = replace(bob, metrics={"threshold": {"score": "high"}}).threshold


def test_probabilities_are_corrected_for_class_weights():
    """In ONNX and in scikit-learn's pipeline: the label is the score's side of 0 all the same."""
    hers, his = people()
    weighted = [
        replace(share, agreement={**share.agreement, "class_weight": [0.05, 1.0]})
        for share in pair_of(hers, his, WAYS[0])
    ]
    whole = whole_model(*weighted)
    ready = session(whole_to_onnx(whole))
    given_columns = whole_inputs(ready, whole, hers, his)
    probability, label = ready.run(["probability", "label"], given_columns)
    scores = whole.scores(hers, his)
    # Odds of twenty to one in the weighted training are even among the rows.
    odds = np.exp(scores) / 20
    np.testing.assert_allclose(probability[:, 0], odds / (1 + odds), atol=CLOSE)
    assert np.array_equal(label[:, 0], scores > 0)
    pipeline = to_sklearn(*weighted)
    joined = side_by_side(whole, hers, his)
    np.testing.assert_allclose(pipeline.predict_proba(joined)[:, 1], probability[:, 0], atol=CLOSE)
    assert np.array_equal(pipeline.predict(joined), label[:, 0])
    assert "2.996" in card(weighted[1]).notes[-1]
    broken = replace(weighted[1], agreement={"class_weight": "heavy"})
    with refused(ConfigError):
        card(broken)
