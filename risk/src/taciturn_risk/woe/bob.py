"""Bob's program of weight of evidence: he sends his labels encrypted only.

The chart of messages is in Alice's file. Every answer of the right structure is taken, whatever
is inside: what he does depends on the sizes alone, and never on a label.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import EVERY_ROW, IntArray
from taciturn.crypto.base import SecretKey, TableSize
from taciturn.data.label_table import LabelTable
from taciturn.errors import RemoteProtocolError
from taciturn.privacy.events import CiphertextsOnly
from taciturn.privacy.ledger import Ledger
from taciturn.protocol.handshake import shake_hands
from taciturn.protocol.joint_seed import agree_as_bob, key_seed
from taciturn.protocol.keyrings import OwnKeys
from taciturn.protocol.messages import Hello
from taciturn.protocol.steps import Program, receive, require_entries, require_turn, send
from taciturn.rng import Entropy
from taciturn.version import PROTOCOL_VERSION
from taciturn_risk.woe.messages import BinnedColumn, BinSums, SealedLabels
from taciturn_risk.woe.terms import (
    MOST_BINS,
    MOST_COLUMNS,
    CountedColumn,
    Counts,
    SizedColumn,
    WoeTerms,
)


@dataclass(frozen=True, slots=True, repr=False)
class LabelInputs:
    """Bob's inputs; ``ledger`` is charged before the labels are sent."""

    labels: LabelTable
    terms: WoeTerms
    ledger: Ledger = field(repr=False)
    entropy: Entropy


def ask(inputs: LabelInputs) -> Program[Counts]:
    """Number of Bob's labels that are 1 in each bin of Alice's columns."""
    labels, terms = inputs.labels, inputs.terms
    hello = yield from shake_hands(
        Hello(
            version=PROTOCOL_VERSION,
            role="bob",
            terms=terms.canonical(),
            rows=labels.rows,
            ids_digest=labels.ids.digest(),
            magnitude_bits=0,
            columns=0,
        )
    )
    if not 2 <= hello.columns <= MOST_BINS:
        raise RemoteProtocolError(f"the peer claims {hello.columns} bins")
    seed = yield from agree_as_bob(inputs.entropy)
    key = yield from _offered(terms, labels.rows, seed, inputs.entropy)
    columns = yield from _columns(labels.rows, hello.columns)
    size = TableSize(labels.rows, hello.columns)
    # What leaves next depends on labels, and is under his key alone.
    inputs.ledger.charge(CiphertextsOnly(), EVERY_ROW)
    entropy = inputs.entropy.fork("labels")
    values = labels.values.astype(np.int64)
    if terms.scheme.whole_tables:
        ones = yield from _ask_table(key, values, size, terms, entropy)
    else:
        ones = yield from _ask_parts(key, values, size, terms, entropy)
    return Counts(_split(columns, ones), int(values.sum()))


def _offered(terms: WoeTerms, rows: int, seed: bytes, entropy: Entropy) -> Program[SecretKey]:
    keys = OwnKeys(terms.scheme, terms.key_bits, terms.ring(rows), key_seed(seed, "bob"))
    return (yield from keys.offer(entropy))


def _columns(rows: int, bins: int) -> Program[list[SizedColumn]]:
    columns: list[SizedColumn] = []
    count = 1
    while len(columns) < count:
        message = yield from receive(BinnedColumn)
        require_turn("BinnedColumn", message.number, len(columns))
        count = message.columns if not columns else count
        if message.columns != count or not 1 <= count <= MOST_COLUMNS:
            raise RemoteProtocolError(f"the peer claims {message.columns} columns")
        columns.append(SizedColumn.from_text(message.text, rows))
    named = sum(len(column.labels) for column in columns)
    if named != bins:
        raise RemoteProtocolError(
            f"the peer's columns have {named} bins, not the {bins} that it announced"
        )
    return columns


def _ask_table(
    key: SecretKey, values: IntArray, size: TableSize, terms: WoeTerms, entropy: Entropy
) -> Program[IntArray]:
    for number, part in enumerate(terms.parts(size)):
        # Sent one by one, so that Alice works on one while he makes the next.
        vector = key.encrypt_rows(values[part], size, entropy, part)
        yield from send(SealedLabels(number, vector))
    message = yield from receive(BinSums)
    require_turn("BinSums", message.part, 0)
    require_entries("answer", message.answer.length, size.columns)
    return key.decrypt_columns(message.answer, size)


def _ask_parts(
    key: SecretKey, values: IntArray, size: TableSize, terms: WoeTerms, entropy: Entropy
) -> Program[IntArray]:
    ring = terms.ring(size.rows)
    total = np.zeros(size.columns, dtype=np.int64)
    for number, part in enumerate(terms.parts(size)):
        rows = part.stop - part.start
        vector = key.encrypt(values[part], size.columns, entropy.fork(f"part {number}"))
        yield from send(SealedLabels(number, vector))
        message = yield from receive(BinSums)
        require_turn("BinSums", message.part, number)
        require_entries("answer", message.answer.length, size.columns)
        # Under masks of Alice's, which add up to zero over all parts.
        total += key.decrypt_shares(message.answer, rows)
    return ring.centred(total)


def _split(columns: list[SizedColumn], ones: IntArray) -> tuple[CountedColumn, ...]:
    ends = np.cumsum([len(column.labels) for column in columns])
    parts = np.split(ones, ends[:-1])
    return tuple(CountedColumn(*pair) for pair in zip(columns, parts, strict=True))
