"""Counts, amounts and numbers: exact from sums in clear, and not at all where nothing is clear."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import taciturn
from taciturn.data.label_table import LabelTable
from taciturn_audit.attacks.base import LabelGuess
from taciturn_audit.judge import judge, prior


def rows_of(family: str, rows: int, columns: int) -> pl.DataFrame:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(rows, columns))
    effect = X[:, :4] @ np.array([0.4, -0.3, 0.2, 0.3])
    y = {
        "gaussian": 100.0 + 20.0 * (effect + rng.normal(size=rows)),
        "poisson": rng.poisson(np.exp(effect - 0.5)),
        "gamma": rng.gamma(2.0, np.exp(effect + 6)),
    }[family]
    return pl.DataFrame({**{f"x{j}": X[:, j] for j in range(columns)}, "y": y})


def audited(family: str, mechanism: str, rows: int = 50, columns: int = 60, **more: Any) -> Any:
    table = rows_of(family, rows, columns)
    settings: Any = {"family": family, "mechanism": mechanism, "label": "y", "scheme": "clear"}
    return taciturn.audit(table, **settings, seed=3, **more).runs[0]


@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma"])
def test_a_wide_table_in_clear_gives_every_label_away(family):
    run = audited(family, "none")
    for findings in (run.findings, run.canary):
        (attack,) = [one for one in findings.attacks if one.name == "values"]
        control = next(one for one in findings.controls if one.name == "prior")
        assert attack.accuracy == 1.0 > control.accuracy
        assert (attack.decided, attack.decided_correct) == (1.0, 1.0)
    others = {one.name for one in run.findings.skipped}
    assert "moments" in others, "attacks on two classes do not apply"


@pytest.mark.parametrize(("family", "mechanism"), [("poisson", "sealed"), ("gaussian", "mutual")])
def test_without_sums_in_clear_the_controls_are_left(family, mechanism):
    run = audited(family, mechanism)
    assert not run.findings.attacks
    assert run.training.ledger.label_epsilon_total == 0
    assert run.evidence is None or run.evidence.lower_bound == 0
    (control,) = run.findings.controls
    commonest = rows_of(family, 50, 60)["y"].round().value_counts()["count"].to_numpy().max()
    assert control.accuracy <= commonest / 40


@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma"])
def test_against_labels_shuffled_after_the_run_it_sits_at_chance(family):
    run = audited(family, "none", shuffle_truth=True)
    (attack,) = [one for one in run.findings.attacks if one.name == "values"]
    assert attack.accuracy < 0.75
    assert attack.auc_low < 0.5 < attack.auc_high


def test_with_few_columns_rows_are_ranked_and_none_is_certain():
    run = audited("poisson", "none", rows=200, columns=5)
    (attack,) = [one for one in run.findings.attacks if one.name == "values"]
    assert attack.decided == 0
    assert attack.accuracy == max(one.accuracy for one in run.findings.controls)


def test_exposure_hides_the_grid_of_counts():
    table = rows_of("poisson", 50, 60).with_columns(years=pl.Series(np.linspace(0.5, 2, 50)))
    result = taciturn.audit(
        table,
        family="poisson",
        mechanism="none",
        label="y",
        exposure="years",
        scheme="clear",
        seed=1,
    )
    (attack,) = [one for one in result.runs[0].findings.attacks if one.name == "values"]
    assert attack.decided == 0
    assert attack.auc > 0.9, "it still ranks the rows"


def test_check_rehearses_values_and_recommends_what_there_is():
    table = rows_of("poisson", 80, 70)
    result = taciturn.check(table, family="poisson", mechanism="none", label="y", scheme="clear")
    levels = {one.attack: one.verdict for one in result.verdicts}
    assert levels["values"] == result.verdict == "leaks"
    assert not any("label-rr" in str(one) for one in result.recommendations)
    sealed = taciturn.check(table, family="poisson", mechanism="sealed", label="y", scheme="clear")
    assert sealed.verdict != "leaks"


def test_the_judge_counts_exact_counts_and_near_amounts():
    counts = LabelTable.from_data([0.0, 0.0, 2.0, 5.0], family="poisson")
    everywhere = np.ones(4, dtype=bool)
    guess = LabelGuess(
        np.zeros(4), everywhere, ~everywhere, values=np.array([np.nan, 1.0, 2.0, 5.0])
    )
    assert judge("mine", guess, counts).accuracy == 0.75
    assert prior(counts).accuracy == 0.5
    amounts = LabelTable.from_data([1.0, 2.0, 4.0, 9.0], family="gamma")
    same = LabelGuess(np.zeros(4), everywhere, everywhere, values=np.array([3.0, 5.0, 9.0, 19.0]))
    assert judge("mine", same, amounts).accuracy == 1.0
