"""A check before any training as blocks."""

from __future__ import annotations

import math
from collections.abc import Iterable

from taciturn.errors import counted
from taciturn.report.blocks import Block, Facts, Heading, Paragraph, Span, Tone, Words, table
from taciturn.report.columns import rehearsal_blocks
from taciturn.report.parties import exposure_facts, outlook_blocks
from taciturn.report.training import label_epsilon, parties_facts
from taciturn.report.words import percent, share
from taciturn.results.check import (
    AT_RISK,
    CLEAR,
    LEAKS,
    AttackVerdict,
    CheckFacts,
    CheckResult,
    Level,
    PredictionNotes,
)

VERDICT_HEADINGS = ("attack", "verdict", "why", "smallest change that helps")
_TONES: dict[Level, Tone] = {LEAKS: "bad", AT_RISK: "warning", CLEAR: "muted"}
_CLOSING: dict[Level, str] = {
    LEAKS: "Labels leak: the rehearsal recovered them beyond chance.",
    AT_RISK: "Labels are at risk: the rehearsal told more than coins would.",
    CLEAR: "Labels: no attack of ours recovered any. That is not a proof of safety.",
}
_EXPOSED = "Columns leak: an attack reconstructed columns of Alice's from what Bob receives."


def check_blocks(result: CheckResult) -> list[Block]:
    """What Alice will be able to do, attack by attack, and what to change."""
    caption = "Before training: what Alice will be able to do"
    return [
        table(VERDICT_HEADINGS, verdict_rows(result.verdicts), caption=caption, words=range(4)),
        Facts(_facts(result.facts)),
        *(Paragraph(f"note: {note}", "warning") for note in (*result.warnings, *result.notes)),
        *_columns(result),
        *([] if result.bob_seat is None else rehearsal_blocks(result.bob_seat)),
        *([] if result.price is None else outlook_blocks(result.price)),
        *_predictions(result),
        *_closing(result),
        *([] if result.verdict == CLEAR else [advice_facts(result)]),
    ]


def verdict_rows(verdicts: Iterable[AttackVerdict]) -> list[tuple[str, Span, str, str]]:
    """Rows of a table of attacks; those of which the same is said stand in one row."""
    names: dict[tuple[Level, str, str], list[str]] = {}
    for one in verdicts:
        names.setdefault((one.verdict, one.why, one.change), []).append(one.attack)
    return [
        (", ".join(alike), Span(level, _TONES[level]), why, change)
        for (level, why, change), alike in names.items()
    ]


def advice_facts(result: CheckResult) -> Facts:
    """What to use in place of a mechanism that leaks."""
    return Facts({f"for {one.need}": f"{one.use}: {one.why}" for one in result.recommendations})


def prediction_facts(notes: PredictionNotes) -> Facts:
    """What predictions with the model tell each side."""
    return Facts({"Bob": notes.bob, "Alice": notes.alice, "repeated": notes.repeated})


def _closing(result: CheckResult) -> list[Block]:
    words = [_CLOSING[result.verdict]]
    if result.bob_seat is not None and result.bob_seat.findings.leaks:
        words.append(_EXPOSED)
    return [Paragraph(one, "strong") for one in words]


def _facts(facts: CheckFacts) -> dict[str, Words]:
    pairs: dict[str, Words] = {
        **parties_facts(facts.parties),
        **_steps(facts),
        "privacy of a label": f"{label_epsilon(facts.label_epsilon_per_release)} per release, "
        f"{label_epsilon(facts.label_epsilon_total)} in all",
        "best possible guess": f"right about {share(facts.attack_ceiling)} of labels at even odds, "
        "at most: the bound of that epsilon on any attack",
    }
    if facts.sparsity is not None:
        pairs["sparse recovery"] = (
            f"{facts.true_rows:.1f} of {facts.l_rr:.1f} residues are not zero: "
            f"{facts.sparsity:.2f} per column, recoverable up to about "
            f"{facts.recoverable_sparsity:.2f}"
        )
    return pairs


def _steps(facts: CheckFacts) -> dict[str, Words]:
    condition = "∞" if math.isinf(facts.median_condition) else f"{facts.median_condition:.4g}"
    columns = counted(facts.alice_columns, "column")
    if facts.passes is not None:
        return {
            "passes": f"{facts.passes}, each over all {counted(facts.rows, 'row')} and {columns} "
            f"(condition {condition})"
        }
    return {
        "batches": f"{counted(facts.batch_size, 'row')} against {columns}; "
        f"{percent(facts.full_rank_share, 0)} % of sampled ones have full rank "
        f"(condition {condition}), the last has {facts.last_batch}",
        "stacked epochs": f"{facts.stacked_equations_per_row:.2g} equations per row in "
        f"{counted(facts.epochs, 'epoch')}",
    }


def _columns(result: CheckResult) -> list[Block]:
    exposed = result.columns
    if exposed is None:
        return []
    return [Heading("What the training will tell Bob of Alice's columns:"), exposure_facts(exposed)]


def _predictions(result: CheckResult) -> list[Block]:
    if result.prediction is None:
        return []
    heading = Heading("What predictions with the model will tell:")
    return [heading, prediction_facts(result.prediction)]
