"""Blocks on attacks against Alice's columns, with Bob as the adversary."""

from __future__ import annotations

from collections.abc import Sequence

from taciturn.report.blocks import (
    Badge,
    Block,
    Details,
    Facts,
    Heading,
    Paragraph,
    Section,
    Span,
    Table,
    Words,
    table,
)
from taciturn.report.formatting import interval, share
from taciturn_audit.results.columns import (
    ABOVE,
    MARKED,
    TITLE,
    BobSeat,
    Fault,
    Look,
    Separation,
    Skipped,
    column_scores,
)
from taciturn_audit.verdict import Status, conclude_seat

PERMUTED = "Alice's rows permuted before training: what the protocol alone leaks"

SINGLE = "How well Bob can recover a single Alice's scores"

COLUMN_WORDS = (
    "Recovered: share of her values that the attack estimates to within a tenth of the column's "
    "standard deviation, or in the right category. R2: explained variance, mean over her numeric "
    "columns. Known rows: rows of hers that Bob is assumed to know; they are not judged. The "
    "controls see no score: mean takes the best constant of each column, regression uses all "
    "else that Bob has. Recovered up to: what the attack leaves open (sign: order and signs of "
    "columns; unit: also unit and offset; linear map); it is resolved with every second row, and "
    f"the other rows are judged. {MARKED}"
)


def skipped_facts(skipped: Sequence[Skipped], scope: str = "") -> Facts:
    """Attacks that were not run, by reason."""
    names: dict[str, list[str]] = {}
    for skip in skipped:
        names.setdefault(skip.reason, []).append(skip.name)
    return Facts({", ".join(alike): f"{reason}{scope}" for reason, alike in names.items()})


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
        Paragraph(MARKED, "muted"),
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
        table(("deliberate fault", "test", "outcome"), noticed, words=(0, 1, 2)),
    ]


def adversary_section(seat: BobSeat, mechanism: str, ident: str) -> Section:
    """Bob as the adversary on the page: the verdict first, the figures folded."""
    summary = conclude_seat(seat)
    meaning = _FOR_ALICE.get(summary.status, _NOT_FOUND)
    if summary.status is Status.LEAK and mechanism != "mutual":
        meaning += " With mutual he receives no score of a training row."
    blocks: tuple[Block, ...] = (
        Paragraph(summary.sentence),
        Heading("What this means for Alice"),
        Paragraph(meaning),
    )
    skipped = skipped_facts(seat.findings.skipped)
    if seat.findings.attacks:
        tables = (
            *([] if seat.canary is None else [column_scores(seat.canary, PERMUTED)]),
            column_scores(seat.findings, TITLE),
        )
        words = Paragraph(COLUMN_WORDS, "muted")
        blocks += (Details("Attacks on Alice's columns as tables", (*tables, words)),)
    if seat.separation is not None:
        blocks += tuple(separation_blocks(seat.separation))
    if skipped.pairs:
        blocks += (Details(f"Attacks that were skipped: {len(seat.findings.skipped)}", (skipped,)),)
    badge = Badge(summary.status.word, summary.status.sign, summary.status.label)
    return Section(summary.headline, ident, blocks, "Columns", badge)


_FOR_ALICE = {
    Status.LEAK: "Bob can compute values of your columns from the scores that he receives. Take "
    "part only if he may know these values.",
    Status.CERTAIN: "The scores tell Bob a little about your columns here. More passes or other "
    "attacks may tell him more. Take part only if he may know these values.",
}
_NOT_FOUND = (
    "No attack we know reconstructs your columns from this training. Bob still receives the scores "
    "of held-out and of new rows, and many of them together disclose your columns."
)
