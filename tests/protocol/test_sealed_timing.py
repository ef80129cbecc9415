"""What the time of Bob's answers tells in ``sealed``: the path he takes, the clock, and an attack.

The path is compared line by line and cannot be wrong by chance. The clock is read only in ``slow``
tests: in one process, extremes in random order, by ranks, so that a busy machine makes a test
weaker and never wrong; each says what it would have noticed, and has the former encoding, entry by
entry with Python's integers, as the control that it notices.
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import numpy as np
import pytest

from taciturn import rng
from taciturn.arrays import IntArray, WordArray
from taciturn.crypto.base import EncryptedAnswer, TableSize, Wrapping
from taciturn.crypto.bfv.keys import BfvScheme, BfvSecretKey
from taciturn.crypto.bfv.modular import Grid
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.engine.driver import Driver
from taciturn.protocol.alice.sealed import Keys
from taciturn.protocol.codec import decode, encode, kind_of
from taciturn.protocol.handshake import open_training
from taciturn.protocol.joint_seed import agree_as_alice
from taciturn.protocol.messages import SealedGradient, SealedResidues
from taciturn.protocol.steps import Program, receive, send
from taciturn.protocol.table_shape import TableShape
from taciturn.protocol.terms import Terms
from taciturn.rng import SystemEntropy
from tests.modules import module_of
from tests.protocol.parties import ALICE, Tables, agreement, alice_program, bob_program

COINS = SystemEntropy()
WATCHED = tuple(str(Path(module.__file__ or "").parent) for module in (rng, np))
ROWS = 16
SCHEME = BfvScheme()
WHOLE_TABLE: dict[str, Any] = {
    "mechanism": "sealed",
    "solver": "newton",
    "scheme": "bfv",
    "key_bits": 128,
    "l2": 1e-3,
}


# The path


@contextmanager
def path() -> Iterator[list[tuple[str, int]]]:
    """Every line of this program and of NumPy's Python part that runs, in order.

    But for those that draw random bytes: how much a generator has in stock depends on how much was
    drawn. What Python itself does at times of its own choice, such as collecting garbage, is no
    line of theirs.
    """
    lines: list[tuple[str, int]] = []

    def trace(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        name = frame.f_code.co_filename
        if event == "line" and name.startswith(WATCHED) and name != rng.__file__:
            lines.append((name, frame.f_lineno))
        return trace

    before = sys.gettrace()
    gc.collect()
    gc.disable()
    sys.settrace(trace)
    try:
        yield lines
    finally:
        sys.settrace(before)
        gc.enable()


def extremes(ring: Wrapping, length: int) -> dict[str, IntArray]:
    half = (1 << ring.vector_bits) - 1
    return {
        "zeros": np.zeros(length, dtype=np.int64),
        "ones": np.ones(length, dtype=np.int64),
        "largest": np.full(length, half),
        "negative": np.full(length, -half),
        "uniform": ring.draw(length, COINS),
    }


@pytest.mark.slow  # some seconds
def test_the_path_of_an_encryption_depends_neither_on_values_nor_on_their_number():
    """A number that Python itself looks at would be a line for each of them."""
    ring = Wrapping.with_modulus(modulus_bits=50, matrix_bits=16, terms=4000)
    key = SCHEME.generate(128, ring, COINS)
    paths = []
    for length in (10, 4000):
        for vector in extremes(ring, length).values():
            key.stock(2, length, COINS)
            with path() as lines:
                key.encrypt(vector, 2, COINS)
            paths.append(lines)
    assert len(paths[0]) > 30
    assert all(lines == paths[0] for lines in paths)


@pytest.mark.slow  # some seconds
def test_the_path_of_a_decryption_depends_neither_on_values_nor_on_their_number():
    ring = Wrapping.with_modulus(modulus_bits=50, matrix_bits=16, terms=1)
    key = SCHEME.generate(128, ring, COINS)
    vector = key.encrypt(np.ones(1, dtype=np.int64), 1, COINS)
    paths = []
    # What is made once, at first use, is made now.
    one = key.public.prepare(np.ones((1, 1), dtype=np.int64))
    mask = key.public.mask_of(np.zeros(1, dtype=np.int64), COINS)
    key.decrypt_shares(key.public.masked_product(one, vector, mask, COINS), 1)
    for rows in (10, 4000):
        prepared = key.public.prepare(np.ones((rows, 1), dtype=np.int64))
        for values in extremes(ring, rows).values():
            mask = key.public.mask_of(values - 1, COINS)
            answer = key.public.masked_product(prepared, vector, mask, COINS)
            with path() as lines:
                shares = key.decrypt_shares(answer, 1)
            assert shares.tolist() == values.tolist()
            paths.append(lines)
    assert len(paths[0]) > 30
    assert all(lines == paths[0] for lines in paths)


@pytest.mark.slow  # some seconds
def test_the_path_with_a_whole_table_depends_neither_on_values_nor_on_their_number():
    ring = Wrapping.with_modulus(modulus_bits=59, matrix_bits=16, terms=1)
    key = SCHEME.generate(128, ring, COINS)
    encryptions, decryptions = [], []
    for rows in (10, 10, 4000):
        size = TableSize(rows, 1)
        table = key.public.table(np.zeros((rows, 1), dtype=np.int64))
        column = key.encrypt_columns(np.zeros(1, dtype=np.int64), size, COINS)
        for kind in ("uniform", "negative", "zeros"):
            values = extremes(ring, rows)[kind]
            with path() as lines:
                key.encrypt_rows(values, size, COINS)
            encryptions.append(lines)
            answer = table.product(column, values, COINS)
            with path() as lines:
                sums = key.decrypt_rows(answer, size)
            assert sums.tolist() == values.tolist()
            decryptions.append(lines)
    # The first vector of a size computes its tiles, which are public.
    for paths in (encryptions[4:], decryptions[4:]):
        assert len(paths[0]) > 30
        assert all(lines == paths[0] for lines in paths)


def answered(labels: list[int], spoil: Callable[[EncryptedAnswer], EncryptedAnswer]) -> list[Any]:
    """The path of each of Bob's answers, from the frame that he is fed to the one that he sends."""
    tables = Tables.make(rows=ROWS, bob=2, intercept=True)
    tables = Tables(
        tables.alice, tables.bob, LabelTable.from_data(np.array(labels, dtype=np.int8)), 1
    )
    terms = agreement(**WHOLE_TABLE, epochs=3)
    to_alice: list[bytes] = []
    to_bob: list[bytes] = []
    paths: list[Any] = []
    alice = Driver("alice", alice_program(tables, terms, SCHEME), to_bob.append)
    bob = Driver("bob", bob_program(tables, terms, SCHEME), to_alice.append)
    alice.start()
    bob.start()
    while not (alice.finished and bob.finished):
        while to_alice and not alice.finished:
            alice.feed(to_alice.pop(0))
        frame = to_bob.pop(0)
        message = decode(frame)
        if isinstance(message, SealedGradient):
            frame = encode(SealedGradient(message.iteration, spoil(message.answer)))
        with path() as lines:
            bob.feed(frame)
        paths.append(lines)
    return paths


