"""Bob's seat as blocks: what he can tell of Alice's columns, for a terminal and for the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

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
from taciturn.results.columns import (
    BobSeat,
    ColumnControl,
    ColumnFindings,
    ColumnRehearsal,
    ColumnScore,
    is_above,
)
from taciturn.results.looks import Separation

ABOVE = "▲"
TITLE = "How well Bob can reconstruct Alice's columns"
PERMUTED = "The same with her rows permuted before training: what the protocol alone leaks"
SINGLE = "What Bob can tell of a single Alice's scores"
COLUMN_WORDS = (
    "Recovered: share of her values that the attack has to within a tenth of the column's standard "
    "deviation, or in the right category. R2 is the mean over her numeric columns. The controls "
    "see no score: mean takes the best constant of each column, regression uses all that Bob has. "
    "Rows that Bob knew are not judged. Up to: what the attack leaves open (sign: order and signs "
    "of columns; unit: also unit and offset; linear: a linear map); the judge settles it on every "
    "second row and judges the others."
)
_LEFT_OPEN = {
    "none": NONE,
    "order and sign of columns": "sign",
    "order, unit and offset of columns": "unit",
    "a linear map": "linear",
}


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
        *([] if seat.separation is None else separation_blocks(seat.separation)),
        *verdicts,
    ]


def separation_blocks(tried: Separation) -> list[Block]:
    """Whether single Alices' scores can be told from the sum that Bob is given."""
    rows: list[list[Words]] = [
        [
            (Span(ABOVE, "bad"), f" {one.name}") if one.noticed else one.name,
            f"{one.right} of {one.judged}",
            share(one.accuracy),
            interval(one.accuracy_low, one.accuracy_high),
        ]
        for one in tried.looks
    ]
    faults = [
        (one.words, one.by, "noticed" if one.noticed else "not noticed") for one in tried.faults
    ]
    verdict = (
        "A single Alice's scores show in her answers: the masks do not hide them."
        if tried.noticed
        else "No single Alice's scores were told from her answers. That is not a proof of safety."
    )
    words = (
        f"Which half of her scores are the higher ones, guessed from {tried.numbers:,} numbers "
        "under masks; learnt on the first half of the training. With uniform masks something is "
        f"noticed with probability {tried.false_alarm:g} at most; what tells "
        f"{share(tried.detectable, 0)} of the scores is noticed in 95 of 100 audits."
    )
    return [
        table(("guessed from", "right", "share", "95 % interval"), rows, caption=SINGLE),
        table(("fault put in on purpose", "looked at", ""), faults, words=(0, 1, 2)),
        Paragraph(words, "muted"),
        Paragraph(verdict),
    ]


def seat_section(seat: BobSeat) -> Section:
    """The same as a section of the page."""
    return Section(
        TITLE, "columns", (Paragraph(COLUMN_WORDS, "muted"), *seat_blocks(seat)), "Columns"
    )


def column_scores(findings: ColumnFindings, caption: str) -> Table:
    """Column attacks below the controls."""
    headings = ["", "known rows", "recovered", "95 % interval", "R2", "up to", "time"]
    controls: list[tuple[Words, ...]] = [
        (
            Span(f"{one.name} (control)", "muted"),
            NONE,
            share(one.recovered),
            NONE,
            _fit(one.r2),
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
            _fit(one.r2),
            _LEFT_OPEN.get(one.ambiguity, one.ambiguity),
            f"{one.seconds:.2f}\u00a0s",
        )
        for one in findings.attacks
    ]
    drawn = table(headings, [], caption=caption)
    return Table(drawn.columns, tuple(filter(None, (tuple(controls), tuple(attacks)))), caption)


def seats_blocks(seats: Mapping[str, BobSeat]) -> list[Block]:
    """Mechanisms side by side: what the best attack from Bob's seat tells of her columns."""
    rows = []
    for name, seat in seats.items():
        plain = seat.canary or seat.findings
        best, true = _best(plain), _best(seat.findings)
        known = f"{best.known_rows:.0f}" if isinstance(best, ColumnScore) else NONE
        rows.append((name, _fit(best.r2), _fit(true.r2), share(best.recovered), known, best.name))
    first = next(iter(seats.values())).findings
    unseen = _fit(max(first.controls, key=_rank).r2)
    note = (
        "Permuted: her rows against his before training, so that only the messages tell them. R2 "
        "is 1 where every column is told and 0 where its mean is all that is known; without "
        f"messages {unseen} in the true run. Values: those told to within a tenth of a deviation."
    )
    headings = ("mechanism", "R2, permuted", "R2, true", "values, permuted", "known rows", "by")
    return [table(headings, rows, words=(0, 5), caption=TITLE), Paragraph(note, "muted")]


def _best(findings: ColumnFindings) -> ColumnScore | ColumnControl:
    entries: Sequence[ColumnScore | ColumnControl] = findings.attacks or findings.controls
    return max(entries, key=_rank)


def _rank(one: ColumnScore | ColumnControl) -> tuple[float, float]:
    return (-math.inf if one.r2 is None else one.r2, one.recovered)


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


def _fit(r2: float | None) -> str:
    return NONE if r2 is None else f"{r2:.2f}"
