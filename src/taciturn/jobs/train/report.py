"""The end of one side's part in a training, as blocks."""

from __future__ import annotations

import math

from taciturn.errors import counted
from taciturn.jobs.train.result import DryRun, PartyRun
from taciturn.numerics.regression_metrics import RegressionMetrics
from taciturn.privacy.quality_release import ToldQuality
from taciturn.privacy.row_noise import SumKind
from taciturn.report.blocks import (
    NO_BREAK,
    Block,
    Facts,
    Paragraph,
    Words,
    table,
)
from taciturn.report.formatting import data_size, figure, share, time_with_waits, traffic
from taciturn.report.training import (
    base_rate,
    beyond_blocks,
    convergence_text,
    divergence,
    ends,
    exposure_facts,
    mean_label,
    opened_sums_facts,
    outlook_blocks,
    own_metrics,
    partner_adds,
    symmetry_blocks,
    threshold_words,
)
from taciturn.results.cost_preview import Estimate
from taciturn.results.serialise import record_of

MOST_SHOWN = 10
_FOR_ALICE = (
    "Convergence and quality of the model depend on labels: only Bob knows them, unless he "
    "releases them (share-metrics)."
)
_UNCONFIRMED = "the peer has not confirmed the last message; if it lacks it, run both sides again"


def party_blocks(result: PartyRun | DryRun) -> list[Block]:
    """Report blocks of one side: the run, the model's quality, the labels' privacy cost."""
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
            *beyond_blocks(result.scores_beyond_range),
            *symmetry_blocks(result.symmetry),
            *_ledger(result),
        ]
        return [title, Facts(facts | _run(result)), *rest]
    facts["peer's columns"] = str(result.peer_columns)
    facts["dry run"] = "the two sides fit; nothing was trained"
    sizes = result.agreement
    facts["to fix these sizes"] = (
        f"add to [agreement] on both sides: alice-columns = {sizes.columns} and rows = {sizes.rows}"
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


def _estimate(estimate: Estimate) -> str:
    seconds = estimate.seconds
    computing = "under 0.1 s" if seconds < 0.1 else f"about {seconds:,.1f} s"
    return (
        f"{estimate.iterations:,} iterations, {computing} of computing, "
        f"{data_size(estimate.bytes_to_alice + estimate.bytes_to_bob)} of traffic; network "
        "time not included"
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
        "held-out rows, Bob alone": result.bob_alone,
    }
    rows = own_metrics(parts)
    blocks: list[Block] = [rows] if rows.rows else []
    if metrics.threshold is not None:
        blocks.append(Paragraph(f"Decision threshold {threshold_words(metrics.threshold)}"))
    return blocks


def _worth(result: PartyRun) -> list[Block]:
    quality = result.told_quality
    if result.identity.role == "alice":
        made = "" if result.stopped else "All agreed passes were completed. "
        return [Paragraph(f"{made}{_for_alice(result)}")]
    held_out, run = result.metrics.held_out, result.run
    # Of a whole-table training whose losses nobody sees the curve is empty.
    once = run.iterations_total == len(run.curve) or result.opened_change is not None
    facts: dict[str, Words] = {
        "converged": convergence_text(
            result.convergence,
            "pass" if once else "epoch",
            beyond=result.scores_beyond_range,
            ranged=result.identity.mechanism == "mutual",
        )
    }
    if held_out is not None:
        record = record_of(held_out)
        if isinstance(held_out, RegressionMetrics):
            facts |= {
                "mean label": mean_label(held_out.family, record, "held-out rows"),
                "mean deviance": f"95{NO_BREAK}% interval {ends(record, 'deviance')}",
            }
        else:
            facts |= {
                "base rate": base_rate(held_out.base_rate, "held-out rows"),
                "AUC": f"95{NO_BREAK}% interval {ends(record, 'auc')}",
                "KS": f"95{NO_BREAK}% interval {ends(record, 'ks')}",
            }
        facts |= {
            "observed / expected": f"{figure(held_out.calibration_ratio)} "
            f"({ends(record, 'calibration_ratio')})",
            "the partner adds": partner_adds(result.partner_adds),
        }
    else:
        unscored = result.held_out_unscored
        facts["the partner adds"] = f"not known: {unscored or 'no rows were held out'}"
    if quality is not None:
        facts["told to Alice"] = _told(quality)
    return [*divergence(bool(result.convergence.diverged)), Facts(facts)]


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
        (column.column, f"{column.weight:+.4f}", f"{column.importance:.4f}")
        for column in columns[:MOST_SHOWN]
    ]
    blocks: list[Block] = [
        table(
            ("column", "weight", "importance"),
            rows,
            caption="Alice's columns by importance (|weight| × standard deviation)",
        )
    ]
    if len(columns) > MOST_SHOWN:
        blocks.append(Paragraph(f"and {len(columns) - MOST_SHOWN:,} more (--json)", "muted"))
    return blocks


def _for_alice(result: PartyRun) -> str:
    if result.told_quality is not None:
        return _told(result.told_quality, "Bob tells")
    return _FOR_ALICE


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
        blocks.append(Paragraph(f"total label epsilon: {words}"))
        blocks.append(Paragraph(result.ledger.assumption, "muted"))
        opened: dict[SumKind, float | None] = {
            "change of the loss": result.opened_change,
            "count of scores": result.scores_beyond_range,
        }
        sums = opened_sums_facts(opened, result.identity.rows, result.run.iterations)
        blocks += [Facts({**sums})] if sums else []
    return blocks if result.peer_confirmed else [*blocks, Paragraph(_UNCONFIRMED, "warning")]
