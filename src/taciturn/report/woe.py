"""Weight of evidence as blocks: the columns, their bins, and what each side learns of the other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from taciturn.errors import counted
from taciturn.report import blocks as b
from taciturn.report.words import (
    NONE,
    data_size,
    duration,
    epsilon,
    figure,
    footer,
    interval,
    share,
)
from taciturn.results.audit import AttackScore
from taciturn.results.woe import WoeBin, WoeColumn, WoeResult
from taciturn.results.woe_audit import BinsTold, WoeAudit, WoeFineness, WoeRounding
from taciturn.version import __version__

# More columns than this are not shown bin by bin in a terminal; the record and the page have all.
MOST_COLUMNS = 8
# What credit practice calls an information value.
_STRENGTH = ((0.02, "nothing"), (0.1, "weak"), (0.3, "medium"), (0.5, "strong"))
_READING = (
    "WOE is ln(share of all ones in the bin / share of all zeros in it), with {smoothing:g} added "
    "to both counts: above 0, label 1 is commoner there than over all rows. IV is the sum over "
    "bins of the difference of these shares times WOE."
)


def woe_blocks(result: WoeResult) -> list[b.Block]:
    """The result for a terminal of 100 columns."""
    shown = result.ranked[:MOST_COLUMNS]
    left = len(result.columns) - len(shown)
    more = f"The bins of {counted(left, 'more column')} are in --json and in the page of --out."
    return [
        b.Paragraph(_subject(result), "strong"),
        *_summary(result),
        _bins_table(shown, result),
        *([b.Paragraph(more, "muted")] if left else []),
        b.Facts(_facts(result)),
        *_reading(result),
    ]


def woe_page(result: WoeResult, made: str | None = None) -> b.Page:
    """The page of a weight of evidence; ``made`` is in UTC, None where not recorded."""
    known = result.smoothing is not None
    return b.Page(
        window="Weight of evidence – Taciturn",
        title="Weight of evidence of Alice's columns",
        subject=_subject(result),
        blocks=(
            *([b.Section("Columns", "columns", (*_summary(result),))] if known else []),
            b.Section("Bins", "bins", (_bins_table(result.ranked, result), *_reading(result))),
            b.Section("What each side learns", "learns", (b.Facts(_facts(result)),), "Learns"),
        ),
        footer=footer(__version__, made),
    )


def _subject(result: WoeResult) -> str:
    bins = sum(len(column.bins) for column in result.columns)
    what_of = f"{len(result.columns)} columns of Alice's in {bins} bins, {result.rows:,} rows"
    if result.role == "simulation":
        return f"{result.dataset}: weight of evidence, {what_of}"
    return f"{result.role} with {result.peer}: weight of evidence, {what_of}"


def _summary(result: WoeResult) -> Iterable[b.Block]:
    if result.smoothing is None:
        return
    rows = [
        (column.name, str(len(column.bins)), _value(column.iv), _strength(column.iv or 0.0))
        for column in result.ranked
    ]
    yield b.table(("column", "bins", "IV", "says"), rows, words=(0, 3), label="Columns")


def _bins_table(columns: Sequence[WoeColumn], result: WoeResult) -> b.Table:
    lines = [
        (_name(column) if not number else "", *_cells(one))
        for column in columns
        for number, one in enumerate(column.bins)
    ]
    headings = ["column", "bin", "rows"]
    headings += [] if result.smoothing is None else ["ones", "rate", "WOE"]
    groups: list[tuple[tuple[b.Words, ...], ...]] = []
    place = 0
    for column in columns:
        groups.append(tuple(lines[place : place + len(column.bins)]))
        place += len(column.bins)
    heads = tuple(b.Column(text, number > 1) for number, text in enumerate(headings))
    return b.Table(heads, tuple(groups), label="Bins")


def _name(column: WoeColumn) -> str:
    return column.name if column.own is None else f"{column.name}: {column.own}"


def _cells(one: WoeBin) -> tuple[b.Words, ...]:
    label = one.label if one.own is None else f"{one.label}: {one.own}"
    sized = (label, f"{one.rows:,}")
    if one.ones is None or one.woe is None:
        return sized
    return (*sized, f"{one.ones:,}", share(one.ones / one.rows), _value(one.woe))


def _value(value: float | None) -> str:
    if value is not None and math.isinf(value):
        return "−∞" if value < 0 else "∞"
    return figure(value)


def _strength(value: float) -> str:
    return next((word for limit, word in _STRENGTH if value < limit), "suspiciously strong")


def _facts(result: WoeResult) -> dict[str, b.Words]:
    facts: dict[str, b.Words] = {
        "Alice learns": result.alice_learns,
        "Bob learns": result.bob_learns,
        "labels paid": f"epsilon {epsilon(result.label_epsilon)} ({result.assumption})",
    }
    if result.tables is not None:
        tables = result.tables
        facts["tables given"] = f"{tables.given} of {tables.limit} that this peer may have"
    if result.min_rows is not None:
        facts["least rows of a bin"] = f"{result.min_rows:,}; smaller bins were merged"
    facts["encryption"] = f"{result.scheme}, {result.key_bits} bits"
    facts["traffic"] = (
        f"{data_size(result.bytes_to_alice)} to Alice, {data_size(result.bytes_to_bob)} to Bob, "
        f"{duration(result.seconds)}"
    )
    if result.notes:
        facts["note"] = "; ".join(result.notes)
    return facts


def _reading(result: WoeResult) -> Iterable[b.Block]:
    if result.smoothing is not None:
        yield b.Paragraph(_READING.format(smoothing=result.smoothing), "muted")


# --- the audit --------------------------------------------------------------------------------

_USUAL = (
    "The usual way hands Alice the weight of evidence, or the rate of ones, of each of her bins. "
    "With the sizes of her own bins the weights alone determine every count: the total is the root "
    "of an equation that rises, and she has no need to be told it."
)
_COUNTS = (
    "Exact: the share of bins whose count of ones is certain. Right: whose likeliest count is "
    "right. Totals: how many numbers of ones over all rows are still possible."
)
_LABELS = (
    "From the counts of all columns together Alice fits the logistic regression of the labels on "
    "her bins, without a label (bin-system): AUC and accuracy of its guesses at the rows. "
    "Certain: rows whose label the counts prove. Shuffled: labels shuffled before they were "
    "counted, which her columns say nothing of; what is told there is told by the counts alone."
)
_OURS = (
    "In taciturn woe the labels reach Alice under Bob's key, and nothing that he decrypted comes "
    "back: these attacks have no input there, and an AUC of 50 % by construction."
)
_BOB = (
    "What the counts of taciturn woe tell Bob of a row's bin, by its label: the share of rows "
    "whose bin he guesses right by the bins' sizes, and by the label too; what the label says of "
    "the bin, in bits a row; rows whose bin is settled, because all rows of that label are in one."
)


def woe_audit_blocks(audit: WoeAudit) -> list[b.Block]:
    """The audit for a terminal of 100 columns."""
    return [
        b.Paragraph(_audit_subject(audit), "strong"),
        b.Paragraph(audit.verdict, "warning"),
        b.Heading("Counts from rounded statistics"),
        _roundings(audit.roundings),
        b.Paragraph(_COUNTS, "muted"),
        b.Heading(f"Labels from counts, of weights in {audit.digits} decimals"),
        _fineness(audit.fineness),
        b.Paragraph(_LABELS, "muted"),
        b.Heading("What taciturn woe tells"),
        b.Paragraph(_alike(audit)),
        _bob(audit.bob[:MOST_COLUMNS]),
        b.Paragraph(_BOB, "muted"),
        *(b.Paragraph(note, "muted") for note in audit.notes),
    ]


def woe_audit_page(audit: WoeAudit) -> b.Page:
    """The page of ``taciturn audit --woe``."""
    messages = b.table(
        ("message", "count", "bytes", "encrypted", "what Alice can do with it"),
        [
            (one.message, f"{one.count:,}", f"{one.bytes:,}", _yes(one.encrypted), one.allows)
            for one in audit.messages
        ],
        words=(0, 3, 4),
        label="What Alice receives",
    )
    attacks = b.table(
        ("cut", "labels", "attack", "accuracy", "95 % interval", "AUC", "95 % interval"),
        [
            (one.cut, words, *_attack(score))
            for one in audit.fineness
            for words, scores in (("true", one.attacks), ("shuffled", one.shuffled))
            for score in scores
        ],
        words=(0, 1, 2, 4, 6),
        label="All attacks",
        grouped=True,
    )
    command = b.Command(audit.command) if audit.command else b.Paragraph("Called from Python.")
    return b.Page(
        window=f"Weight of evidence on {audit.dataset} – Taciturn audit",
        title="What weight of evidence tells",
        subject=_audit_subject(audit),
        blocks=(
            b.Section(
                "The usual way",
                "usual",
                (
                    b.Paragraph(audit.verdict, "warning"),
                    b.Paragraph(_USUAL),
                    _roundings(audit.roundings),
                    b.Paragraph(_COUNTS, "muted"),
                ),
                "Counts",
            ),
            b.Section(
                "Labels from the counts",
                "labels",
                (
                    _fineness(audit.fineness),
                    b.Paragraph(_LABELS, "muted"),
                    b.Details("Every attack with its intervals", (attacks,)),
                ),
                "Labels",
            ),
            b.Section(
                "What taciturn woe tells Alice",
                "alice",
                (*_ours(audit), b.Paragraph(_alike(audit)), messages),
                "Alice",
            ),
            b.Section(
                "What it tells Bob",
                "bob",
                (_bob(audit.bob), b.Paragraph(_BOB, "muted")),
                "Bob",
            ),
            b.Section("Command", "command", (command,)),
        ),
        footer=footer(audit.version, audit.audited),
    )


def _audit_subject(audit: WoeAudit) -> str:
    seed = "" if audit.seed is None else f" · seed {audit.seed}"
    return (
        f"{audit.dataset} · {audit.rows:,} training rows, {share(audit.ones / audit.rows)} ones · "
        f"{audit.columns} columns of Alice's{seed}"
    )


def _roundings(roundings: Sequence[WoeRounding]) -> b.Table:
    rows = [
        (
            "weight of evidence" if one.statistic == "woe" else "rate of ones",
            "all" if one.digits is None else str(one.digits),
            f"{one.totals:,}",
            share(one.exact),
            share(one.right),
            f"{one.off:,}",
        )
        for one in roundings
    ]
    headings = ("handed over", "decimals", "totals", "exact", "right", "largest error")
    return b.table(headings, rows, grouped=True, label="Counts")


def _fineness(cuts: Sequence[WoeFineness]) -> b.Table:
    rows = [
        (
            one.cut,
            f"{one.bins:,}",
            f"{one.smallest:,}",
            share(one.best.accuracy),
            share(one.best.auc),
            share(one.best.decided),
            share(one.shuffled[-1].auc),
            share(one.shuffled[-1].decided),
        )
        for one in cuts
    ]
    headings = ("cut", "bins", "least", "right", "AUC", "certain", "shuffled AUC", "certain")
    return b.table(headings, rows, label="Labels")


def _attack(score: AttackScore) -> tuple[b.Words, ...]:
    return (
        score.name,
        share(score.accuracy),
        interval(score.accuracy_low, score.accuracy_high),
        share(score.auc),
        interval(score.auc_low, score.auc_high),
    )


def _ours(audit: WoeAudit) -> Iterable[b.Block]:
    if any(one.encrypted for one in audit.messages):
        yield b.Paragraph(_OURS)


def _alike(audit: WoeAudit) -> str:
    encrypted = sum(one.bytes for one in audit.messages if one.encrypted)
    if not encrypted:
        return (
            "With the scheme clear nothing is encrypted, and every label reaches Alice as it is: "
            "it is for simulations of the figures above. Use bfv to see what she receives."
        )
    if not audit.alike:
        return (
            "Alice's messages differ for shuffled labels in more than ciphertexts: a fault, which "
            "must be reported."
        )
    return (
        f"Alice receives {data_size(encrypted)} under Bob's key; with the labels shuffled every "
        "other byte is the same. Nothing that depends on a label reaches her in clear."
    )


def _bob(columns: Sequence[BinsTold]) -> b.Table:
    rows = [
        (
            one.column,
            str(one.bins),
            share(one.prior),
            share(one.posterior),
            figure(one.bits),
            f"{one.located:,}" if one.located else NONE,
        )
        for one in columns
    ]
    headings = ("column", "bins", "by size", "by label too", "bits a row", "settled rows")
    return b.table(headings, rows, label="What Bob learns")


def _yes(value: bool) -> str:
    return "yes" if value else "no"
