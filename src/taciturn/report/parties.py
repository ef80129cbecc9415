"""The end of one side's part in a training, as blocks."""

from __future__ import annotations

import math

from taciturn.errors import counted
from taciturn.numerics.threshold import COST, GIVEN, YOUDEN, Threshold
from taciturn.privacy.statement import Statement
from taciturn.privacy.told_quality import ToldQuality
from taciturn.report.blocks import (
    NO_BREAK,
    Block,
    Facts,
    Heading,
    Paragraph,
    Span,
    Words,
    table,
)
from taciturn.report.training import label_epsilon, own_metrics
from taciturn.report.words import data_size, figure, share, time_with_waits, traffic
from taciturn.report.worth import (
    arrived,
    base_rate,
    divergence,
    ends,
    partner_adds,
    symmetry_blocks,
)
from taciturn.results.check import ColumnExposure
from taciturn.results.estimate import Estimate
from taciturn.results.outlook import Disclosure, Outlook
from taciturn.results.parties import DryRun, PartyRun
from taciturn.results.serialise import record_of

MOST_SHOWN = 10
_FOR_ALICE = (
    "Whether the model converged, and how good it is, depends on labels: only Bob knows it, and to "
    "tell it would be a release (tell-alice)."
)
_FOR_ALICE_UNSEEN = (
    "Nobody knows whether the model converged: {reason}. How good it is depends on labels: only "
    "Bob knows it, and to tell it would be a release (tell-alice)."
)
_EXPOSED = Span("Columns are exposed.", "bad")
_UNCONFIRMED = "the peer has not confirmed the last message; if it lacks it, run both sides again"


def party_blocks(result: PartyRun | DryRun) -> list[Block]:
    """What one side has: how it went, how good the model is, what the labels paid."""
    who = result.identity
    encrypted = f", {who.scheme} {who.key_bits}" if who.key_bits else ""
    title = Paragraph(f"{who.role} with {who.peer}: {who.mechanism}{encrypted}", "strong")
    facts: dict[str, Words] = {
        "rows": f"{who.rows:,} for training, {who.held_out_rows:,} held out",
        "columns": f"{who.columns} here",
    }
    if isinstance(result, PartyRun):
        rest = [
            *_metrics(result),
            *_worth(result),
            *_importance(result),
            *_wraps(result),
            *symmetry_blocks(result.symmetry),
            *_ledger(result),
        ]
        return [title, Facts(facts | _run(result)), *rest]
    facts["peer's columns"] = str(result.peer_columns)
    facts["dry run"] = "the two sides fit; nothing was trained"
    sizes = result.agreement
    facts["to pin"] = (
        f"alice-columns = {sizes.alice_columns} and rows = {sizes.rows}, as two lines of "
        "[agreement] on both sides, hold them to these sizes"
    )
    if result.estimate is not None:
        facts["estimate"] = _estimate(result.estimate)
    exposed = result.columns_exposed
    return [
        title,
        Facts(facts),
        *outlook_blocks(result.outlook),
        *([] if exposed is None else [exposure_facts(exposed)]),
    ]


def outlook_blocks(price: Outlook) -> list[Block]:
    """What a training will cost Bob's labels, and what each side will receive."""
    blocks: list[Block] = []
    if price.ledger is not None:
        figures = _statement(price.ledger) | _over_time(price)
        blocks += [Heading("What it will cost Bob's labels:"), Facts(figures)]
    blocks += [Heading("What each side will receive:"), Facts(learns_facts(price.learns))]
    if price.refused is not None:
        refused = f"As it stands this side will not begin: {price.refused.why}."
        blocks += [Paragraph(refused, "bad"), Paragraph(f"Way out: {price.refused.way_out}.")]
    return blocks


def learns_facts(learns: Disclosure) -> dict[str, Words]:
    """What each side receives, and what becomes of Alice's columns."""
    facts: dict[str, Words] = {"Alice": learns.alice, "Bob": learns.bob}
    if learns.columns is not None:
        facts["Alice's columns"] = (_EXPOSED, f" {learns.columns}.")
    return facts


