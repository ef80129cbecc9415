"""The page before it is drawn: the verdict, the figures and the tables of each kind of result."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

import pytest
from audit.tests.report.samples import (
    AUDITS,
    REFUTING,
    bare,
    bare_run,
    controls,
    findings,
    hybrid,
    leaking,
    leaking_run,
    one,
    quiet,
    quiet_run,
    refuted,
    score,
    several,
    several_runs,
)
from audit.tests.report.samples import page as sample_page

from taciturn.files import to_json
from taciturn.report.blocks import Card, Cards, Details, Facts, Heading, Page, Section, Span
from taciturn.report.html import render as render_html
from taciturn.report.markdown import render as render_markdown
from taciturn.report.training import SHARED_PEOPLE
from taciturn_audit.report.audit import NOT_ENCRYPTED, audit_blocks
from taciturn_audit.report.page import audit_page
from taciturn_audit.results.audit import AttackScore, AuditRun
from taciturn_audit.results.columns import (
    BobSeat,
    ColumnControl,
    ColumnFindings,
    ColumnScore,
    conclude_columns,
)
from taciturn_audit.results.runs import AuditResult
from taciturn_audit.verdict import Conclusion, Status, conclude, conclude_seat
from tests.report.test_terminal import shown

B = TypeVar("B")


def percent(figure: float) -> str:
    return f"{figure:.2f}\u00a0%"


@cache
def drawn(audit: AuditResult) -> Page:
    """The page, whose pictures take longer to draw than all else."""
    return audit_page(audit)


def section(audit: AuditResult, ident: str) -> Section:
    blocks = [block for block in drawn(audit).blocks if isinstance(block, Section)]
    return next(block for block in blocks if block.ident == ident)


def words(audit: AuditResult, ident: str = "verdict") -> str:
    """A section in words, as Markdown has them without its marks."""
    text = render_markdown(Page("", "", "", (section(audit, ident),)))
    return text.replace("\\", "").replace("*", "")


def cards(audit: AuditResult) -> tuple[Card, ...]:
    (block,) = (block for block in section(audit, "verdict").blocks if isinstance(block, Cards))
    return block.cards


def rows(audit: AuditResult, ident: str) -> list[tuple[str, ...]]:
    """The cells of a section's tables, without marks."""
    lines = [line for line in words(audit, ident).splitlines() if line.startswith("| ")]
    cells = [tuple(cell.strip(" `") for cell in line.strip("|").split("|")) for line in lines]
    return [row for row in cells if not row[0].startswith(":--")]


SURE = score("sign", 0.9, 0.85, 0.93, decided=0.02, decided_correct=1.0)


def with_findings(run: AuditRun, *attacks: AttackScore, **changes: Any) -> AuditResult:
    return one(replace(run, findings=findings(run.findings.controls, *attacks), **changes))


def one_refuting() -> AuditResult:
    first, second, third = several_runs()
    return AuditResult((first, replace(second, evidence=REFUTING), third))


@pytest.mark.parametrize(
    ("audit", "status"),
    [
        (leaking, Status.LEAK),
        (hybrid, Status.LEAK),
        (several, Status.LEAK),
        (lambda: with_findings(quiet_run(), score("likelihood", 0.999, 0.99, 1.0)), Status.LEAK),
        (quiet, Status.NOT_SHOWN),
        (bare, Status.NOT_SHOWN),
        (refuted, Status.REFUTED),
        (one_refuting, Status.REFUTED),
        (lambda: with_findings(bare_run()), Status.NOT_TESTED),
        (lambda: one(bare_run(SURE)), Status.CERTAIN),
        (lambda: with_findings(quiet_run(), SURE), Status.CERTAIN),
        (lambda: one(replace(leaking_run(), shuffle_truth=True, canary=None)), Status.CHECK),
    ],
)
def test_what_an_audit_comes_to_is_its_badge_and_its_title(audit, status):
    verdict, conclusion = section(audit(), "verdict"), conclude(audit())
    assert conclusion.status is status
    assert verdict.badge is not None
    assert verdict.badge.word == status.word
    assert verdict.title == conclusion.headline


