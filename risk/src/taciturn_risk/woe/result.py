"""Result of weight of evidence: each of Alice's columns, and who learns it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from taciturn.arrays import IntArray
from taciturn.errors import counted
from taciturn.privacy.sealed import ASSUMPTION
from taciturn.report import blocks as b
from taciturn.report.formatting import data_size, duration, epsilon, figure, footer, share
from taciturn.results.serialise import OMITTED, Result, Subject
from taciturn.version import __version__
from taciturn_risk.woe.weights import (
    information_value,
    mutual_bits,
    weights_of_evidence,
)

if TYPE_CHECKING:
    from taciturn.report.blocks import Block, Page
    from taciturn.results.figures import Part
    from taciturn_risk.woe.terms import WoeTerms

ALICE_LEARNS = (
    "that it was asked for, for how many rows, and when: the labels reach her under Bob's key only"
)


@dataclass(frozen=True, slots=True)
class WoeBin:
    """One bin: its size, and at Bob how many ones it has and its weight of evidence.

    ``own`` is what Alice calls it, in her own record, where Bob sees a number.
    """

    label: str
    rows: int
    ones: int | None = field(default=None, metadata=OMITTED)
    woe: float | None = field(default=None, metadata=OMITTED)
    own: str | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class WoeColumn:
    """Weight of evidence of one of Alice's columns.

    ``iv`` is its information value, ``bits`` what Bob learns of its bin in a row, by the row's
    label; both are his. ``ordered``: the bins stand in the order of their values. ``own`` is
    Alice's name of it, in her own record, where Bob sees a number.
    """

    name: str
    own: str | None = field(default=None, metadata=OMITTED)
    iv: float | None = field(default=None, metadata=OMITTED)
    bits: float | None = field(default=None, metadata=OMITTED)
    ordered: bool
    bins: tuple[WoeBin, ...]

    @classmethod
    def sized(
        cls,
        name: str,
        labels: Sequence[str],
        rows: IntArray,
        alice_names: tuple[str, Sequence[str]] | None,
        *,
        ordered: bool,
    ) -> WoeColumn:
        """A column as Alice knows it, without counts; ``name`` and ``labels`` are as Bob sees them.

        ``rows`` are the sizes of the bins, ``alice_names`` her names of the column and
        of each bin, where she hides them.
        """
        words = [None] * len(labels) if alice_names is None else list(alice_names[1])
        parts = zip(labels, rows.tolist(), words, strict=True)
        bins = tuple(WoeBin(label, size, own=word) for label, size, word in parts)
        return cls(
            name=name,
            own=None if alice_names is None else alice_names[0],
            ordered=ordered,
            bins=bins,
        )

    @classmethod
    def counted(
        cls,
        name: str,
        labels: Sequence[str],
        rows: IntArray,
        ones: IntArray,
        smoothing: float,
        *,
        ordered: bool,
    ) -> WoeColumn:
        """A column with Bob's labels counted."""
        weights = weights_of_evidence(ones, rows, smoothing)
        parts = zip(labels, rows.tolist(), ones.tolist(), weights.tolist(), strict=True)
        return cls(
            name=name,
            iv=information_value(ones, rows, smoothing),
            bits=mutual_bits(ones, rows),
            ordered=ordered,
            bins=tuple(WoeBin(*part) for part in parts),
        )


