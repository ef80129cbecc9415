"""What the page says, before it is drawn: every case of a result has its words."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from taciturn import api
from taciturn.audit import Conclusion, Status, conclude
from taciturn.files import to_json
from taciturn.report import (
    MOST_LINES,
    Bullets,
    Card,
    Cards,
    Details,
    Facts,
    Page,
    Section,
    Table,
    audit_page,
    render_html,
    render_markdown,
)
from taciturn.results import AuditResult, audit_of_record
from tests.report.samples import (
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
from tests.report.samples import page as sample_page


def section(audit: AuditResult, ident: str) -> Section:
    blocks = [block for block in audit_page(audit).blocks if isinstance(block, Section)]
    return next(block for block in blocks if block.ident == ident)


def words(audit: AuditResult, ident: str = "verdict") -> str:
    """A section in words, as Markdown has them without its marks."""
    text = render_markdown(Page("", "", "", (section(audit, ident),)))
    return text.replace("\\", "").replace("*", "")


def concluded(audit: AuditResult) -> tuple[Status, str]:
    conclusion = conclude(audit)
    return conclusion.status, conclusion.headline


def test_a_leak_leads_with_the_canary_beside_its_controls_then_the_real_run():
    assert concluded(leaking()) == (Status.LEAK, "Alice can tell every label")
    text = words(leaking())
    first = text.index("Labels shuffled before training: exact-solve tells Alice 100.00 % of 455")
    assert "the prior tells 62.42 %" in text[first:]
    second = text.index("The real run: exact-solve tells Alice 100.00 %")
    assert "the better control tells 98.68 %" in text[second:]
    third = text.index("The ledger guarantees nothing: a label's epsilon is infinite.")
    assert first < second < third


def test_a_partial_leak_does_not_claim_every_label():
    assert concluded(hybrid())[1] == "The messages tell Alice about the labels"


def test_a_leak_that_the_model_hides_is_told_all_the_same():
    assert "The leak is there all the same" in words(hybrid())
    assert "all the same" not in words(leaking())


def test_who_is_in_the_batch_stands_in_per_cent():
    text = words(hybrid(), "membership")
    assert "| precision | 98.10 % |" in text
    assert "| iterations looked at | 290 |" in text


def test_no_success_is_never_called_safe():
    assert concluded(quiet()) == (Status.NOT_SHOWN, "No attack of ours succeeded")
    assert "not a proof of safety" in words(quiet())
    assert "up to 51.25 % sure" in words(quiet())


def test_a_leak_on_the_real_labels_alone_is_told():
    run = quiet_run()
    shown = findings(run.findings.controls, score("likelihood", 0.999, 0.99, 1.0))
    status, headline = concluded(one(replace(run, findings=shown)))
    assert status is Status.LEAK
    assert headline.startswith("On the real labels")


def test_a_refuted_claim_comes_before_everything():
    assert concluded(refuted())[0] is Status.REFUTED
    assert "at least 1.25, where 0.05 is claimed" in words(refuted())
    assert "Claim against evidence: violated" in words(refuted(), "ledger")


def test_evidence_that_does_not_contradict_proves_nothing():
    text = words(quiet(), "ledger")
    assert "Claim against evidence: not violated" in text
    assert "do not prove it either" in text


@pytest.mark.parametrize(
    ("run", "why"),
    [(leaking_run(), "claims no bound"), (bare_run(), "not set against evidence")],
)
def test_a_claim_that_was_not_tested_says_why(run, why):
    text = words(one(run), "ledger")
    assert "Claim against evidence: not tested" in text
    assert why in text


def test_no_attack_at_all():
    run = replace(bare_run(), findings=findings(controls(0.6242, 0.9736, 0.9975)))
    status, headline = concluded(one(run))
    assert status is Status.NOT_TESTED
    assert "No attack of ours applies" in headline
    assert "not a proof of safety" in words(one(run))
    assert "the controls tell 97.36 % of the labels" in words(one(run))


def test_without_a_canary_the_page_says_what_is_missing():
    assert conclude(bare()).canary is None
    assert "No canary run stands beside this run" in words(bare())


def test_a_canary_run_audited_itself():
    run = leaking_run()
    shuffled = replace(run.training, permute_labels=True)
    audit = one(replace(run, training=shuffled, canary=run.findings, over_epochs=()))
    assert conclude(audit).canary is None
    assert "This run: exact-solve" in words(audit)
    assert "shuffled before training" in words(audit)


def test_labels_that_are_called_certain_are_named_where_nothing_else_shows():
    audit = one(bare_run(score("sign", 0.9, 0.85, 0.93, decided=0.02, decided_correct=1.0)))
    assert concluded(audit)[0] is Status.CERTAIN
    assert "calls 9.1 of 455 labels certain and is right on 100.00 % of those" in words(audit)


def test_a_ranking_leads_with_the_auc():
    run = bare_run()
    shown = findings(
        controls(0.93, 0.93, 0.6),
        score("norm", 0.93, 0.9, 0.95, auc=0.97, auc_low=0.95, auc_high=0.99),
        score("sign", 0.94, 0.91, 0.96, auc=0.5, auc_low=0.4, auc_high=0.6),
    )
    (cards,) = (
        block
        for block in section(one(replace(run, findings=shown)), "verdict").blocks
        if isinstance(block, Cards)
    )
    card: Card = cards.cards[0]
    assert card.big == "97.00\u00a0%"
    assert card.lines[0] == "AUC of norm"
    assert card.beside["model-only"] == "60.00\u00a0%"


def test_a_check_of_the_audit_is_no_verdict_on_the_protocol():
    audit = one(replace(leaking_run(), shuffle_truth=True, canary=None))
    assert concluded(audit)[0] is Status.CHECK
    assert "nothing about the protocol" in words(audit)


def test_several_runs_are_means_and_say_so():
    conclusion = conclude(several())
    assert conclusion.canary is not None
    assert (conclusion.canary.runs, conclusion.canary.leaking) == (3, 3)
    text = words(several())
    assert "Labels shuffled before training (mean of 3 runs): " in text
    assert "Taken alone, 3 of 3 runs show an attack above the controls." in text
    details = words(several(), "details")
    assert "seeds 7 to 9: repeatable simulations" in details
    assert [f"| {seed} | exact-solve 100.00 %" in details for seed in (7, 8, 9)] == [True] * 3


@pytest.mark.parametrize(
    ("leaks", "status", "headline"),
    [
        (1, Status.CERTAIN, "Some runs show a leak"),
        (2, Status.LEAK, "The messages tell Alice about the labels"),
    ],
)
def test_leaking_runs_among_several_are_not_lost_in_the_mean(leaks, status, headline):
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
    assert (conclusion.status, conclusion.headline) == (status, headline)
    assert f"Taken alone, {leaks} of 3 runs" in conclusion.canary.sentence


def test_both_runs_are_told_whichever_weighs_more():
    run = quiet_run()
    sure = score("sign", 0.9, 0.85, 0.93, decided=0.02, decided_correct=1.0)
    audit = one(replace(run, findings=findings(run.findings.controls, sure)))
    assert concluded(audit)[0] is Status.CERTAIN
    text = words(audit)
    assert text.index("Labels shuffled before training: No attack") < text.index(
        "The real run: Over"
    )


def test_a_mean_canary_stands_beside_the_first_runs_curves():
    assert "shuffled before training (seed 7, one of 3 runs)" in words(several(), "over-epochs")


def test_one_run_that_refutes_the_claim_refutes_it():
    runs = several_runs()
    runs[1] = replace(runs[1], evidence=REFUTING)
    audit = AuditResult(tuple(runs))
    assert concluded(audit)[0] is Status.REFUTED
    assert "seed 8, one of 3 runs" in words(audit)


def test_of_several_ledgers_the_dearest_is_shown():
    runs = several_runs()
    cheap = replace(runs[0].training, ledger=quiet_run().training.ledger)
    runs[0] = replace(runs[0], training=cheap)
    text = words(AuditResult(tuple(runs)), "ledger")
    assert "| label | infinite | infinite | infinite |" in text
    assert "seed 8, one of 3 runs" in text


def test_the_ledger_in_figures():
    text = words(quiet(), "ledger")
    assert "| claimed | 0.01 | – | – |" in text
    assert "| residue | 0.01 | 0.1 | – |" in text
    assert "| label | 0.005 | 0.05 | 0.05 |" in text
    assert "all 10 releases of a row" in text


def test_messages_say_how_they_were_protected():
    text = words(leaking(), "messages")
    assert "| `EncryptedResidues` | 290 | 54.6 MiB | encrypted: bfv, 128 bits |" in text
    assert "| `RevealedGradient` | 290 | 76.2 KiB | in clear |" in text


def configuration(audit: AuditResult) -> dict[str, object]:
    (details,) = (
        block
        for block in section(audit, "details").blocks
        if isinstance(block, Details) and block.summary == "Configuration"
    )
    (facts,) = details.blocks
    assert isinstance(facts, Facts)
    return dict(facts.pairs)


def test_every_setting_is_shown():
    shown = configuration(hybrid())
    assert shown["batch size"] == "16"
    assert shown["epsilon"] == "1"
    assert shown["hidden batches: subset size"] == "111"
    assert shown["iterations"] == "290"


def test_a_very_wide_table_is_cut_and_says_so():
    run = leaking_run()
    wide = replace(run.training, preparation=("a column",) * (MOST_LINES + 7))
    blocks = section(one(replace(run, training=wide)), "details").blocks
    (bullets,) = (
        inner
        for block in blocks
        if isinstance(block, Details)
        for inner in block.blocks
        if isinstance(inner, Bullets) and inner.items[0] == "a column"
    )
    assert len(bullets.items) == MOST_LINES + 1
    assert bullets.items[-1] == "and 7 more, which --json lists"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", AUDITS)
def test_a_result_reads_the_same_before_and_after_json(name):
    audit = AUDITS[name]()
    again = audit_of_record(json.loads(to_json(audit.to_dict())))
    page = audit_page(again)
    assert render_html(page) == render_html(sample_page(name))
    assert render_markdown(page) == render_markdown(sample_page(name))


def test_figures_that_are_no_numbers_are_dashes():
    tables = [block for block in section(bare(), "attacks").blocks if isinstance(block, Table)]
    assert tables == []
    assert "nan" not in words(bare(), "attacks").replace("dominant", "")
    assert math.isnan(bare_run().findings.attacks[0].auc)


@pytest.fixture(scope="module")
def real():
    """A real audit, short."""
    return api.audit(dataset="breast-cancer", mechanism="none", scheme="clear", seed=7, epochs=2)


@pytest.mark.slow  # a second or two, and others show the same on less
def test_a_real_audit_becomes_a_page_and_a_comment(real):
    status, headline = concluded(real)
    assert status is Status.LEAK
    page = audit_page(real)
    assert headline in render_html(page)
    assert headline in render_markdown(page)