def test_an_unencrypted_run_says_so_first_and_is_never_green():
    run = with_findings(bare_run())
    training = run.runs[0].training
    agreement = training.agreement.model_copy(update={"scheme": "clear", "noise": None})
    training = replace(training, agreement=agreement, encrypted=False)
    page = drawn(AuditResult((replace(run.runs[0], training=training),)))
    assert page.blocks[0] == NOT_ENCRYPTED
    first = page.blocks[1]
    assert isinstance(first, Section)
    assert first.badge is not None
    assert first.badge.word == Status.CERTAIN.word
    assert NOT_ENCRYPTED not in drawn(quiet()).blocks


def test_an_unprotected_run_is_never_green():
    run = with_findings(bare_run())
    assert badge(run) == Status.NOT_TESTED.word
    training = run.runs[0].training
    ledger = replace(training.ledger, label_epsilon_total=math.inf)
    bare = replace(run.runs[0], training=replace(training, ledger=ledger))
    assert badge(AuditResult((bare,))) == Status.CERTAIN.word


def badge(audit: AuditResult) -> str:
    shown = section(audit, "verdict").badge
    return "" if shown is None else shown.word


@pytest.mark.parametrize("audit", [leaking, quiet, bare, hybrid])
def test_who_learns_what_begins_with_what_both_sides_learn(audit):
    first = section(audit(), "learns").blocks[0]
    assert isinstance(first, Facts)
    assert first.pairs["both"] == SHARED_PEOPLE
    assert next(iter(first.pairs)) == "both"
    assert SHARED_PEOPLE in " ".join(shown(audit_blocks(audit())).split())


def columns(control: float, recovered: float, low: float) -> ColumnFindings:
    controls = (ColumnControl("mean", 0.5, control),)
    attacks = (ColumnScore("gram", 0, 0.5, recovered, low, 1.0, 0.1, 900),)
    return ColumnFindings(controls, attacks, (), *conclude_columns(controls, attacks))


@pytest.mark.parametrize(
    ("run", "canary", "status"),
    [
        ((0.29, 0.31, 0.295), (0.15, 0.305, 0.29), Status.LEAK),
        ((0.29, 0.31, 0.295), (0.15, 0.15, 0.14), Status.CERTAIN),
        ((0.29, 0.31, 0.28), (0.15, 0.15, 0.14), Status.NOT_SHOWN),
    ],
)
def test_bobs_verdict_is_the_strongest_gain_over_the_controls(run, canary, status):
    shuffled = columns(*canary)
    verdict = conclude_seat(BobSeat(columns(*run), shuffled))
    assert verdict.status is status
    assert (shuffled.verdict in verdict.sentence) == (status is Status.LEAK)


def test_a_leak_leads_with_the_canary_beside_its_controls_then_the_real_run():
    canary, real = cards(leaking())
    assert (canary.big, list(canary.beside.values())) == (percent(100), [percent(62.42)])
    assert (real.big, list(real.beside.values())[1]) == (percent(100), percent(98.68))
    assert "infinite" in words(leaking())


def test_a_partial_leak_does_not_claim_every_label():
    assert conclude(hybrid()).headline != conclude(leaking()).headline


def test_a_leak_that_the_model_hides_has_a_caveat():
    assert conclude(hybrid()).caveat
    assert not conclude(leaking()).caveat


def test_without_a_canary_its_card_is_missing_and_the_page_has_a_caveat():
    assert conclude(bare()).canary is None
    assert conclude(bare()).caveat
    assert len(cards(bare())) == len(cards(leaking())) - 1