def _over_time(price: Outlook) -> dict[str, Words]:
    total = price.ledger_book
    if total is None or price.ledger is None:
        return {}
    so_far, this, then = (
        label_epsilon(ledger.label_epsilon_total)
        for ledger in (total.so_far, price.ledger, total.then)
    )
    limit = "" if total.limit is None else f"; the limit is {total.limit:g}"
    words = f"so far {so_far} in {counted(total.trainings, 'training')}, this training {this}"
    return {"over time": f"{words}, then {then}{limit}"}


def _statement(ledger: Statement) -> dict[str, Words]:
    releases = counted(ledger.releases_per_row, "release")
    return {
        "a release": f"of a label, {label_epsilon(ledger.label_epsilon_per_release)}",
        "a row": f"at most {releases}" if ledger.releases_per_row else "no release in clear",
        "in all": f"of a label, {label_epsilon(ledger.label_epsilon_total)}"
        + (f", with delta {ledger.label_delta_total:g}" if ledger.label_delta_total else ""),
        "this rests on": ledger.assumption,
    }


def exposure_facts(exposed: ColumnExposure) -> Facts:
    """The counts of opened scores, and what they mean for Alice."""
    deviating = {
        "if Bob deviates": f"up to {exposed.columns_per_score:,} of her columns from one "
        f"score, all from {exposed.scores_for_all:,}"
    }
    opens = exposed.scores_per_row > 0
    warning: Words = (_EXPOSED, f" {exposed.warning}") if opens else exposed.warning
    return Facts(
        {
            "scores of a row": f"up to {exposed.scores_per_row:,}; {exposed.opened_values:,} "
            "values in all",
            **(deviating if opens else {}),
            "for Alice": warning,
        }
    )


def _estimate(estimate: Estimate) -> str:
    seconds = estimate.seconds
    computing = "under 0.1 s" if seconds < 0.1 else f"about {seconds:,.1f} s"
    return (
        f"{estimate.iterations:,} iterations, {computing} of computing, "
        f"{data_size(estimate.bytes_to_alice + estimate.bytes_to_bob)} of traffic; the network's "
        "time comes on top"
    )


def _run(result: PartyRun) -> dict[str, Words]:
    run = result.run
    facts: dict[str, Words] = {}
    if run.iterations_total:
        facts["iterations"] = f"{run.iterations:,} of {run.iterations_total:,}"
    if result.stopped:
        facts["ended early"] = result.stopped
    links = counted(run.links, "link")
    return facts | {
        "time": time_with_waits(run.seconds, run.waiting_seconds),
        "traffic": f"{traffic(run.bytes_sent, run.bytes_received)}, over {links}",
        "model": result.model,
    }


def _metrics(result: PartyRun) -> list[Block]:
    metrics = result.metrics
    parts = {
        "training rows": metrics.train,
        "held-out rows": metrics.held_out,
        "the same, Bob alone": result.bob_alone,
    }
    rows = own_metrics(parts)
    blocks: list[Block] = [rows] if rows.rows else []
    if metrics.threshold is not None:
        blocks.append(Paragraph(f"class 1 of a new row: {threshold_words(metrics.threshold)}"))
    return blocks


