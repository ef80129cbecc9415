"""Distinguishing game: does anything that Alice receives depend on labels?

If Alice receives only ciphertexts, no attack has a number to work with, and the security claim
rests on an argument (``docs/sealed.md``). This module tries to refute it. A ``Challenge`` is many
small trainings; in each of them a secret bit sets all labels to 1 or all to 0. The programs and the
encryption are those of the audited training. The tables are small, with rows of Alice's drawn anew
for every training, and there is one pass. A single Alice with all columns represents a coalition.

A ridge regression learns from the first third of the trainings. It then guesses the secret bits of
the others in order, and learns from each bit after guessing it. Its features are the bytes of the
ciphertexts, the kinds and lengths of messages, and their times. Two further tests learn nothing:
whether 16 bytes of a ciphertext repeat, and whether the bytes are distributed like a ciphertext's.

The same tests run on injected faults: unencrypted residues (the same training by the scheme
``clear``), a seed that is used twice, and bytes and times that follow the secret bit, reduced until
they are barely detected. The report therefore states what would have been detected.

**Guarantee.** The secret bits are fair and independent of each other, of the columns and of all
randomness of the two programs. If Alice's messages do not depend on labels, a learner raises a
false alarm with probability at most ``FALSE_ALARM``, however busy the machine: a guess is computed
from messages and earlier secret bits, which are independent of the guessed bit, so the number of
right guesses is binomial. A busy machine weakens the test of times, and the report says how much.

**Assumes.** The clock is read in one process, where nothing lies between the parties: what a
network adds to times hides more than is seen here. Of ciphertexts: that 16 bytes of one are nearly
uniform, as they are for ``bfv`` and ``paillier``, so that a block comes again with a probability
below 2^-70. Chance is no proof: a dependence that this learner does not see, or one of too small an
effect, is not noticed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import betainc, betaincinv

from taciturn.arrays import BoolArray, FloatArray
from taciturn.crypto.base import Scheme
from taciturn.crypto.registry import scheme
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.engine.pair import run_pair
from taciturn.parallel import one_thread
from taciturn.privacy.base import Sharing
from taciturn.privacy.ledger import Ledger
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.party import TRAININGS as ALICE
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.party import TRAININGS as BOB
from taciturn.protocol.codec import decode, kind_of
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
from taciturn.settings.schema import Newton
from taciturn_audit.exact_intervals import clopper_pearson
from taciturn_audit.results.audit import REUSED_SEED, UNENCRYPTED, Distinguisher, Fault, Look
from taciturn_audit.views.alice_view import AliceView

FALSE_ALARM = 1e-6
# Of a dependence that is this likely to be noticed the report says how large it is.
POWER = 0.95
BLOCK = 16
# A byte of bfv has 7.93 bits and one of paillier 8; residues and shares in 8 bytes have 5.5 to 7.
LEAST_ENTROPY = 7.5

BYTES, SHAPE, TIMES = "bytes", "lengths and order", "times"
_LOOKS = (BYTES, SHAPE, TIMES)
_CHUNKS, _ENDS = 64, 32
# Guesses between two fits of the regression.
_STEP = 10
# Unencrypted residues tell nearly every secret bit: a third of the trainings show it.
_CONTROL_SHARE = 3
_MICROSECONDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 50_000, 200_000)
_MARKED_BYTES = (1, 16, 128, 1024, 8192)
TRAININGS = 180
_MOST_ROWS, _MOST_COLUMNS = 64, 64


@dataclass(frozen=True, slots=True)
class ReceivedMessages:
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
    """Messages that Alice received in each training, and its secret bit: True for labels 1."""

    messages: tuple[ReceivedMessages, ...]
    secret_bits: BoolArray = field(repr=False)
    rows: int
    columns: int
    scheme: str


def challenge(
    view: AliceView, scheme: Scheme, entropy: KeyedEntropy, trainings: int = TRAININGS
) -> Challenge:
    """Train on labels set by secret bits, with the agreement and the columns of a view.

    Its mechanism shares Alice's weights. ``scheme`` is the agreement's, or one to compare it with.
    """
    rows = min(view.features.rows, _MOST_ROWS)
    columns = min(len(view.features.columns), _MOST_COLUMNS)
    terms = Terms(view.agreement.model_copy(update=_changes(view, scheme, rows)), scheme)
    secret_bits = entropy.fork("coins").integers(2, trainings) == 1
    messages = tuple(
        _train(view, terms, (rows, columns), secret_bit, entropy.fork(f"training {number}"))
        for number, secret_bit in enumerate(secret_bits.tolist())
    )
    return Challenge(messages, secret_bits, rows, columns, scheme.name)


def _changes(view: AliceView, scheme: Scheme, rows: int) -> dict[str, object]:
    agreed = view.agreement
    unused = ("base_mechanism", "parties", "epsilon", "reveal", "reveal_bob", "reveal_epsilon")
    return {
        **dict.fromkeys((*unused, "reveal_delta")),
        # Flipped labels are trained in the conversation of the mechanism that they run over.
        "mechanism": agreed.mechanism if view.mechanism.sharing is Sharing.SCORES else "sealed",
        "scheme": scheme.name,
        "key_bits": agreed.key_bits if agreed.key_bits in scheme.key_bits else scheme.key_bits[0],
        "solver": Newton(passes=1),
        "l2": max(agreed.l2, 1.0 / rows),
        "evaluate": "end",
        # None of the columns that stand in for Bob's is one.
        "intercept": False,
    }


def _train(
    view: AliceView, terms: Terms, shape: tuple[int, int], secret_bit: bool, entropy: KeyedEntropy
) -> ReceivedMessages:
    rows, columns = shape
    ids = RowIds.numbered(rows)
    alice_table = FeatureTable(
        ids, view.features.columns[:columns], _drawn(view, columns, rows, entropy)
    )
    bob_table = FeatureTable(ids, *_bobs_columns(view.peer.columns, rows, entropy))
    labels = LabelTable.from_data(np.full(rows, secret_bit, dtype=np.int8), ids=ids)
    method, stopwatch = terms.mechanism, _Stopwatch()
    alice, bob = entropy.fork("alice"), entropy.fork("bob")
    ledger = Ledger(rows, method.assumption)
    run_pair(
        ALICE[terms.conversation](AliceInputs(alice_table, terms, alice)),
        BOB[terms.conversation](BobInputs(bob_table, labels, terms, method, ledger, bob)),
        tap=stopwatch,
    )
    return stopwatch.received()


def _drawn(view: AliceView, columns: int, rows: int, entropy: KeyedEntropy) -> FloatArray:
    numbers = entropy.fork("rows").integers(view.features.rows, rows)
    return view.features.values[:, :columns].take(numbers.astype(np.int64), axis=0)


def _bobs_columns(
    count: int, rows: int, entropy: KeyedEntropy
) -> tuple[tuple[str, ...], FloatArray]:
    """Replacement of Bob's columns, uniform in ±1: Alice has none of his values."""
    words = entropy.fork("bob's columns").words(rows * count)
    values = words.astype(np.float64) / 2.0**63 - 1.0
    return tuple(f"b{number}" for number in range(count)), values.reshape(rows, count)