@dataclass(frozen=True, slots=True)
class WoeTables:
    """Tables of Alice's columns that a partner was given, this one included, and their limit."""

    given: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WoeResult(Result):
    """Weight of evidence and information value of Alice's columns, for Bob.

    ``role`` is the side that says it, or ``simulation``. ``counts_told`` is how many numbers that
    depend on both sides' columns Bob got: one less than its bins for each column.
    ``label_epsilon`` is what the labels paid. ``tables`` is Alice's count.
    """

    kind: ClassVar[str] = "woe"
    known_by: ClassVar[str] = "names_hidden"

    role: str
    peer: str | None = field(default=None, metadata=OMITTED)
    dataset: str | None = field(default=None, metadata=OMITTED)
    rows: int
    columns: tuple[WoeColumn, ...]
    names_hidden: bool
    smoothing: float | None = field(default=None, metadata=OMITTED)
    min_rows: int | None = field(default=None, metadata=OMITTED)
    scheme: str
    key_bits: int
    counts_told: int
    label_epsilon: float
    assumption: str
    alice_learns: str
    bob_learns: str
    tables: WoeTables | None = field(default=None, metadata=OMITTED)
    seed: int | None = field(default=None, metadata=OMITTED)
    seconds: float
    bytes_to_alice: int
    bytes_to_bob: int
    notes: tuple[str, ...] = ()

    @property
    def ranked(self) -> tuple[WoeColumn, ...]:
        """Columns by decreasing information value; in Alice's order where she sorted them."""
        return tuple(sorted(self.columns, key=lambda column: -(column.iv or 0.0)))

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        shown = self.ranked[:MOST_COLUMNS]
        left = len(self.columns) - len(shown)
        more = f"The bins of {counted(left, 'more column')} are in --json and in the page of --out."
        return [
            b.Paragraph(_subject(self), "strong"),
            *_summary(self),
            _bins_table(shown, self),
            *([b.Paragraph(more, "muted")] if left else []),
            b.Facts(_facts(self)),
            *_reading(self),
        ]

    def page(self, made: str = "") -> Page:
        """The result as a page."""
        return woe_page(self, made or None)

    def subject(self) -> Subject:
        """The rows and Alice's columns."""
        return Subject(self.dataset, rows=self.rows, columns={"alice": len(self.columns)})

    def parts(self, bare: Part) -> tuple[Part, ...]:
        """One run, with the information value of each column."""
        from taciturn.results.figures import cost_values

        known = {column.name: column.iv for column in self.columns if column.iv is not None}
        best = max(known, key=known.__getitem__, default="")
        entry = replace(
            bare.entry,
            mechanism=None,
            solver=None,
            scheme=self.scheme,
            label_epsilon=self.label_epsilon,
            verdict=f"{best} tells most, IV {known[best]:.3f}" if known else "sums under Bob's key",
            bytes=float(self.bytes_to_alice + self.bytes_to_bob),
        )
        values = {f"model/information value, {name}": value for name, value in known.items()}
        values |= {"ledger/counts that Bob gets": float(self.counts_told)}
        values |= cost_values(self.seconds, None, self.bytes_to_alice, self.bytes_to_bob)
        return (replace(bare, entry=entry, values=values),)


def counts_told(columns: Sequence[WoeColumn]) -> int:
    """Number of counts that Bob received; a column's last count follows from his total."""
    return sum(len(column.bins) - 1 for column in columns)


def bob_learns(columns: Sequence[WoeColumn], *, names_hidden: bool) -> str:
    """Sentence about what Bob learns."""
    names = "numbers in place of names and edges" if names_hidden else "names and edges"
    return (
        f"of {len(columns):,} columns of Alice's the sizes of their bins, {names}, and "
        f"{counts_told(columns):,} counts of his labels in them; which row is in which bin only as "
        "far as its label tells"
    )


def woe_result(
    columns: tuple[WoeColumn, ...],
    terms: WoeTerms,
    *,
    names_hidden: bool,
    **facts: Any,  # noqa: ANN401 - the fields of a result that differ by side
) -> WoeResult:
    """A result with what follows from the columns and the terms."""
    return WoeResult(
        columns=columns,
        names_hidden=names_hidden,
        scheme=terms.scheme.name,
        key_bits=terms.key_bits,
        counts_told=counts_told(columns),
        assumption=ASSUMPTION,
        alice_learns=ALICE_LEARNS,
        bob_learns=bob_learns(columns, names_hidden=names_hidden),
        **facts,
    )


# More columns than this are not shown bin by bin in a terminal; the record and the page have all.
MOST_COLUMNS = 8
# What credit practice calls an information value.
_STRENGTH = ((0.02, "nothing"), (0.1, "weak"), (0.3, "medium"), (0.5, "strong"))
_READING = (
    "WOE is ln(share of all ones in the bin / share of all zeros in it), with {smoothing:g} added "
    "to both counts: above 0, label 1 is commoner there than over all rows. IV is the sum over "
    "bins of the difference of these shares times WOE."
)


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
    yield b.table(("column", "bins", "IV", "strength"), rows, words=(0, 3), label="Columns")


def _bins_table(columns: Sequence[WoeColumn], result: WoeResult) -> b.Table:
    lines = [
        (_name(column) if not number else "", *_cells(bin_))
        for column in columns
        for number, bin_ in enumerate(column.bins)
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


def _cells(bin_: WoeBin) -> tuple[b.Words, ...]:
    label = bin_.label if bin_.own is None else f"{bin_.label}: {bin_.own}"
    sized = (label, f"{bin_.rows:,}")
    if bin_.ones is None or bin_.woe is None:
        return sized
    return (*sized, f"{bin_.ones:,}", share(bin_.ones / bin_.rows), _value(bin_.woe))


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
