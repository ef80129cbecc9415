"""A training made to be told apart: every batch has the labels of one coin, all 1 or all 0.

It is the canary of the ``distinguisher``. The programs (with ``newton`` those of ``sgd``), the
encryption and the sizes of a batch are those of the training that is audited; Alice's rows are
hers, drawn anew as often as is needed for one epoch in which every batch has a coin of its own. One
Alice with all their columns stands for several who pool what they have.

**Guarantee.** The coins are fair and independent of each other, of the batches, the columns and all
randomness of the two programs. So if what Alice receives does not depend on labels, guesses made
from it are right as often as heads come up, whatever they are made from, how busy the machine is,
and how the messages depend on each other.

**Assumes.** The clock is read in one process, where nothing lies between the parties: what a
network adds to times hides more than is seen here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import BoolArray, FloatArray
from taciturn.crypto.base import EncryptedVector, Scheme
from taciturn.data.ids import RowIds
from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.engine.pair import run_pair
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import mechanism
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.registry import TRAININGS as ALICE
from taciturn.protocol.batch_seed import seed_of
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
from taciturn.settings.agreement import Agreement
from taciturn.view.alice_view import AliceView

ITERATIONS = 242
# Batches and tables are cut until a product of the scheme has no more parts than this: for
# paillier, whose entries are ciphertexts of their own. A product of bfv has a few.
_MOST_EFFORT = 16
_MOST_BATCH = 256


@dataclass(frozen=True, slots=True)
class Round:
    """What Alice received in one iteration.

    Args:
        kinds: The messages in their order, by their codes.
        lengths: The bytes of each.
        seconds: How long each came after the frame before it that was hers.
        payload: The bytes of the encrypted vectors, one after the other.
    """

    kinds: tuple[int, ...]
    lengths: tuple[int, ...]
    seconds: tuple[float, ...]
    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Challenge:
    """The rounds of a training, and the coin that each batch's labels followed.

    Args:
        rounds: All but the first, which comes with the handshake, and the last two: the last asks
            for no scores, and what came after a round is looked at with it.
        following: The round after each.
        coins: True where all labels of the batch were 1.
        batch: The rows of a batch.
        columns: How many of Alice's columns took part.
        scheme: The encryption.
    """

    rounds: tuple[Round, ...]
    following: tuple[Round, ...]
    coins: BoolArray = field(repr=False)
    batch: int
    columns: int
    scheme: str


def challenge(
    view: AliceView,
    scheme: Scheme,
    entropy: KeyedEntropy,
    iterations: int = ITERATIONS,
    sizes: tuple[int, int] | None = None,
) -> Challenge:
    """Trains on coins, with the agreement, the columns and the sizes of a view.

    Args:
        view: The training that is audited; its mechanism shares Alice's weights.
        scheme: The encryption; that of the agreement, or one to compare it with.
        entropy: The coins of the batches and of both parties.
        iterations: How many batches there are.
        sizes: The rows of a batch and how many of Alice's columns take part; None for those of the
            view, cut to what takes seconds.
    """
    batch, columns = sizes or _sizes(view, scheme)
    rows = iterations * batch
    agreed = view.agreement
    changes = {
        **_conversation(agreed),
        "over": None,
        "parties": None,
        "epsilon": None,
        "reveal": False,
        "reveal_epsilon": None,
        "reveal_delta": None,
        "scheme": scheme.name,
        "key_bits": agreed.key_bits if agreed.key_bits in scheme.key_bits else scheme.key_bits[0],
        # A coin for each batch needs batches: newton's vectors are under the same key and scheme.
        "solver": "sgd",
        "epochs": 1,
        "batch_size": batch,
        "minimum_batch": 1,
        "evaluate": "end",
    }
    terms = Terms(agreed.model_copy(update=changes), scheme)
    alice, bob = entropy.fork("alice"), entropy.fork("bob")
    coins = entropy.fork("coins").integers(2, iterations) == 1
    labels = np.empty(rows, dtype=np.int8)
    for number, one in enumerate(terms.plan(seed_of(alice, bob), rows).since(0)):
        labels[one.rows] = coins[number]
    ids = RowIds.numbered(rows)
    hers = FeatureTable(ids, view.features.columns[:columns], _drawn(view, columns, rows, entropy))
    his = FeatureTable(ids, *_bobs_columns(view.peer.columns, rows, entropy))
    method = terms.mechanism
    ledger = Ledger(rows, method.assumption)
    stopwatch = _Stopwatch()
    run_pair(
        ALICE[method.conversation](AliceInputs(hers, terms, alice)),
        BOB[method.conversation](
            BobInputs(his, LabelTable.of(labels, ids=ids), terms, method, ledger, bob)
        ),
        tap=stopwatch,
    )
    rounds = tuple(_rounds(stopwatch))
    return Challenge(rounds[1:-2], rounds[2:-1], coins[1:-2], batch, columns, scheme.name)


def _conversation(agreed: Agreement) -> dict[str, object]:
    """The mechanism whose programs say what is said in this training, with what it takes."""
    if mechanism(agreed).shares_scores:
        # A penalty narrows the range of scores by steps, for which newton's is not meant.
        return {"reveal_bob": False, **({"l2": 0.0} if agreed.solver == "newton" else {})}
    return {
        "mechanism": "sealed",
        "fresh_keys": bool(agreed.fresh_keys),
    }


def _sizes(view: AliceView, scheme: Scheme) -> tuple[int, int]:
    """The rows of a batch and Alice's columns, cut to what takes seconds."""
    batch = min(view.agreement.batch_size, view.features.rows, _MOST_BATCH)
    columns = len(view.features.columns)
    while scheme.effort(batch, columns) > _MOST_EFFORT and max(batch, columns) > 1:
        batch, columns = (batch // 2, columns) if batch > columns else (batch, columns // 2)
    return batch, columns


def _drawn(view: AliceView, columns: int, rows: int, entropy: KeyedEntropy) -> FloatArray:
    """Rows of Alice's, drawn with replacement."""
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
    """Notes each frame of Bob's, and how long it came after Alice's last one."""

    def __init__(self) -> None:
        self.frames: list[tuple[bytes, float]] = []
        self._asked = time.perf_counter()

    def __call__(self, sender: Role, frame: bytes) -> None:
        now = time.perf_counter()
        if sender == "alice":
            self._asked = now
        else:
            self.frames.append((frame, now - self._asked))


def _rounds(stopwatch: _Stopwatch) -> Iterator[Round]:
    """Bob's frames by iteration: a step ends one, and what came since the last belongs to it."""
    kinds: list[int] = []
    lengths: list[int] = []
    seconds: list[float] = []
    payloads: list[bytes] = []
    for frame, elapsed in stopwatch.frames:
        message = decode(frame)
        kinds.append(message.code)
        lengths.append(len(frame))
        seconds.append(elapsed)
        payloads += [vector.data for vector in encrypted(message)]
        if _is_step(message):
            yield Round(tuple(kinds), tuple(lengths), tuple(seconds), b"".join(payloads))
            kinds, lengths, seconds, payloads = [], [], [], []


def _is_step(message: Message) -> bool:
    """Whether a message asks for a step; where scores are shared, those after it have odd turns."""
    if isinstance(message, SharedVector):
        return message.turn % 2 == 0
    return isinstance(message, SealedResidues)


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