# The field of each message that holds a vector under Bob's key.
_VECTORS: dict[type[Message], str] = {
    SealedResidues: "residues",
    Phases: "phases",
    Segments: "marks",
    SharedVector: "vector",
    SealedWeights: "weights",
}


def encrypted(frame: bytes) -> bytes:
    """The bytes of the vector under Bob's key that a frame brings, if any."""
    field_name = _VECTORS.get(kind_of(frame))
    return b"" if field_name is None else bytes(getattr(decode(frame), field_name).data)


class _Stopwatch:
    def __init__(self) -> None:
        self._frames: list[tuple[bytes, float]] = []
        self._last = time.perf_counter()

    def __call__(self, sender: Role, frame: bytes) -> None:
        now = time.perf_counter()
        if sender == "bob":
            self._frames.append((frame, now - self._last))
        self._last = now

    def received(self) -> ReceivedMessages:
        frames = [frame for frame, _ in self._frames]
        return ReceivedMessages(
            kinds=tuple(kind_of(frame).code for frame in frames),
            lengths=tuple(map(len, frames)),
            seconds=tuple(elapsed for _, elapsed in self._frames),
            payload=b"".join(map(encrypted, frames)),
        )


def applies(view: AliceView) -> bool:
    """Whether all that Alice receives about labels is encrypted, by a scheme that hides."""
    return view.mechanism.sharing > Sharing.NOTHING and scheme(view.agreement.scheme).protects


