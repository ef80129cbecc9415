"""What the page says, before it is drawn: every case of the record has its words."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import api
from taciturn.audit.judge import AttackScore, ControlScore
from taciturn.audit.verdict import verdict
from taciturn.errors import DataError
from taciturn.files import to_json
from taciturn.report import html, markdown
from taciturn.report.document import MOST_LINES, AuditReport
from taciturn.report.findings import Status
from tests.report.samples import (
    RECORDS,
    bare,
    controls,
    hybrid,
    leaking,
    older,
    quiet,
    refuted,
    score,
    several,
)


def words(report: AuditReport) -> str:
    return " ".join((report.verdict.headline, *report.verdict.sentences)).replace("\u00a0", " ")


def test_a_leak_leads_with_the_canary_beside_its_controls_then_the_real_run():
    report = AuditReport.of(leaking())
    assert report.verdict.status is Status.LEAK
    assert report.verdict.headline == "Alice can tell every label"
    first, second, third = report.verdict.sentences
    assert first.startswith("Labels shuffled before training: exact-solve is right about 100.00")
    assert "prior, about 62.42" in first
    assert second.startswith("The real run: exact-solve")
    assert "model-only, about 98.68" in second
    assert third == "The ledger guarantees nothing: a label's epsilon is infinite."


def test_a_partial_leak_does_not_claim_every_label():
    assert AuditReport.of(hybrid()).verdict.headline == "The messages tell Alice about the labels"


def test_a_leak_that_the_model_hides_is_told_all_the_same():
    assert "The leak is there all the same" in words(AuditReport.of(hybrid()))
    assert "all the same" not in words(AuditReport.of(leaking()))


def test_who_is_in_the_batch_stands_in_per_cent():
    facts = {fact.name: fact.value for fact in AuditReport.of(hybrid()).membership}
    assert facts["precision"] == "98.10\u00a0%"
    assert facts["batches"] == "290"


def test_no_success_is_never_called_safe():
    report = AuditReport.of(quiet())
    assert report.verdict.status is Status.NOT_SHOWN
    assert report.verdict.headline == "No attack of ours succeeded"
    assert "not a proof of safety" in words(report)
    assert "up to 51.25 % sure" in words(report)


def test_a_leak_on_the_real_labels_alone_is_told():
    record = quiet()
    record["attacks"] = [score("likelihood", 0.999, 0.99, 1.0)]
    report = AuditReport.of(record)
    assert report.verdict.status is Status.LEAK
    assert report.verdict.headline.startswith("On the real labels")


def test_a_refuted_claim_comes_before_everything():
    report = AuditReport.of(refuted())
    assert report.verdict.status is Status.REFUTED
    assert "at least 1.25, where 0.05 is claimed" in words(report)
    assert report.evidence.headline == "Violated"


def test_evidence_that_does_not_contradict_proves_nothing():
    report = AuditReport.of(quiet())
    assert report.evidence.violated is False
    assert "do not prove it either" in report.evidence.sentences[-1]


@pytest.mark.parametrize(
    ("record", "why"),
    [(leaking(), "claims no bound"), ({**quiet(), "evidence": None}, "not set against evidence")],
)
def test_a_claim_that_was_not_tested_says_why(record, why):
    evidence = AuditReport.of(record).evidence
    assert evidence.violated is None
    assert why in evidence.sentences[0]


def test_no_attack_at_all():
    record = {**bare(), "attacks": []}
    report = AuditReport.of(record)
    assert report.verdict.status is Status.NOT_TESTED
    assert "No attack of ours applies" in report.verdict.headline
    assert "not a proof of safety" in words(report)
    assert "model-only, is right about 97.36 % of the labels, without any message" in words(report)


def test_without_a_canary_the_page_says_what_is_missing():
    report = AuditReport.of(bare())
    assert report.canary is None
    assert "No canary run stands beside this run" in words(report)


def test_a_canary_run_audited_itself():
    record = {**leaking(), "permute_labels": True, "over_epochs": []}
    report = AuditReport.of(record)
    assert report.canary is None
    assert report.run.title == "This run"
    assert "shuffled before training" in words(report)


def test_labels_that_are_called_certain_are_named_where_nothing_else_shows():
    record = bare()
    record["attacks"] = [score("sign", 0.9, 0.85, 0.93, decided=0.02, decided_correct=1.0)]
    report = AuditReport.of(record)
    assert report.verdict.status is Status.CERTAIN
    assert "calls 2.00 % of the labels certain, and 100.00 % of those are right" in words(report)


def test_a_ranking_leads_with_the_auc():
    record = bare()
    record["controls"] = controls(0.93, 0.93, 0.6)
    record["attacks"] = [
        score("norm", 0.93, 0.9, 0.95, auc=0.97, auc_low=0.95, auc_high=0.99),
        score("sign", 0.94, 0.91, 0.96, auc=0.5, auc_low=0.4, auc_high=0.6),
    ]
    lead = AuditReport.of(record).run.lead
    assert (lead.figure, lead.attack, lead.value, lead.control_value) == ("AUC", "norm", 0.97, 0.6)


def test_a_check_of_the_audit_is_no_verdict_on_the_protocol():
    report = AuditReport.of({**leaking(), "shuffle_truth": True, "canary": None})
    assert report.verdict.status is Status.CHECK


def test_several_runs_are_means_and_say_so():
    report = AuditReport.of(several())
    assert report.several == "mean of 3 runs"
    assert report.run.scope == "mean of 3 runs"
    assert report.canary is not None
    assert report.canary.scope == "mean of 3 runs"
    assert "Taken alone, 3 of 3 runs show an attack above the controls." in words(report)
    assert [line.seed for line in report.runs] == ["7", "8", "9"]
    facts = {fact.name: fact.value for fact in report.configuration}
    assert facts["randomness"] == "seeds 7 to 9: repeatable simulations"


@pytest.mark.parametrize(
    ("leaks", "status", "headline"),
    [
        (1, Status.CERTAIN, "Some runs show a leak"),
        (2, Status.LEAK, "The messages tell Alice about the labels"),
    ],
)
def test_leaking_runs_among_several_are_not_lost_in_the_mean(leaks, status, headline):
    record = several()
    # A mean canary would be preferred to one run's; here the runs have no mean.
    record.pop("canary")
    record["attacks"] = [score("exact-solve", 0.7, 0.1, 1.2)]
    for place, run in enumerate(record["runs"]):
        run["attacks"] = quiet()["attacks"]
        run["canary"] = quiet()["canary"]
        if place >= 3 - leaks:
            run["canary"]["attacks"] = [score("exact-solve", 0.9, 0.8, 0.95)]
    report = AuditReport.of(record)
    assert report.canary is not None
    assert report.canary.scope == f"seed {10 - leaks}, one of 3 runs"
    assert report.verdict.status is status
    assert report.verdict.headline == headline
    assert f"Taken alone, {leaks} of 3 runs" in words(report)


def test_both_runs_are_told_whichever_weighs_more():
    record = quiet()
    record["attacks"] = [score("sign", 0.9, 0.85, 0.93, decided=0.02, decided_correct=1.0)]
    report = AuditReport.of(record)
    assert report.verdict.status is Status.CERTAIN
    assert report.verdict.sentences[0].startswith("Labels shuffled before training: likelihood")
    assert report.verdict.sentences[1].startswith("The real run: sign")


def test_a_mean_canary_stands_beside_the_first_runs_curves():
    record = several()
    record.pop("over_epochs", None)
    record["canary"] = leaking()["canary"]
    report = AuditReport.of(record)
    assert report.canary is not None
    assert report.canary.scope == "mean of 3 runs"
    assert report.verdict.headline == "Alice can tell every label"
    assert report.epochs is not None
    assert report.epochs.scope == "seed 7, one of 3 runs"


def test_one_run_that_refutes_the_claim_refutes_it():
    record = several()
    record["runs"][1]["evidence"] = refuted()["evidence"]
    report = AuditReport.of(record)
    assert report.verdict.status is Status.REFUTED
    assert "seed 8, one of 3 runs" in words(report)


def test_of_several_ledgers_the_dearest_is_shown():
    record = several()
    del record["ledger"]
    record["runs"][0]["ledger"] = quiet()["ledger"]
    ledger = AuditReport.of(record).ledger
    assert ledger.label_total == math.inf
    assert ledger.scope == "seed 8, one of 3 runs"


def test_the_ledger_in_figures():
    ledger = AuditReport.of(quiet()).ledger
    assert [(line.name, line.release) for line in ledger.lines] == [
        ("claimed", 0.01),
        ("residue", 0.01),
        ("label", 0.005),
    ]
    assert ledger.lines[2].total == pytest.approx(0.05)
    assert ledger.releases == 10


def test_messages_say_how_they_were_protected():
    protections = {each.name: each.protection for each in AuditReport.of(leaking()).messages}
    assert protections["EncryptedResidues"] == "encrypted: bfv, 128 bits"
    assert protections["RevealedGradient"] == "in clear"


def test_a_setting_of_tomorrow_is_shown():
    facts = AuditReport.of({**leaking(), "new_knob": 3}).configuration
    assert ("new knob", "3") in [(fact.name, fact.value) for fact in facts]


def test_a_very_wide_table_is_cut_and_says_so():
    record = {**leaking(), "preparation": ["a column"] * (MOST_LINES + 7)}
    lines = AuditReport.of(record).preparation
    assert len(lines) == MOST_LINES + 1
    assert lines[-1] == "and 7 more, which the JSON record lists"


def test_an_older_record_still_renders():
    report = AuditReport.of(older())
    assert (report.command, report.version, report.messages) == ("", "", ())


def test_a_record_of_a_training_is_refused_by_name():
    record = {key: value for key, value in leaking().items() if key != "attacks"}
    with pytest.raises(DataError, match="not of an audit: it has no attacks"):
        AuditReport.of(record)


@pytest.mark.parametrize("render", [html.render, markdown.render], ids=["html", "markdown"])
@pytest.mark.parametrize("name", RECORDS)
def test_a_record_reads_the_same_before_and_after_json(name, render):
    record = RECORDS[name]()
    assert render(json.loads(to_json(record))) == render(record)


shares = st.floats(0, 1)


@st.composite
def attack_scores(draw):
    low, middle, high = sorted(draw(st.tuples(shares, shares, shares)))
    auc = sorted(draw(st.tuples(shares, shares, shares)))
    certain = draw(st.none() | shares)
    name = draw(st.sampled_from(("one", "two", "three")))
    decided = 0.0 if certain is None else 0.5
    return AttackScore(name, 9, middle, low, high, auc[1], auc[0], auc[2], decided, certain, 0, "")


@given(
    st.lists(st.builds(ControlScore, st.just("control"), shares, shares), min_size=1, max_size=3),
    st.lists(attack_scores(), max_size=4),
)
def test_the_status_follows_the_rule_of_the_verdict(known, attacks):
    record = {
        **bare(),
        "controls": [each.to_dict() for each in known],
        "attacks": [each.to_dict() for each in attacks],
    }
    run = AuditReport.of(record).run
    said = verdict(known, attacks)
    opening = {
        Status.NOT_TESTED: "No attack of ours applies",
        Status.NOT_SHOWN: "No attack of ours told more",
        Status.CERTAIN: "Over all rows no attack",
        Status.LEAK: f"{run.lead.attack} {'ranks' if run.lead.figure == 'AUC' else 'tells'}",
    }
    assert said.startswith(opening[run.status])


@pytest.fixture(scope="module")
def real():
    """A real audit, short."""
    return api.audit(
        dataset="breast-cancer", mechanism="none", scheme="clear", seed=7, epochs=2
    ).to_dict()


def test_a_real_audit_becomes_a_page_and_a_comment(real):
    report = AuditReport.of(real)
    assert report.verdict.status is Status.LEAK
    assert report.verdict.headline in html.render(real)
    assert report.verdict.headline in markdown.render(real)
