"""``audit --woe`` as blocks and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from taciturn.report import blocks as b
from taciturn.report.formatting import (
    NONE,
    data_size,
    figure,
    footer,
    interval,
    share,
)
from taciturn_audit.results.audit import AttackScore
from taciturn_audit.results.woe_audit import BinsTold, WoeAudit, WoeFineness, WoeRounding
from taciturn_risk.woe.result import MOST_COLUMNS

# --- the audit --------------------------------------------------------------------------------

_USUAL = (
    "The usual way hands Alice the weight of evidence, or the rate of ones, of each of her bins. "
    "With the sizes of her own bins the weights alone determine every count: the total is the root "
    "of a monotone equation, and nobody has to tell it to her."
)

_COUNTS = (
    "Exact: the share of bins whose count of ones is certain. Right: whose likeliest count is "
    "right. Totals: how many numbers of ones over all rows are still possible."
)

_LABELS = (
    "From the counts of all columns together Alice fits the logistic regression of the labels on "
    "her bins, without a label (bin-system): AUC and accuracy of its guesses at the rows. "
    "Certain: rows whose label the counts prove. Shuffled: labels shuffled before they were "
    "counted, which her columns say nothing of; what is recovered there leaks from counts alone."
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
            (
                message.message,
                f"{message.count:,}",
                f"{message.bytes:,}",
                "yes" if message.encrypted else "no",
                message.allows,
            )
            for message in audit.messages
        ],
        words=(0, 3, 4),
        label="What Alice receives",
    )
    attacks = b.table(
        ("cut", "labels", "attack", "accuracy", "95 % interval", "AUC", "95 % interval"),
        [
            (row.cut, words, *_attack(score))
            for row in audit.fineness
            for words, scores in (("true", row.attacks), ("shuffled", row.shuffled))
            for score in scores
        ],
        words=(0, 1, 2, 4, 6),
        label="All attacks",
        grouped=True,
    )
    command = b.Command(audit.command) if audit.command else b.Paragraph("Called from Python.")
    ours = [b.Paragraph(_OURS)] if any(message.encrypted for message in audit.messages) else []
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
                (*ours, b.Paragraph(_alike(audit)), messages),
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
            "weight of evidence" if rounding.statistic == "woe" else "rate of ones",
            "all" if rounding.digits is None else str(rounding.digits),
            f"{rounding.totals:,}",
            share(rounding.exact),
            share(rounding.right),
            f"{rounding.off:,}",
        )
        for rounding in roundings
    ]
    headings = ("handed over", "decimals", "totals", "exact", "right", "largest error")
    return b.table(headings, rows, grouped=True, label="Counts")


def _fineness(cuts: Sequence[WoeFineness]) -> b.Table:
    rows = [
        (
            cut.cut,
            f"{cut.bins:,}",
            f"{cut.smallest:,}",
            share(cut.best.accuracy),
            share(cut.best.auc),
            share(cut.best.decided),
            share(cut.shuffled[-1].auc),
            share(cut.shuffled[-1].decided),
        )
        for cut in cuts
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


def _alike(audit: WoeAudit) -> str:
    encrypted = sum(message.bytes for message in audit.messages if message.encrypted)
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
            column.column,
            str(column.bins),
            share(column.prior),
            share(column.posterior),
            figure(column.bits),
            f"{column.located:,}" if column.located else NONE,
        )
        for column in columns
    ]
    headings = ("column", "bins", "by size", "by label too", "bits a row", "settled rows")
    return b.table(headings, rows, label="What Bob learns")