def distinguish(
    view: AliceView,
    entropy: KeyedEntropy,
    chosen: Scheme | None = None,
    trainings: int = TRAININGS,
) -> Distinguisher:
    """Look for labels in what Alice receives, and for faults that must be noticed.

    ``chosen`` replaces the encryption of the agreement. The first third of the trainings are only
    learnt from.
    """
    start = time.perf_counter()
    with one_thread():
        received = challenge(view, chosen or scheme(view.agreement.scheme), entropy, trainings)
        payloads = [message.payload for message in received.messages]
        looks = _looks(received)
        repeated = repeated_blocks([*payloads, *map(encrypted, view.received)])
        bits = entropy_bits(payloads)
        faults = (
            _unencrypted(view, entropy, trainings // _CONTROL_SHARE),
            _reused_seed(payloads),
            _marked(received),
            _delayed(received),
        )
    judged = looks[0].judged
    return Distinguisher(
        trained=len(received.secret_bits) - judged,
        judged=judged,
        batch=received.rows,
        columns=received.columns,
        scheme=received.scheme,
        looks=looks,
        messages=len(received.messages),
        bytes=sum(map(len, payloads)),
        repeated=repeated,
        entropy=bits,
        false_alarm=FALSE_ALARM,
        detectable=detectable(judged),
        faults=faults,
        noticed=any(look.noticed for look in looks) or repeated > 0 or bits < LEAST_ENTROPY,
        seconds=time.perf_counter() - start,
    )


# --- three looks that learn -------------------------------------------------------------------


def _looks(received: Challenge) -> tuple[Look, ...]:
    features = {BYTES: _byte_features, SHAPE: _shape_features, TIMES: _time_features}
    return tuple(_look(name, features[name](received), received.secret_bits) for name in _LOOKS)


def _look(name: str, features: FloatArray, secret_bits: BoolArray) -> Look:
    # Rounded up: a regression needs an example.
    first = -(-len(secret_bits) // 3)
    signs = np.where(secret_bits, 1.0, -1.0)
    scores = [
        ridge(features[:known], signs[:known], features[known : known + _STEP])
        for known in range(first, len(secret_bits), _STEP)
    ]
    guesses = np.concatenate(scores) > 0
    right, judged = int(np.count_nonzero(guesses == secret_bits[first:])), len(secret_bits) - first
    low, high = clopper_pearson(right, judged)
    return Look(name, right, judged, right / judged, low, high, right >= needed(judged))


def ridge(known: FloatArray, signs: FloatArray, asked: FloatArray) -> FloatArray:
    """Signs predicted from features, by a regression with a penalty as large as the evidence.

    >>> rows = np.array([[0.0], [1.0], [0.0], [1.0]])
    >>> ridge(rows, np.array([-1.0, 1.0, -1.0, 1.0]), rows[:2]) > 0
    array([False,  True])
    """
    centre, spread = known.mean(axis=0), known.std(axis=0)
    varies = spread > 0
    if not varies.any():
        return np.full(len(asked), signs.mean())
    scaled = (known[:, varies] - centre[varies]) / spread[varies]
    # In the space of rows, of which there are fewer than features or few enough.
    kernel = scaled @ scaled.T + len(scaled) * np.eye(len(scaled))
    weights = scaled.T @ np.linalg.solve(kernel, signs - signs.mean())
    scores: FloatArray = (asked[:, varies] - centre[varies]) / spread[varies] @ weights
    return scores


def needed(judged: int) -> int:
    """The fewest right guesses that are no chance: ``FALSE_ALARM`` over all looks.

    >>> needed(120)
    88
    """
    counts = np.arange(1, judged + 1)
    # betainc(k, n - k + 1, p) is the chance of k or more of n.
    tails = betainc(counts, judged - counts + 1, 0.5)
    rare = np.flatnonzero(tails <= FALSE_ALARM / len(_LOOKS))
    return int(counts[rare[0]]) if len(rare) else judged + 1


def detectable(judged: int) -> float:
    """Share of correct guesses that a dependence needs to be detected with ``POWER``.

    >>> round(detectable(120), 3)
    0.791
    """
    least = needed(judged)
    return 1.0 if least > judged else float(betaincinv(least, judged - least + 1, POWER))


def _byte_features(received: Challenge) -> FloatArray:
    return np.array([_of_bytes(message.payload) for message in received.messages])


def _of_bytes(payload: bytes) -> FloatArray:
    values = np.frombuffer(payload, dtype=np.uint8)
    bounds = np.linspace(0, len(values), _CHUNKS + 1).astype(np.int64)[:-1]
    sums = np.add.reduceat(values, np.minimum(bounds, len(values) - 1), dtype=np.int64)
    counts = np.bincount(values, minlength=256).reshape(16, 16)
    ends = np.resize(values, max(_ENDS, len(values)))
    parts = (sums, counts.sum(axis=0), counts.sum(axis=1), ends[:_ENDS], ends[-_ENDS:])
    return np.concatenate([part.astype(np.float64) for part in parts])


def _shape_features(received: Challenge) -> FloatArray:
    """Number, kinds and lengths of the messages."""
    most = max(len(message.kinds) for message in received.messages)
    return np.array([_shape(message, most) for message in received.messages])


def _shape(received: ReceivedMessages, most: int) -> list[float]:
    blank = [0.0] * (most - len(received.kinds))
    return [float(len(received.kinds)), *received.kinds, *blank, *received.lengths, *blank]


def _time_features(received: Challenge) -> FloatArray:
    """Ranks of each message's time and of the total time, alone and next to their neighbours.

    Ranks, since one answer in a thousand takes a hundred times as long on a busy machine.
    """
    most = max(len(message.seconds) for message in received.messages)
    times = np.zeros((len(received.messages), most + 1))
    for row, message in zip(times, received.messages, strict=True):
        row[: len(message.seconds)] = message.seconds
        row[most] = sum(message.seconds)
    columns = [*times.T, *(_beside(column) for column in times.T)]
    return np.column_stack([_ranks(column) for column in columns])


def _beside(values: FloatArray) -> FloatArray:
    """Each value less the median of those around it: a machine is slow for a while."""
    padded = np.pad(values, 4, mode="edge")
    around = np.lib.stride_tricks.sliding_window_view(padded, 9)
    return values - np.median(around, axis=1)


def _ranks(values: FloatArray) -> FloatArray:
    return np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(np.float64)


# --- two that do not --------------------------------------------------------------------------


def repeated_blocks(payloads: Sequence[bytes]) -> int:
    """Number of 16-byte blocks, aligned to the start of a vector, that repeat an earlier one.

    >>> repeated_blocks([bytes(range(32)), bytes(range(16, 48))])
    1
    """
    if not payloads:
        return 0
    whole = b"".join(payload[: len(payload) // BLOCK * BLOCK] for payload in payloads)
    words = np.frombuffer(whole, dtype="<u8").reshape(-1, 2)
    # Sorted by the first 8 bytes alone, which is fast; few blocks share them with another.
    first = np.sort(words[:, 0])
    touched = words[np.isin(words[:, 0], first[1:][first[1:] == first[:-1]])]
    return len(touched) - len(np.unique(touched, axis=0))


def entropy_bits(payloads: Sequence[bytes]) -> float:
    """The entropy of a byte, by how often each value occurs.

    >>> entropy_bits([bytes(range(256))])
    8.0
    """
    counts = np.zeros(256)
    for payload in payloads:
        counts += np.bincount(np.frombuffer(payload, dtype=np.uint8), minlength=256)
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


# --- faults that must be noticed --------------------------------------------------------------


def _unencrypted(view: AliceView, entropy: KeyedEntropy, trainings: int) -> Fault:
    """Trainings on the first of the same secret bits, with the unencrypted scheme."""
    received = challenge(view, scheme("clear"), entropy, trainings)
    look = _look(BYTES, _byte_features(received), received.secret_bits)
    # A share is uniform in clear too: it tells a label to who takes her own part off, not here.
    sent = "random shares" if view.mechanism.sharing is Sharing.SCORES else "residues"
    words = f"{sent} sent without encryption ({look.right} of {look.judged} correct)"
    return Fault(UNENCRYPTED, words, BYTES, look.noticed)


def _reused_seed(payloads: list[bytes]) -> Fault:
    """One message ends with the last 64 bytes, for bfv the seed, of an earlier one."""
    earlier, later = payloads[0], payloads[-1]
    spoilt = later[:-64] + earlier[-64:]
    noticed = repeated_blocks([earlier, spoilt]) > repeated_blocks([earlier, later])
    return Fault(REUSED_SEED, "one encryption's seed used twice", "repeated blocks", noticed)


def _marked(received: Challenge) -> Fault:
    """Fewest consecutive bytes, mid-payload, that are noticed if they follow the secret bit."""
    length = min(len(message.payload) for message in received.messages)

    def noticed(count: int) -> bool:
        at = length // 2
        messages = [
            replace(
                message,
                payload=_mark(message.payload, at, min(count, length - at), 255 * int(secret_bit)),
            )
            for message, secret_bit in zip(received.messages, received.secret_bits, strict=True)
        ]
        spoilt = replace(received, messages=tuple(messages))
        return _look(BYTES, _byte_features(spoilt), received.secret_bits).noticed

    size = _least(_MARKED_BYTES, noticed)
    words = f"{size or _MARKED_BYTES[-1]:,} bytes in a row of {length:,} that follow the label"
    return Fault("marked-bytes", words, BYTES, size is not None, size)


def _mark(payload: bytes, at: int, count: int, value: int) -> bytes:
    return payload[:at] + bytes([value]) * count + payload[at + count :]


def _delayed(received: Challenge) -> Fault:
    """The least time that an answer takes longer where the labels are 1."""

    def noticed(microseconds: int) -> bool:
        messages = [
            replace(
                message, seconds=_later(message.seconds, 1e-6 * microseconds * float(secret_bit))
            )
            for message, secret_bit in zip(received.messages, received.secret_bits, strict=True)
        ]
        spoilt = replace(received, messages=tuple(messages))
        return _look(TIMES, _time_features(spoilt), received.secret_bits).noticed

    size = _least(_MICROSECONDS, noticed)
    typical = 1e6 * float(np.median([sum(message.seconds) for message in received.messages]))
    words = f"{size or _MICROSECONDS[-1]:,} µs more, of {typical:,.0f}, where labels are 1"
    return Fault("delay", words, TIMES, size is not None, size)


def _later(seconds: tuple[float, ...], delay: float) -> tuple[float, ...]:
    return *seconds[:-1], seconds[-1] + delay


def _least(sizes: Sequence[int], noticed: Callable[[int], bool]) -> int | None:
    least = None
    for size in reversed(sizes):
        if not noticed(size):
            break
        least = size
    return least
