"""Weight of evidence: of each of Alice's columns, what it says of Bob's labels, and to whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from taciturn.arrays import IntArray
from taciturn.jobs.woe.weights import (
    information_value,
    mutual_bits,
    weights_of_evidence,
)
from taciturn.privacy.sealed import ASSUMPTION
from taciturn.results.serialise import OMITTED, Result
from taciturn.results.subject import Subject

if TYPE_CHECKING:
    from taciturn.jobs.woe.terms import WoeTerms
    from taciturn.report.blocks import Block, Page
    from taciturn.results.parts import Part

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
    """One of Alice's columns.

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
        own: tuple[str, Sequence[str]] | None,
        *,
        ordered: bool,
    ) -> WoeColumn:
        """A column as Alice knows it, without counts; ``name`` and ``labels`` are as Bob sees them.

        ``rows`` are the sizes of the bins, ``own`` her names of the column and of each bin, where
        she hides them.
        """
        words = [None] * len(labels) if own is None else list(own[1])
        parts = zip(labels, rows.tolist(), words, strict=True)
        bins = tuple(WoeBin(label, size, own=word) for label, size, word in parts)
        return cls(name=name, own=None if own is None else own[0], ordered=ordered, bins=bins)

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
    """How many tables of her columns a partner was given, this one included, of how many."""

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
        """The columns, the most telling first; in their order where Alice says it."""
        return tuple(sorted(self.columns, key=lambda column: -(column.iv or 0.0)))

    def blocks(self) -> list[Block]:
        """The result as a terminal shows it."""
        from taciturn.jobs.woe.report import woe_blocks

        return woe_blocks(self)

    def page(self, made: str = "") -> Page:
        """The result as a page."""
        from taciturn.jobs.woe.report import woe_page

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
    """The numbers that Bob got: the last of a column's counts follows from his total."""
    return sum(len(column.bins) - 1 for column in columns)


def bob_learns(columns: Sequence[WoeColumn], *, names_hidden: bool) -> str:
    """What Bob is told, in words."""
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
