"""Alice's program of weight of evidence: only Bob learns the label counts of her bins.

::

    Alice                                            Bob
      Hello (woe, rows, how many bins)         <->   Hello
      the joint seed, of the key's uniform half
                                                <-   KeyOffer
      for each column:
      BinnedColumn      names or none, sizes    ->
      for each part of the rows:
                                                <-   SealedLabels        <y>
      BinSums           <T^T y>                 ->   ones of each bin

T has a column of 0 and 1 for each bin. Where the scheme has whole tables there is one BinSums,
after the last part. With Paillier there is one for each part, under masks that add up to zero: Bob
gets the sum over all parts and of no part its own.

**Guarantee.** All that she receives is under Bob's key. What an honest Bob decrypts are the counts,
and nothing else of T: the answer is flooded, or re-randomised, as the answers of ``sealed`` are.

**Assumes.** IND-CPA, for the first. For the second that Bob's key and labels are made as
prescribed: numbers other than 0 and 1 in their place would read more (``docs/threat_model.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.base import DEFAULT_TABLE_MEMORY, PublicKey, TableSize
from taciturn.data.ids import RowIds
from taciturn.errors import ConfigError, RemoteProtocolError
from taciturn.protocol.encoded_table import EncodedTable
from taciturn.protocol.handshake import shake_hands
from taciturn.protocol.joint_seed import agree_as_alice, key_seed
from taciturn.protocol.messages import Hello, KeyOffer
from taciturn.protocol.steps import Program, emit, receive, require_turn, send
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint
from taciturn.version import PROTOCOL_VERSION
from taciturn_risk.woe.bins import Bins
from taciturn_risk.woe.messages import BinnedColumn, BinSums, SealedLabels
from taciturn_risk.woe.terms import (
    MOST_BINS,
    MOST_COLUMN_BINS,
    MOST_COLUMNS,
    BinsDue,
    RowsCounted,
    SizedColumn,
    WoeTerms,
    one_hot,
)


@dataclass(frozen=True, slots=True, repr=False)
class FeatureInputs:
    """Alice's inputs.

    ``columns`` are cut into bins. ``names`` says whether Bob learns what columns and bins are
    called, and their order. ``memory`` is in bytes, for her table in the scheme's encoding.
    """

    ids: RowIds
    columns: tuple[Bins, ...]
    terms: WoeTerms
    entropy: Entropy
    names: bool = False
    memory: int = field(default=DEFAULT_TABLE_MEMORY)

    @property
    def size(self) -> TableSize:
        """Size of the table of all bins."""
        return TableSize(len(self.ids), sum(len(column.labels) for column in self.columns))


@dataclass(frozen=True, slots=True, repr=False)
class DisclosedColumn:
    """A column as Bob sees it, with Alice's own ``name`` and ``labels``."""

    bins: Bins
    name: str
    labels: tuple[str, ...]

    @property
    def sized(self) -> SizedColumn:
        """Column as Bob learns it in clear."""
        return SizedColumn.from_bins(self.bins)


def answer(inputs: FeatureInputs) -> Program[tuple[DisclosedColumn, ...]]:
    """Sum Bob's encrypted labels in each bin; returns the columns as sent, with her own names."""
    _require_some(inputs.columns, inputs.size)
    told_columns = tuple(
        DisclosedColumn(column, column.name, column.labels) for column in inputs.columns
    )
    if not inputs.names:
        told_columns = hidden(inputs.columns, inputs.entropy.fork("order of bins"))
    columns = [column.bins for column in told_columns]
    size, terms = inputs.size, inputs.terms
    yield from shake_hands(
        Hello(
            version=PROTOCOL_VERSION,
            role="alice",
            terms=terms.canonical(),
            rows=size.rows,
            ids_digest=inputs.ids.digest(),
            magnitude_bits=0,
            columns=size.columns,
        )
    )
    seed = yield from agree_as_alice(inputs.entropy)
    ring = terms.ring(size.rows)
    offered = (yield from receive(KeyOffer)).public_key
    key = terms.scheme.read_public(offered, terms.key_bits, ring, key_seed(seed, "bob"))
    if terms.scheme.whole_tables:
        # Before anything of hers leaves: a table that would not be hidden is refused.
        terms.scheme.check_tables(ring, size, 1)
    yield from emit(BinsDue(inputs.ids, len(columns), size.columns))
    for number, column in enumerate(told_columns):
        yield from send(BinnedColumn(number, len(columns), column.sized.to_text()))
    entropy = inputs.entropy.fork("bin sums")
    if terms.scheme.whole_tables:
        yield from _answer_table(key, one_hot(columns), terms, entropy, inputs.memory)
    else:
        yield from _answer_parts(key, one_hot(columns), terms, entropy)
    return told_columns


