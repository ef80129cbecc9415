"""Check and audit of whole-table training, by the real programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from audit.tests.attacks.evidence import numbers

import taciturn
from taciturn_audit.results.check import AT_RISK, CLEAR
from taciturn_audit.results.runs import AuditResult

ALICE = "age,income,place"


def table(rows: int = 200, seed: int = 1) -> pl.DataFrame:
    """Random columns and labels, and a place from which one row comes."""
    entropy = np.random.default_rng(seed)
    places = entropy.choice(["east", "north", "south"], rows)
    places[3] = "west"
    return pl.DataFrame(
        {
            "age": entropy.normal(size=rows),
            "income": entropy.normal(size=rows),
            "place": places,
            "savings": entropy.normal(size=rows),
            "label": entropy.integers(0, 2, rows),
        }
    )


def audit(frame: pl.DataFrame, **options: Any) -> AuditResult:
    """On own data newton is the default; hardly any row is held out."""
    base: dict[str, Any] = {"mechanism": "none", "scheme": "clear", "seed": 1, "canary": False}
    base["seat"] = "alice"
    common = {"label": "label", "alice_columns": ALICE, "test_fraction": 0.01}
    return taciturn.audit(frame, **{**base, **common, **options})


@pytest.mark.parametrize(("seed", "intercept"), [(1, False), (2, True)])
def test_the_label_of_a_category_of_one_row_is_told_though_bob_has_columns(seed, intercept):
    run = audit(table(seed=seed), intercept=intercept)
    moments = run.attack("moments")
    assert numbers(moments["remark"])[0] == 1
    assert moments["decided"] * moments["rows"] == pytest.approx(1.0)
    assert moments["decided_correct"] == 1.0
    assert "moments" in run.to_dict()["verdict"]
    assert {1, 198} <= set(numbers(run.to_dict()["verdict"]))


def test_of_many_rows_it_tells_no_more_than_the_model():
    run = audit(table(2000), seeds=1)
    moments, controls = run.attack("moments"), run.to_dict()["controls"]
    known = max(control["auc"] for control in controls)
    # Three standard errors of an AUC of 2,000 rows.
    assert abs(moments["auc"] - known) < 3 * np.sqrt(1 / (12 * 500))
    skipped = {one["name"] for one in run.to_dict()["skipped"]}
    assert {"exact-solve", "stacking", "known-scores"} <= skipped


def test_flipped_labels_are_said_to_be_flipped():
    run = audit(table(), mechanism="label-rr", epsilon=1.0)
    moments = run.attack("moments")
    assert moments["decided"] == 0.0
    assert 1 in numbers(moments["remark"])


def test_check_foresees_the_row_that_stands_alone():
    common: dict[str, Any] = {"label": "label", "alice_columns": ALICE, "test_fraction": 0.01}
    assert taciturn.check(table(), **common, mechanism="sealed").worst == CLEAR
    record = taciturn.check(table(), **common, mechanism="none").to_dict()
    verdicts = {one["attack"]: one for one in record["verdicts"]}
    assert verdicts["moments"]["verdict"] == AT_RISK
    assert verdicts["moments"]["change"]
    assert verdicts["stacking"]["verdict"] == CLEAR
    assert record["facts"]["passes"] == 12