def _worth(result: PartyRun) -> list[Block]:
    quality = result.told_quality
    if result.identity.role == "alice":
        made = "" if result.stopped else "All passes over the rows that were agreed were made. "
        return [Paragraph(f"{made}{_for_alice(result)}")]
    held_out, run = result.metrics.held_out, result.run
    once = run.iterations_total == len(run.curve)
    facts: dict[str, Words] = {
        "converged": arrived(
            result.converged,
            result.last_change,
            "pass" if once else "epoch",
            result.converged_reason,
        )
    }
    if held_out is not None:
        facts |= {
            "base rate": base_rate(held_out.base_rate, "held-out rows"),
            "AUC": f"95{NO_BREAK}% interval {ends(record_of(held_out), 'auc')}",
            "KS": f"95{NO_BREAK}% interval {ends(record_of(held_out), 'ks')}",
            "observed / expected": f"{figure(held_out.calibration_ratio)} "
            f"({ends(record_of(held_out), 'calibration_ratio')})",
            "the partner adds": partner_adds(result.partner_adds),
        }
    else:
        facts["the partner adds"] = "not known: no rows were held out"
    if quality is not None:
        facts["told to Alice"] = _told(quality)
    return [*divergence(bool(result.diverged)), Facts(facts)]


def _told(quality: ToldQuality, teller: str = "") -> str:
    figures = f"accuracy {share(quality.accuracy, 0)}"
    if quality.epsilon is not None:
        noise = f"with noise for epsilon {quality.epsilon:g}, to whole per cent"
    else:
        area = "no AUC (a class is absent)"
        if quality.auc is not None:
            area = f"AUC {share(quality.auc, 0)}"
        figures, noise = f"{figures}, {area}", "to whole per cent"
    sentence = f"{figures} on {counted(quality.rows, 'held-out row')}, {noise}"
    return f"{teller}: {sentence}." if teller else sentence


def _importance(result: PartyRun) -> list[Block]:
    columns = result.importance or ()
    if not columns:
        return []
    rows = [
        (one.column, f"{one.weight:+.4f}", f"{one.importance:.4f}") for one in columns[:MOST_SHOWN]
    ]
    blocks: list[Block] = [
        table(
            ("column", "weight", "importance"),
            rows,
            caption="her columns by importance: the size of a weight times the column's deviation",
        )
    ]
    if len(columns) > MOST_SHOWN:
        blocks.append(Paragraph(f"and {len(columns) - MOST_SHOWN:,} more (--json)", "muted"))
    return blocks


def _for_alice(result: PartyRun) -> str:
    if result.told_quality is not None:
        return _told(result.told_quality, "Bob tells")
    reason = result.converged_reason
    return _FOR_ALICE if reason is None else _FOR_ALICE_UNSEEN.format(reason=reason)


def _wraps(result: PartyRun) -> list[Block]:
    if not result.suspected_wraps:
        return []
    words = (
        f"{result.suspected_wraps:,} scores came near the end of their range, and may have "
        "wrapped: the model may be worthless; scale or clip the features, or lower the learning "
        "rate"
    )
    return [Paragraph(words, "warning")]


def _ledger(result: PartyRun) -> list[Block]:
    blocks: list[Block] = []
    if result.ledger is not None:
        total = result.ledger.label_epsilon_total
        words = "infinite: no protection" if math.isinf(total) else f"{total:g}"
        blocks.append(Paragraph(f"a label's epsilon in all: {words}"))
        blocks.append(Paragraph(result.ledger.assumption, "muted"))
    return blocks if result.peer_confirmed else [*blocks, Paragraph(_UNCONFIRMED, "warning")]


def threshold_words(threshold: Threshold) -> str:
    """Where class 1 begins, and how that was chosen."""
    where = f"above {share(threshold.probability)}"
    rules = {
        GIVEN: "as given",
        YOUDEN: f"by Youden's index on {threshold.rows:,} held-out rows",
        COST: f"at which {threshold.rows:,} held-out rows cost least, a missed 1 costing "
        f"{threshold.miss_cost or 0:g} false alarms",
    }
    how = rules.get(threshold.rule, "even odds, for there were no held-out rows to choose on")
    if threshold.sensitivity is None:
        return f"{where}, {how}"
    reached = (
        f"{share(threshold.sensitivity, 1)} of their ones lie above it, "
        f"{share(threshold.specificity, 1)} of their zeros do not"
    )
    return f"{where}, {how}: {reached}"
