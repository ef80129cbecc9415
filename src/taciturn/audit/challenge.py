"""Trainings made to be told apart: in each, all labels are 1 or all are 0, as a coin says.

They are the canary of the ``distinguisher``. The programs and the encryption are those of the
training that is audited; the tables are small, with rows of Alice's, drawn anew for every coin, and
there is one pass. One Alice with all their columns stands for several who pool what they have.

**Guarantee.** The coins are fair and independent of each other, of the columns and of all
randomness of the two programs. So if what Alice receives does not depend on labels, guesses made
from it are right as often as heads come up, whatever they are made from, how busy the machine is,
and how the messages depend on each other.

**Assumes.** The clock is read in one process, where nothing lies between the parties: what a
network adds to times hides more than is seen here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import BoolArray, FloatArray
from taciturn.crypto.base import EncryptedVector, Scheme
from taciturn.data.ids import RowIds
from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.engine.pair import run_pair
from taciturn.privacy.ledger import Ledger
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.registry import TRAININGS as ALICE
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.registry import TRAININGS as BOB
from taciturn.protocol.codec import decode
from taciturn.protocol.messages import (
    Message,
    Phases,
    Role,
    SealedResidues,
    SealedWeights,
    Segments,
    SharedVector,
)
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn.view.alice_view import AliceView

TRAININGS = 180
_MOST_ROWS, _MOST_COLUMNS = 64, 64


@dataclass(frozen=True, slots=True)
class Heard:
    """Messages that Alice received in one training.

    ``kinds`` are message codes, ``lengths`` bytes. ``seconds`` is the time of each message after
    the frame before it. ``payload`` joins the bytes of the encrypted vectors.
    """

    kinds: tuple[int, ...]
    lengths: tuple[int, ...]
    seconds: tuple[float, ...]
    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Challenge:
    """Messages that Alice received in each training, and the coin of its labels: True for all 1."""

    heard: tuple[Heard, ...]
    coins: BoolArray = field(repr=False)
    rows: int
    columns: int
    scheme: str


def challenge(
    view: AliceView, scheme: Scheme, entropy: KeyedEntropy, trainings: int = TRAININGS
) -> Challenge:
    """Train on coins, with the agreement and the columns of a view.

    Its mechanism shares Alice's weights. ``scheme`` is the agreement's, or one to compare it with.
    """
    rows = min(view.features.rows, _MOST_ROWS)
    columns = min(len(view.features.columns), _MOST_COLUMNS)
    terms = Terms(view.agreement.model_copy(update=_changes(view, scheme, rows)), scheme)
    coins = entropy.fork("coins").integers(2, trainings) == 1
    heard = tuple(
        _train(view, terms, columns, coin, entropy.fork(f"training {number}"))
        for number, coin in enumerate(coins.tolist())
    )
    return Challenge(heard, coins, rows, columns, scheme.name)


def _changes(view: AliceView, scheme: Scheme, rows: int) -> dict[str, object]:
    agreed = view.agreement
    unused = ("over", "parties", "epsilon", "reveal", "reveal_bob", "reveal_epsilon")
    return {
        **dict.fromkeys((*unused, "reveal_delta")),
        # Flipped labels are trained in the conversation of the mechanism that they run over.
        "mechanism": agreed.mechanism if view.mechanism.shares_scores else "sealed",
        "scheme": scheme.name,
        "key_bits": agreed.key_bits if agreed.key_bits in scheme.key_bits else scheme.key_bits[0],
        "epochs": 1,
        "batch_size": rows,
        "l2": max(agreed.l2, 1.0 / rows),
        "evaluate": "end",
    }


def _train(view: AliceView, terms: Terms, columns: int, coin: bool, entropy: KeyedEntropy) -> Heard:
    rows = terms.agreement.batch_size
    ids = RowIds.numbered(rows)
    hers = FeatureTable(ids, view.features.columns[:columns], _drawn(view, columns, rows, entropy))
    his = FeatureTable(ids, *_bobs_columns(view.peer.columns, rows, entropy))
    labels = LabelTable.of(np.full(rows, coin, dtype=np.int8), ids=ids)
    method, stopwatch = terms.mechanism, _Stopwatch()
    alice, bob = entropy.fork("alice"), entropy.fork("bob")
    ledger = Ledger(rows, method.assumption)
    run_pair(
        ALICE[terms.conversation](AliceInputs(hers, terms, alice)),
        BOB[terms.conversation](BobInputs(his, labels, terms, method, ledger, bob)),
        tap=stopwatch,
    )
    return stopwatch.heard()


def _drawn(view: AliceView, columns: int, rows: int, entropy: KeyedEntropy) -> FloatArray:
    numbers = entropy.fork("rows").integers(view.features.rows, rows)
    return view.features.values[:, :columns].take(numbers.astype(np.int64), axis=0)


def _bobs_columns(
    count: int, rows: int, entropy: KeyedEntropy
) -> tuple[tuple[str, ...], FloatArray]:
    """Columns in place of Bob's, uniform in ±1: Alice has none of his values."""
    words = entropy.fork("bob's columns").words(rows * count)
    values = words.astype(np.float64) / 2.0**63 - 1.0
    return tuple(f"b{number}" for number in range(count)), values.reshape(rows, count)


class _Stopwatch:
    def __init__(self) -> None:
        self._frames: list[tuple[bytes, float]] = []
        self._last = time.perf_counter()

    def __call__(self, sender: Role, frame: bytes) -> None:
        now = time.perf_counter()
        if sender == "bob":
            self._frames.append((frame, now - self._last))
        self._last = now

    def heard(self) -> Heard:
        messages = [decode(frame) for frame, _ in self._frames]
        vectors = [vector.data for message in messages for vector in encrypted(message)]
        return Heard(
            kinds=tuple(message.code for message in messages),
            lengths=tuple(len(frame) for frame, _ in self._frames),
            seconds=tuple(elapsed for _, elapsed in self._frames),
            payload=b"".join(vectors),
        )


def encrypted(message: Message) -> Sequence[EncryptedVector]:
    """The vectors under Bob's key that a message brings."""
    if isinstance(message, SealedResidues):
        return (message.residues,)
    if isinstance(message, Phases):
        return (message.phases,)
    if isinstance(message, Segments):
        return (message.marks,)
    if isinstance(message, SharedVector):
        return (message.vector,)
    return (message.weights,) if isinstance(message, SealedWeights) else ()
