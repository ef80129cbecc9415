"""Bob's seat as blocks: what he can tell of Alice's columns, for a terminal and for the page."""

from __future__ import annotations

from taciturn.report.blocks import (
    Block,
    Facts,
    Heading,
    Paragraph,
    Section,
    Span,
    Table,
    Words,
    table,
)
from taciturn.report.words import NONE, interval, share
from taciturn.results.columns import BobSeat, ColumnFindings, ColumnRehearsal, is_above

ABOVE = "▲"
TITLE = "What Bob can tell of Alice's columns"
PERMUTED = "Her rows permuted against his before training: what the protocol alone tells"
COLUMN_WORDS = (
    "The share of her values that an attack has to within a tenth of their column's deviation, or "
    "in the right category, and R2, the mean over her numeric columns. The controls see no score: "
    "mean takes the best constant of each column, regression all that Bob has. Rows he knew are "
    "not judged; with none known, the judge names the columns by a linear map fitted on every "
    "second row."
)


def seat_blocks(seat: BobSeat) -> list[Block]:
    """Controls, attacks and verdict, for a terminal."""
    lines = [
        Paragraph(f"{one.name}: skipped, {one.reason}", "muted") for one in seat.findings.skipped
    ]
    verdicts = [Paragraph(f"Bob's seat: {seat.findings.verdict}")]
    if seat.canary is not None:
        verdicts.insert(0, Paragraph(f"Bob's seat, rows permuted: {seat.canary.verdict}"))
    return [
        *([column_scores(seat.canary, PERMUTED)] if seat.canary is not None else []),
        column_scores(seat.findings, TITLE),
        *lines,
        *verdicts,
    ]


def seat_section(seat: BobSeat) -> Section:
    """The same as a section of the page."""
    return Section(
        TITLE, "columns", (Paragraph(COLUMN_WORDS, "muted"), *seat_blocks(seat)), "Columns"
    )


def column_scores(findings: ColumnFindings, caption: str) -> Table:
    """Column attacks below the controls."""
    headings = ["", "known rows", "recovered", "95 % interval", "R2", "time"]
    controls: list[tuple[Words, ...]] = [
        (
            Span(f"{one.name} (control)", "muted"),
            NONE,
            share(one.recovered),
            NONE,
            _fit(one.r2),
            NONE,
        )
        for one in findings.controls
    ]
    attacks: list[tuple[Words, ...]] = [
        (
            (Span(ABOVE, "bad"), f" {one.name}") if is_above(one, findings.controls) else one.name,
            f"{one.known_rows:.0f}",
            share(one.recovered),
            interval(one.recovered_low, one.recovered_high),
            _fit(one.r2),
            f"{one.seconds:.2f}\u00a0s",
        )
        for one in findings.attacks
    ]
    drawn = table(headings, [], caption=caption)
    return Table(drawn.columns, tuple(filter(None, (tuple(controls), tuple(attacks)))), caption)


def rehearsal_blocks(rehearsed: ColumnRehearsal) -> list[Block]:
    """What a check says of Bob's seat, with advice to Alice."""
    advice: dict[str, Words] = {
        "rehearsed": f"{rehearsed.rehearsed_passes} passes or epochs; "
        f"{rehearsed.safe_passes} of them told no attack of ours more than the controls"
    }
    for number, words in enumerate(rehearsed.advice, start=1):
        advice[f"for Alice, {number}"] = words
    return [
        Heading("Bob's seat: what he will be able to tell of Alice's columns"),
        column_scores(rehearsed.findings, TITLE),
        Facts(advice),
        Paragraph(rehearsed.findings.verdict),
    ]


def _fit(r2: float | None) -> str:
    return NONE if r2 is None else f"{r2:.2f}"