def test_a_canary_run_audited_itself_stands_alone():
    run = leaking_run()
    shuffled = replace(run.training, permute_labels=True)
    audit = one(replace(run, training=shuffled, canary=run.findings, over_epochs=()))
    assert conclude(audit).canary is None
    assert len(cards(audit)) == len(cards(bare()))


def test_labels_that_are_called_certain_are_counted_where_nothing_else_shows():
    text = words(one(bare_run(SURE)))
    assert "9.1 of 455" in text
    assert "100.00 %" in text


def test_a_ranking_leads_with_the_auc():
    run = bare_run()
    shown = findings(
        controls(0.93, 0.93, 0.6),
        score("norm", 0.93, 0.9, 0.95, auc=0.97, auc_low=0.95, auc_high=0.99),
        score("sign", 0.94, 0.91, 0.96, auc=0.5, auc_low=0.4, auc_high=0.6),
    )
    card, *_ = cards(one(replace(run, findings=shown)))
    assert card.big == percent(97)
    assert "norm" in str(card.lines[0])
    assert percent(60) in card.beside.values()


def test_several_runs_are_means_and_say_so():
    conclusion = conclude(several())
    assert conclusion.canary is not None
    assert (conclusion.canary.runs, conclusion.canary.leaking) == (3, 3)
    assert list(cards(several())[0].beside.values()) == [percent(63)]
    by_seed = {row[0]: row for row in rows(several(), "details")}
    assert all("100.00 %" in by_seed[seed][1] for seed in ("7", "8", "9"))


@pytest.mark.parametrize(
    ("leaks", "status"),
    [(1, Status.CERTAIN), (2, Status.LEAK)],
)
def test_leaking_runs_among_several_are_not_lost_in_the_mean(leaks, status):
    """The mean of three has a wide interval, and shows nothing by itself."""
    calm = quiet_run().findings
    blind = {"auc": 0.5, "auc_low": 0.4, "auc_high": 0.6}
    loud, silent = (0.9, 0.8, 0.95), (0.6, 0.55, 0.65)
    runs = []
    for place, run in enumerate(several_runs()):
        figures = loud if place >= 3 - leaks else silent
        canary = findings(controls(0.62, 0.6, 0.6), score("exact-solve", *figures, **blind))
        runs.append(replace(run, findings=calm, canary=canary))
    conclusion: Conclusion = conclude(AuditResult(tuple(runs)))
    assert conclusion.canary is not None
    assert conclusion.canary.verdict.status is Status.NOT_SHOWN
    assert (conclusion.status, conclusion.canary.leaking) == (status, leaks)
    assert f"{leaks} of 3" in conclusion.canary.sentence


@pytest.mark.parametrize(
    ("audit", "answer", "figures"),
    [
        (refuted, "violated", ("1.25", "0.05", "401")),
        (quiet, "not violated", ("0.05", "233")),
        (leaking, "not tested", ()),
        (lambda: one(bare_run()), "not tested", ()),
    ],
)
def test_the_claim_is_set_against_the_evidence(audit, answer, figures):
    (heading,) = (b for b in section(audit(), "ledger").blocks if isinstance(b, Heading))
    assert isinstance(heading.words, tuple)
    assert [span.text for span in heading.words if isinstance(span, Span)] == [answer]
    assert all(figure in words(audit(), "ledger") for figure in figures)


def details(audit: AuditResult, kind: type[B]) -> list[B]:
    """The blocks of a kind that are folded away."""
    folded = [block for block in section(audit, "details").blocks if isinstance(block, Details)]
    return [inner for block in folded for inner in block.blocks if isinstance(inner, kind)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", AUDITS)
def test_a_result_reads_the_same_before_and_after_json(name):
    audit = AUDITS[name]()
    again = AuditResult.from_record(json.loads(to_json(audit.to_dict())))
    page = audit_page(again)
    assert render_html(page) == render_html(sample_page(name))
    assert render_markdown(page) == render_markdown(sample_page(name))
