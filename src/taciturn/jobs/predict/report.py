"""The end of one side's part in a prediction, as blocks."""

from __future__ import annotations

from taciturn.data.ids import NONE
from taciturn.errors import counted
from taciturn.jobs.predict.result import PredictionResult
from taciturn.report.blocks import Block, Facts, Paragraph, table
from taciturn.report.formatting import traffic
from taciturn.report.training import threshold_words
from taciturn.results.parties import MeanRow, ScoredRow

MOST_SHOWN = 10


def prediction_blocks(result: PredictionResult) -> list[Block]:
    """One side's prediction; at Bob with the first scores and their meaning."""
    weights = "Alice's weights are shared" if result.shared_weights else "weights of each side"
    title = f"{result.role} with {result.peer}: prediction of {counted(result.rows, 'row')}"
    facts = {
        "model": result.model or "",
        "training": f"{result.mechanism}, session {result.session}; {weights}",
        "rows": _scored_of(result),
        "time": f"{result.seconds:.1f} s",
        "traffic": traffic(result.bytes_sent, result.bytes_received),
    }
    blocks: list[Block] = [Paragraph(title, "strong"), Facts(facts)]
    if result.learnt is not None:
        return [*blocks, Paragraph(f"You learnt {result.learnt}.")]
    blocks += _scores(result.scores or ())
    means = bool(result.scores) and isinstance((result.scores or ())[0], MeanRow)
    subject = "The mean is" if means else "The probability is that"
    blocks.append(Paragraph(f"{subject} {result.meaning}."))
    if result.threshold is not None:
        blocks.append(Paragraph(f"Decision threshold {threshold_words(result.threshold)}."))
    if result.suspected_wraps:
        words = (
            f"{result.suspected_wraps:,} scores lie near the end of their range, and may have "
            "wrapped: these rows have values far beyond the training's"
        )
        blocks.append(Paragraph(words, "warning"))
    if result.out:
        blocks.append(Paragraph(f"wrote {result.out}"))
    return blocks


def _scored_of(result: PredictionResult) -> str:
    here = f"{result.rows:,} scored of {result.ids:,} here"
    if result.peer_ids is None:
        return f"{here}, by a list"
    spelled = "" if result.normalise_ids == NONE else f"; ids normalised ({result.normalise_ids})"
    return f"{here} and {result.peer_ids:,} there: those that both have{spelled}"


def _scores(rows: tuple[ScoredRow | MeanRow, ...]) -> list[Block]:
    shown = [_cells(row) for row in rows[:MOST_SHOWN]]
    means = bool(rows) and isinstance(rows[0], MeanRow)
    headings = ("id", "score", "mean") if means else ("id", "score", "probability", "class")
    first = table(headings, shown, label="The first scores")
    more = Paragraph(f"and {len(rows) - MOST_SHOWN:,} more", "muted")
    return [first, more] if len(rows) > MOST_SHOWN else [first]


def _cells(row: ScoredRow | MeanRow) -> tuple[str, ...]:
    if isinstance(row, MeanRow):
        return row.id, f"{row.score:.6f}", f"{row.mean:.6g}"
    return row.id, f"{row.score:.6f}", f"{row.probability:.6f}", f"{row.label}"
