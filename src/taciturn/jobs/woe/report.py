"""Weight of evidence as blocks: the columns, their bins, and what each side learns of the other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from taciturn.errors import counted
from taciturn.jobs.woe.result import WoeBin, WoeColumn, WoeResult
from taciturn.report import blocks as b
from taciturn.report.words import data_size, duration, epsilon, figure, footer, share
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
