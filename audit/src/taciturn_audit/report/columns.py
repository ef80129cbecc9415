"""Blocks on attacks against Alice's columns, with Bob as the adversary."""

from __future__ import annotations

from collections.abc import Sequence

from taciturn.report.blocks import (
    Block,
    Paragraph,
    Section,
    Span,
    Table,
    Words,
    table,
)
from taciturn.report.formatting import interval, share
from taciturn.results.columns import (
    ABOVE,
    TITLE,
    BobSeat,
    Fault,
    Look,
    Separation,
    column_scores,
)

PERMUTED = "The same with her rows permuted before training: what the protocol alone leaks"

SINGLE = "How well Bob can recover a single Alice's scores"

COLUMN_WORDS = (
    "Recovered: share of her values that the attack has to within a tenth of the column's standard "
    "deviation, or in the right category. R2 is the mean over her numeric columns. The controls "
    "see no score: mean takes the best constant of each column, regression uses all that Bob has. "
    "Rows that Bob knew are not judged. Up to: what the attack leaves open (sign: order and signs "
    "of columns; unit: also unit and offset; linear: a linear map); the judge settles it on every "
    "second row and judges the others."
)


def adversary_blocks(seat: BobSeat) -> list[Block]:
    """Controls, attacks and verdict, for a terminal."""
    lines = [
        Paragraph(f"{skip.name}: skipped, {skip.reason}", "muted") for skip in seat.findings.skipped
    ]
    verdicts = [Paragraph(f"Bob as the adversary: {seat.findings.verdict}")]
    if seat.canary is not None:
        verdicts.insert(0, Paragraph(f"Bob as the adversary, rows permuted: {seat.canary.verdict}"))
    return [
        *([column_scores(seat.canary, PERMUTED)] if seat.canary is not None else []),
        column_scores(seat.findings, TITLE),
        *lines,
        *([] if seat.separation is None else separation_blocks(seat.separation)),
        *verdicts,
    ]


def separation_blocks(tried: Separation) -> list[Block]:
    """Whether Bob recovers single Alices' scores from the sum that he is given."""
    verdict = (
        "A single Alice's scores leak from her answers: the masks do not hide them."
        if tried.noticed
        else "No single Alice's scores were recovered from her answers: no proof of safety."
    )
    words = (
        f"A classifier guessed from {tried.numbers:,} masked numbers which half of her scores is "
        "higher; it was fitted on the first half of the training. A leak that reveals "
        f"{share(tried.detectable, 0)} of the scores would be detected with 95\u00a0% power; the "
        f"false-alarm rate is at most {tried.false_alarm:g}."
    )
    return [
        *look_tables(tried.looks, tried.faults, "right", SINGLE),
        Paragraph(words, "muted"),
        Paragraph(verdict),
    ]


def look_tables(
    looks: Sequence[Look], faults: Sequence[Fault], heading: str, caption: str
) -> list[Table]:
    """Right guesses of each test, and which faults put in on purpose would have been noticed."""
    rows: list[list[Words]] = [
        [
            (Span(ABOVE, "bad"), f" {look.name}") if look.noticed else look.name,
            f"{look.right} of {look.judged}",
            share(look.accuracy),
            interval(look.accuracy_low, look.accuracy_high),
        ]
        for look in looks
    ]
    noticed = [
        (fault.words, fault.by, "detected" if fault.noticed else "not detected") for fault in faults
    ]
    return [
        table(("guessed from", heading, "share", "95 % interval"), rows, caption=caption),
        table(("deliberate fault", "test", ""), noticed, words=(0, 1, 2)),
    ]


def adversary_section(seat: BobSeat) -> Section:
    """The same as a section of the page."""
    return Section(
        TITLE, "columns", (Paragraph(COLUMN_WORDS, "muted"), *adversary_blocks(seat)), "Columns"
    )
