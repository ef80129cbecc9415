"""Several runs in one result: what of each stands for all."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest
from audit.tests.report.samples import controls, findings, hybrid_run, leaking_run, score, several

from taciturn.cli.console import console
from taciturn.report.terminal import render
from taciturn_audit.exact_intervals import t_interval
from taciturn_audit.report.audit import audit_blocks, evidence_words
from taciturn_audit.results.audit import AuditRun, Evidence, Membership
from taciturn_audit.results.runs import AuditResult, mean_findings
from taciturn_audit.verdict import conclude
from tests.report.samples import TRAINING


def evidence(bound: float) -> Evidence:
    return Evidence(1.0, bound, "sign", 10, 9, 10, 0.05, bound > 1.0)


def test_the_best_of_several_bounds_fails_as_often_as_any_of_them():
    runs = [
        replace(leaking_run(seed), evidence=evidence(bound)) for seed, bound in enumerate((0, 2, 1))
    ]
    audit = AuditResult(tuple(runs))
    record = audit.to_dict()
    assert record["evidence"]["lower_bound"] == 2
    assert round(record["evidence"]["failure"], 9) == 0.15
    conclusion = conclude(audit)
    assert conclusion.refuted_by == 1
    assert "15\u00a0%" in " ".join(evidence_words(audit, conclusion))
    assert AuditResult((runs[1],)).to_dict()["evidence"]["failure"] == 0.05


def shown(audit: AuditResult) -> str:
    screen = console()
    with screen.capture() as text:
        screen.print(render(audit_blocks(audit)))
    return text.get()


def test_a_share_of_nothing_in_one_run_is_a_dash_and_has_no_mean():
    whole = Membership(0.5, 0.5, 0.5, 9, 0.4, 0.1)
    runs = [
        replace(hybrid_run(), membership=one) for one in (whole, replace(whole, precision=None))
    ]
    audit = AuditResult(tuple(runs))
    assert audit.to_dict()["membership"] == {
        "recall": 0.5,
        "k_exact": 0.5,
        "iterations": 9.0,
        "base_rate": 0.4,
        "certified": 0.1,
    }
    assert "precision –, recall 50.00 %" in shown(audit)


def test_means_are_of_what_has_a_mean_and_the_interval_is_that_of_the_mean():
    record = several().to_dict()
    assert (record["seed"], record["seeds"], len(record["runs"])) == (7, 3, 3)
    assert record["seconds"] == fmean(3.4 + seed for seed in (7, 8, 9))
    assert record["bytes_to_alice"] == TRAINING.cost.bytes_to_alice
    assert "calibration" not in record["test"]
    assert record["test"]["rows"] == 114.0
    assert "verdict" not in record
    attack = record["attacks"][1]
    assert (attack["name"], attack["remark"]) == ("least-squares", "mean of 3 runs")
    assert record["canary"]["controls"][0]["accuracy"] == pytest.approx(0.63)


def of_accuracies(*accuracies: float) -> list[AuditRun]:
    return [
        replace(
            leaking_run(seed),
            findings=findings(
                controls(0.6, 0.7, 0.7),
                score(
                    "x", value, 0.0, 1.0, decided=0.1 * seed, decided_correct=1.0 if seed else None
                ),
            ),
        )
        for seed, value in enumerate(accuracies)
    ]


def test_the_interval_of_a_mean_and_the_share_of_all_certain_rows():
    runs = of_accuracies(0.9, 1.0, 0.95)
    (mean,) = mean_findings([run.findings for run in runs]).attacks
    assert (mean.accuracy_low, mean.accuracy_high) == t_interval([0.9, 1.0, 0.95])
    assert mean.decided == pytest.approx(0.1)
    # Of the rows called certain in any run; the run that called none has no say.
    assert mean.decided_correct == 1.0


def test_an_attack_that_applied_once_keeps_its_own_interval():
    runs = of_accuracies(0.9, 1.0)
    bare = replace(runs[1], findings=replace(runs[1].findings, attacks=()))
    (mean,) = AuditResult((runs[0], bare)).findings.attacks
    assert (mean.accuracy, mean.accuracy_low, mean.accuracy_high) == (0.9, 0.0, 1.0)
