"""Bob's seat as blocks: what he can tell of Alice's columns, for a terminal and for the page."""

from __future__ import annotations

from taciturn.report.blocks import (
    Block,
    Facts,
    Heading,
    Paragraph,
    Span,
    Table,
    Words,
    table,
)
from taciturn.report.words import NONE, interval, share
from taciturn.results.columns import (
    ColumnFindings,
    ColumnRehearsal,
    is_above,
)

ABOVE = "▲"

TITLE = "How well Bob can reconstruct Alice's columns"

_LEFT_OPEN = {
    "none": NONE,
    "order and sign of columns": "sign",
    "order, unit and offset of columns": "unit",
    "a linear map": "linear",
}


def column_scores(findings: ColumnFindings, caption: str) -> Table:
    """Column attacks below the controls."""
    headings = ["", "known rows", "recovered", "95 % interval", "R2", "up to", "time"]
    controls: list[tuple[Words, ...]] = [
        (
            Span(f"{one.name} (control)", "muted"),
            NONE,
            share(one.recovered),
            NONE,
            r_squared(one.r2),
            NONE,
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
            r_squared(one.r2),
            _LEFT_OPEN.get(one.ambiguity, one.ambiguity),
            f"{one.seconds:.2f}\u00a0s",
        )
        for one in findings.attacks
    ]
    drawn = table(headings, [], caption=caption)
    return Table(drawn.columns, tuple(filter(None, (tuple(controls), tuple(attacks)))), caption)


def rehearsal_blocks(rehearsed: ColumnRehearsal) -> list[Block]:
    """What a check says of Bob's seat, with advice to Alice."""
    advice: dict[str, Words] = {"rehearsed": f"{rehearsed.rehearsed_passes} passes or epochs"}
    for number, words in enumerate(rehearsed.advice, start=1):
        advice[f"for Alice, {number}"] = words
    return [
        Heading("Bob's seat: what he will be able to tell of Alice's columns"),
        column_scores(rehearsed.findings, TITLE),
        Facts(advice),
        Paragraph(rehearsed.findings.verdict),
    ]


def r_squared(r2: float | None) -> str:
    """R2 with two decimals."""
    return NONE if r2 is None else f"{r2:.2f}"