@pytest.mark.slow
def test_bobs_path_from_frame_to_frame_depends_on_no_label_and_no_answer():
    """Decrypting, scoring, the sigmoid, the step, its encryption, his own weights, the events."""

    def noise(answer: EncryptedAnswer) -> EncryptedAnswer:
        return EncryptedAnswer(bytes(len(answer.data)), answer.length)

    # What is made once, at first use, is made in a run that does not count.
    answered([0] * ROWS, noise)
    runs = [
        answered([0] * ROWS, lambda answer: answer),
        answered([1] * ROWS, lambda answer: answer),
        answered([0, 1] * (ROWS // 2), noise),
    ]
    # Greeting, seed, two a pass, and the last sum.
    assert len(runs[0]) == 9
    for run in runs[1:]:
        assert [len(lines) for lines in run] == [len(lines) for lines in runs[0]]
        assert run == runs[0]


# The clock


class ByEntry:
    """The grid as it was: Python's integers, entry by entry."""

    def __init__(self, primes: tuple[int, ...], modulus: int) -> None:
        self.primes, self.modulus = primes, modulus

    def __call__(self, messages: IntArray) -> WordArray:
        quotient, rest = divmod(math.prod(self.primes), self.modulus)
        half, values = self.modulus // 2, messages.tolist()
        roundings = [(rest * value + half) // self.modulus for value in values]
        points = []
        for prime in self.primes:
            factor = quotient % prime
            pairs = zip(values, roundings, strict=True)
            points.append([(factor * value + rounding) % prime for value, rounding in pairs])
        return np.array(points, dtype=np.uint64)


def encryption_times(key: BfvSecretKey, vectors: list[IntArray], turns: int) -> np.ndarray:
    """Nanoseconds, a row for each turn; in each turn all vectors come in random order."""
    order = np.random.default_rng()
    times = np.empty((turns, len(vectors)))
    for turn in range(turns):
        for at in order.permutation(len(vectors)):
            key.stock(2, len(vectors[at]), COINS)
            start = time.perf_counter_ns()
            key.encrypt(vectors[at], 2, COINS)
            times[turn, at] = time.perf_counter_ns() - start
    return times


def told_apart(one: np.ndarray, two: np.ndarray) -> float:
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(one, two).pvalue)


FALSE_ALARM = 1e-5
ENTRIES = 4000


@pytest.mark.slow
def test_the_clock_does_not_tell_extreme_vectors_apart():
    """800 encryptions each of zeros and of large negatives, of 4,000 entries.

    False alarms: one run in 10^5. Noticed would be a difference as small as is printed: the least
    shift of one sample at which the same test rejects, of the time for all entries together. The
    former encoding, with some milliseconds, is told apart by a tenth of the turns.
    """
    ring = Wrapping.with_modulus(modulus_bits=50, matrix_bits=16, terms=ENTRIES)
    key = SCHEME.generate(128, ring, COINS)
    kinds = extremes(ring, ENTRIES)
    times = encryption_times(key, [kinds["zeros"], kinds["negative"]], 800)
    zeros, negative = times.T
    p = told_apart(zeros, negative)
    shifts = [2.0**power for power in range(24)]
    noticed = min(s for s in shifts if told_apart(zeros, zeros[::-1] + s) < FALSE_ALARM)
    print(f"p = {p:.3f}; {noticed / 1000:.1f} us of {np.median(times) / 1000:.0f} would be noticed")
    assert p > FALSE_ALARM
    assert noticed < 0.2 * np.median(times)

    setattr(key, "_grid", ByEntry(key._grid.primes, key._grid.modulus))  # noqa: B010
    zeros, negative = encryption_times(key, [kinds["zeros"], kinds["negative"]], 80).T
    print(
        f"entry by entry: {np.median(negative - zeros) / 1000:.0f} us, "
        f"p = {told_apart(zeros, negative):.1e}"
    )
    assert told_apart(zeros, negative) < FALSE_ALARM


# The attack

COLUMNS, BITS = 8000, 14
REPEATS, MOST_ROUNDS = 4, 10
KNOWN = ("zero", "large")
Target: TypeAlias = int | str


def spy(terms: Terms, target: Target) -> Program[None]:
    """An Alice who makes Bob's share zero, or large and negative, as a label of his says.

    The first direction has the same size in each row, and the label as its sign. She answers with a
    multiple of one row's number in every column, less what that is for a label of 1. To know what
    the two take she does the same with numbers of her choice.

    Args:
        terms: The agreement, of a single pass: Bob's next direction has nothing of the first.
        target: The row whose label she is after, or which of ``KNOWN`` his share is to be.
    """
    shape = TableShape(ROWS, (COLUMNS,), BITS)
    scales = shape.scales(terms)
    ring = shape.ring(scales)
    nothing = np.zeros((ROWS, COLUMNS), dtype=np.int64)
    yield from open_training("alice", terms, FeatureTable.from_data(nothing.astype(float)), BITS)
    key = yield from Keys(terms, ring, (yield from agree_as_alice(ALICE))).receive()
    # Half labels of each kind: residues of one half, of length 1 / sqrt(rows) together.
    whole = (1 << scales.residue_bits) // ROWS
    factor = min((1 << ring.matrix_bits) - 1, (1 << 48) // (2 * whole))
    table, shift = nothing.copy(), -2 * factor * whole * (target == "large")
    if isinstance(target, int):
        table[target], shift = factor, -factor * whole
    product = key.table(table).sum_over_rows(np.full(COLUMNS, shift), COINS)
    product.add((yield from receive(SealedResidues)).residues, slice(0, ROWS))
    yield from send(SealedGradient(0, product.result()))


def answering_time(labels: IntArray, target: Target) -> int:
    """Nanoseconds from her answer to what Bob sends next, in one training."""
    agreed = agreement(**WHOLE_TABLE, epochs=1)
    empty = FeatureTable.from_data(np.zeros((ROWS, 0)))
    tables = Tables(empty, empty, LabelTable.from_data(labels.astype(np.int8)))
    to_alice: list[bytes] = []
    to_bob: list[bytes] = []
    alice = Driver("alice", spy(Terms(agreed, SCHEME), target), to_bob.append)
    bob = Driver("bob", bob_program(tables, agreed, SCHEME), to_alice.append)
    alice.start()
    bob.start()
    while True:
        while to_bob:
            frame = to_bob.pop(0)
            # Of this thread alone: what she would see on a machine with nothing else to do.
            start = time.thread_time_ns()
            bob.feed(frame)
            if kind_of(frame) is SealedGradient:
                return time.thread_time_ns() - start
        alice.feed(to_alice.pop(0))


@dataclass
class Timings:
    """Bob's times by what decided about his share."""

    labels: IntArray
    times: dict[Target, list[int]] = field(default_factory=dict)

    def measure(self) -> None:
        """Times each label ``REPEATS`` times, and known numbers as often as labels of one kind.

        In random order, so that whatever else the machine does comes to all alike.
        """
        targets = [*range(ROWS), *KNOWN * (ROWS // 2)] * REPEATS
        for at in np.random.default_rng().permutation(len(targets)):
            spent = answering_time(self.labels, targets[at])
            self.times.setdefault(targets[at], []).append(spent)

    def labels_read(self) -> int:
        """How many she reads: a label is 0 where its times are nearer to those of large numbers."""
        typical = {target: float(np.median(spent)) for target, spent in self.times.items()}
        small, large = (typical[number] for number in KNOWN)
        nearer = [abs(typical[row] - small) < abs(typical[row] - large) for row in range(ROWS)]
        return int(np.sum(np.array(nearer) == self.labels))

    def p_value(self) -> float:
        """Of the times by label."""
        one, two = (
            np.concatenate([self.times[int(row)] for row in np.flatnonzero(self.labels == label)])
            for label in (0, 1)
        )
        return told_apart(one, two)

    def __str__(self) -> str:
        small, large = (np.median(self.times[number]) / 1e6 for number in KNOWN)
        return (
            f"{self.labels_read()} of {ROWS} labels, p = {self.p_value():.3g}; "
            f"zeros {small:.2f} ms, large numbers {large:.2f} ms"
        )


@pytest.mark.slow  # half a minute
def test_the_timing_attack_reads_no_label(monkeypatch):
    """8,000 claimed columns, 16 labels, 64 timed answers that depend on one.

    Against the former encoding she has all of them: a busy machine may make her repeat it. Now the
    times of the two labels are no more apart than chance has it (false alarms: one run in 10^5),
    nor are the guesses.
    """
    labels = np.array([0, 1] * (ROWS // 2))
    np.random.default_rng(1).shuffle(labels)
    now = Timings(labels)
    now.measure()
    print(f"now: {now}")
    assert now.p_value() > FALSE_ALARM
    assert now.labels_read() < ROWS

    def grid(primes: tuple[int, ...], modulus: int) -> Grid | ByEntry:
        """Of what is encrypted; blinds, which have fewer primes, are new."""
        return (ByEntry if len(primes) == 3 else Grid)(primes, modulus)

    monkeypatch.setattr(module_of(BfvSecretKey), "Grid", grid)
    before = Timings(labels)
    for _ in range(MOST_ROUNDS):
        before.measure()
        if before.labels_read() == ROWS and before.p_value() < FALSE_ALARM:
            break
    print(f"entry by entry: {before}")
    assert before.labels_read() == ROWS
    assert before.p_value() < FALSE_ALARM