def hidden(columns: Sequence[Bins], entropy: Entropy) -> tuple[DisclosedColumn, ...]:
    """Columns and bins under numbers, in random order."""
    places = entropy.fork("columns").permutation(len(columns))
    return tuple(
        _renumbered(columns[place], number, entropy.fork(f"bins of {number}"))
        for number, place in enumerate(places.tolist(), 1)
    )


def _renumbered(column: Bins, number: int, entropy: Entropy) -> DisclosedColumn:
    count = len(column.labels)
    order = entropy.permutation(count)
    numbers = tuple(map(str, range(1, count + 1)))
    codes = order[column.codes]
    bins = Bins(f"alice.{number}", numbers, codes, ordered=False, merged=column.merged)
    labels = tuple(column.labels[place] for place in np.argsort(order).tolist())
    return DisclosedColumn(bins, column.name, labels)


def _require_some(columns: Sequence[Bins], size: TableSize) -> None:
    if len(columns) > MOST_COLUMNS or size.columns > MOST_BINS:
        raise ConfigError(
            f"{len(columns):,} columns with {size.columns:,} bins are more than the "
            f"{MOST_COLUMNS:,} and {MOST_BINS:,} that can be asked for at once",
            setting="bins",
            hint="use fewer bins, or keep fewer columns",
        )
    longest = max(columns, key=lambda column: len(column.labels))
    if len(longest.labels) > MOST_COLUMN_BINS:
        raise ConfigError(
            f"column {longest.name} has {len(longest.labels):,} bins, and {MOST_COLUMN_BINS:,} are "
            "the most",
            setting="bins",
            hint=Hint("use fewer {bins}, or a larger {min_rows}"),
        )


def _answer_table(
    key: PublicKey, whole: IntArray, terms: WoeTerms, entropy: Entropy, memory: int
) -> Program[None]:
    prepared = EncodedTable(whole, memory)
    try:
        table = prepared.under(key)
        total = table.sum_over_rows(np.zeros(whole.shape[1], dtype=np.int64), entropy)
        for number, part in enumerate(terms.parts(table.size)):
            sent = yield from _labels(number, part)
            total.add(sent.labels, part)
            yield from emit(RowsCounted(part.stop, len(whole)))
        yield from send(BinSums(0, total.result()))
    finally:
        prepared.close()


def _answer_parts(
    key: PublicKey, whole: IntArray, terms: WoeTerms, entropy: Entropy
) -> Program[None]:
    rows, bins = whole.shape
    ring, parts = terms.ring(rows), terms.parts(TableSize(rows, bins))
    left = np.zeros(bins, dtype=np.int64)
    for number, part in enumerate(parts):
        part_entropy = entropy.fork(f"part {number}")
        # Masks that add up to zero, so that no part's counts are revealed.
        last = number == len(parts) - 1
        mask = ring.centred(-left) if last else ring.draw(bins, part_entropy.fork("masks"))
        left = ring.centred(left + mask)
        matrix = key.prepare(np.ascontiguousarray(whole[part].T, dtype=np.int64))
        given = key.mask_of(mask, part_entropy.fork("multiples"))
        key.stock(matrix, given, part_entropy)
        sent = yield from _labels(number, part)
        yield from send(
            BinSums(number, key.masked_product(matrix, sent.labels, given, part_entropy))
        )
        yield from emit(RowsCounted(part.stop, rows))


def _labels(number: int, block: slice) -> Program[SealedLabels]:
    sent = yield from receive(SealedLabels)
    require_turn("SealedLabels", sent.part, number)
    rows = block.stop - block.start
    if sent.labels.length != rows:
        raise RemoteProtocolError(
            f"the peer's labels have {sent.labels.length} entries for {rows} rows"
        )
    return sent
