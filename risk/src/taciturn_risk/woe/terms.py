"""Terms that both sides of a weight of evidence share.

The counts are sums of labels modulo ``t = 2^k``, with k the least at which every count of these
rows has a value of its own. A larger t would serve an honest Bob no better, and one who encrypts
other numbers than labels could read more with it: from one sum at most k bits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.base import Scheme, TableSize, Wrapping
from taciturn.data.ids import RowIds
from taciturn.errors import ConfigError, RemoteProtocolError
from taciturn.files import canonical_json
from taciturn.protocol.events import Advance, Event
from taciturn.protocol.prediction import SEALED_CHUNK_ROWS, chunks
from taciturn_risk.woe.bins import Bins

PURPOSE = "woe"
MOST_COLUMNS = 1 << 12
MOST_BINS = 1 << 14
# Of one column: what is said of it goes in one text.
MOST_COLUMN_BINS = 1000
_MOST_WORDS = 200
# A ring has room for three bits at least.
_LEAST_BITS = 3


@dataclass(frozen=True, slots=True)
class BinsDue(Event):
    """Both sides match; Alice's bins of these rows are sent next."""

    ids: RowIds
    columns: int
    bins: int


@dataclass(frozen=True, slots=True)
class RowsCounted(Advance):
    """Alice has added up ``done`` of ``total`` rows' labels in her bins."""

    work: ClassVar[str] = "counting"


@dataclass(frozen=True, slots=True)
class WoeTerms:
    """The terms of one conversation.

    ``agreed`` is what else the two sides have agreed on, as JSON; nothing in a simulation.
    """

    scheme: Scheme
    key_bits: int
    agreed: str = field(default="{}", repr=False)

    @classmethod
    def for_scheme(cls, scheme: Scheme, key_bits: int | None, agreed: str = "{}") -> WoeTerms:
        """The terms with the scheme's usual key size, where none is given."""
        bits = scheme.key_bits[0] if key_bits is None else key_bits
        if bits not in scheme.key_bits:
            offered = " or ".join(map(str, scheme.key_bits))
            raise ConfigError(
                f"{scheme.name} has no keys of {bits} bits",
                setting="key_bits",
                hint=f"use {offered}",
            )
        return cls(scheme, bits, agreed)

    def canonical(self) -> str:
        """Canonical JSON that the two sides compare key by key."""
        terms = {"purpose": PURPOSE, "scheme": self.scheme.name, "key_bits": self.key_bits}
        return canonical_json({**json.loads(self.agreed), **terms})

    def ring(self, rows: int) -> Wrapping:
        """The smallest ring in which every sum of ``rows`` labels has its own value."""
        bits = max(_LEAST_BITS, rows.bit_length() + 1)
        terms = rows if self.scheme.whole_tables else min(rows, SEALED_CHUNK_ROWS)
        return Wrapping.with_modulus(bits, 1, terms)

    def parts(self, size: TableSize) -> list[slice]:
        """The parts of the rows whose labels travel together."""
        if self.scheme.whole_tables:
            return self.scheme.row_parts(size)
        return [rows for _, rows in chunks(size.rows, SEALED_CHUNK_ROWS)]


@dataclass(frozen=True, slots=True)
class SizedColumn:
    """Alice's clear description of a column: its name, its bins' names and their sizes.

    ``ordered``: whether the bins stand in the order of their values.
    """

    name: str
    labels: tuple[str, ...]
    rows: IntArray = field(repr=False)
    ordered: bool

    @classmethod
    def from_bins(cls, bins: Bins) -> SizedColumn:
        """A column that she cut."""
        return cls(_short(bins.name), tuple(map(_short, bins.labels)), bins.rows, bins.ordered)

    def to_text(self) -> str:
        """The column for the wire."""
        return canonical_json(
            {
                "bins": [[label, size] for label, size in self._pairs()],
                "name": self.name,
                "ordered": self.ordered,
            }
        )

    def _pairs(self) -> Iterator[tuple[str, int]]:
        return zip(self.labels, self.rows.tolist(), strict=True)

    @classmethod
    def from_text(cls, text: str, rows: int) -> SizedColumn:
        """A column as the peer described it."""
        try:
            record = json.loads(text)
            pairs = [(label, size) for label, size in record["bins"]]
            labels = tuple(label for label, _ in pairs)
            sizes = [size for _, size in pairs]
            name, ordered = record["name"], record["ordered"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise RemoteProtocolError("the peer's description of a column is invalid") from None
        texts = all(isinstance(word, str) and len(word) <= _MOST_WORDS for word in (name, *labels))
        counts = all(type(size) is int and 0 < size <= rows for size in sizes)
        if not (texts and counts and isinstance(ordered, bool) and record.keys() == _KEYS):
            raise RemoteProtocolError("the peer's description of a column is invalid")
        if not 2 <= len(sizes) <= MOST_COLUMN_BINS or sum(sizes) != rows:
            raise RemoteProtocolError(
                f"the peer's column has {len(sizes)} bins of {sum(sizes):,} rows, and there are "
                f"{rows:,} rows"
            )
        return cls(name, labels, np.array(sizes, dtype=np.int64), ordered)


_KEYS = {"bins", "name", "ordered"}


@dataclass(frozen=True, slots=True)
class CountedColumn:
    """A column of Alice's with the rows of label 1 counted in each bin: Bob's alone."""

    column: SizedColumn
    ones: IntArray = field(repr=False)


@dataclass(frozen=True, slots=True)
class Counts:
    """Bob's result; ``total`` counts his labels that are 1."""

    columns: tuple[CountedColumn, ...]
    total: int = field(repr=False)

    def require_possible(self) -> None:
        """Require that the sums are possible counts of these labels, after the last message.

        An end on the way would tell Alice what she has no other way to know: whether sums that she
        altered were still possible ones.
        """
        for column in self.columns:
            inside = (column.ones >= 0) & (column.ones <= column.column.rows)
            if not inside.all() or int(column.ones.sum()) != self.total:
                raise RemoteProtocolError(
                    f"the peer's sums of column {column.column.name} are not counts of these labels"
                )


def one_hot(columns: Sequence[Bins]) -> IntArray:
    """A column of 0 and 1 for each bin of each column.

    >>> age = Bins("age", ("young", "old"), np.array([1, 0, 1]), ordered=True)
    >>> one_hot([age]).tolist()
    [[0, 1], [1, 0], [0, 1]]
    """
    starts = np.cumsum([0, *(len(column.labels) for column in columns)])
    rows = np.arange(len(columns[0].codes))
    table = np.zeros((len(rows), int(starts[-1])), dtype=np.int32)
    for start, column in zip(starts, columns, strict=False):
        table[rows, start + column.codes] = 1
    return table  # type: ignore[return-value]  # products take both widths


def _short(words: str) -> str:
    return words if len(words) <= _MOST_WORDS else f"{words[: _MOST_WORDS - 1]}…"
