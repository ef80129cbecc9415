"""Several runs in one record: what of each stands for all."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from taciturn.report import tables
from taciturn.report.claim import evidence_of, ledger_of
from taciturn.summary import summary

FIGURES = {"accuracy": 0.5, "auc": 0.5}


def run(seed: int, **more: Any) -> dict[str, Any]:
    parts = {name: FIGURES for name in ("train", "test", "centralised")}
    return {**parts, "seed": seed, "notes": [], "controls": [], "attacks": [], **more}


def evidence(bound: float) -> dict[str, Any]:
    figures = {"claim": 1.0, "guesses": 10, "correct": 9, "rows": 10, "failure": 0.05}
    return {**figures, "attack": "sign", "lower_bound": bound, "violated": bound > 1.0}


def test_the_best_of_several_bounds_fails_as_often_as_any_of_them():
    record = summary([run(seed, evidence=evidence(bound)) for seed, bound in enumerate((0, 2, 1))])
    assert record["evidence"]["lower_bound"] == 2
    assert round(record["evidence"]["failure"], 9) == 0.15
    found = evidence_of(record, ledger_of({}, ""))
    assert found.violated
    assert "too high with probability 15\u00a0% at most" in " ".join(found.sentences)
    assert evidence(2)["failure"] == summary([run(0, evidence=evidence(2))])["evidence"]["failure"]


def test_a_share_of_nothing_in_one_run_is_a_dash():
    whole = {"precision": 0.5, "recall": 0.5, "k_exact": 0.5, "base_rate": 0.4, "iterations": 9}
    record = summary([run(0, membership=whole), run(1, membership={**whole, "precision": None})])
    (line,) = tables._membership(record)
    screen = Console(width=200)
    with screen.capture() as shown:
        screen.print(line)
    assert "precision – %, recall 50.00 %" in shown.get()
