"""The encryption benchmark: one iteration on the paper's shapes, as ratios in one run.

An iteration is encrypt, product, mask, decrypt, and the bytes both ways. All contenders take turns
on the same numbers, repeat by repeat, and the medians are compared: the machine's mood then falls
on all of them alike. What a scheme of ours makes ahead, while it waits for the peer, is measured
apart (``ms_ahead``). Ratios are over python-paillier of the same key size, and of 2048 bits for
those whose key size means something else.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.base import Capacity
from taciturn.crypto.registry import scheme
from taciturn.engine.trial import KeyPair, Trial
from taciturn.errors import ConfigError, nearest
from taciturn.rng import KeyedEntropy
from taciturn_paper.rivals import RIVALS, Contender

VECTOR_BITS, MATRIX_BITS = 20, 18
SLOW_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape of the paper's experiments: batch rows (terms) by Alice's columns."""

    name: str
    rows: int
    columns: int


SHAPES = (
    Shape("breast", 16, 30),
    Shape("breast, L_RR", 40, 30),
    Shape("digits", 32, 64),
    Shape("digits, L_RR", 70, 64),
    Shape("census", 32, 81),
    Shape("census, L_RR", 90, 81),
    Shape("credit", 8, 10),
    Shape("credit, L_RR", 15, 10),
    Shape("large", 256, 81),
    Shape("larger", 1024, 81),
)
QUICK_SHAPES = (SHAPES[0], SHAPES[6])


@dataclass(frozen=True, slots=True)
class Row:
    """One scheme on one shape."""

    shape: str
    rows: int
    columns: int
    scheme: str
    bits: int
    ms: float
    ms_ahead: float
    times_phe: float | None
    bytes_up: int
    bytes_down: int
    max_error: int
    repeats: int

    def to_dict(self) -> dict[str, Any]:
        """The row for JSON."""
        return asdict(self)


class Ours:
    """One of our schemes, with the work that can be done ahead done ahead."""

    def __init__(self, name: str, bits: int) -> None:
        self.name, self.bits = name, bits
        self._coins = KeyedEntropy.from_system()
        self._keys: dict[int, KeyPair] = {}

    def lap(self, matrix: IntArray, vector: IntArray) -> Trial:
        """One iteration; a key is made the first time and kept for each length."""
        terms = len(vector)
        if terms not in self._keys:
            capacity = Capacity(VECTOR_BITS, MATRIX_BITS, terms)
            self._keys[terms] = KeyPair.of(scheme(self.name), self.bits, capacity, self._coins)
        return self._keys[terms].trial(matrix, vector, self._coins)


OURS = (("bfv", 128), ("paillier", 2048), ("paillier", 3072))


def contenders(against: tuple[str, ...]) -> list[Contender]:
    """Ours, and the rivals that are asked for.

    Raises:
        ConfigError: A rival is unknown or not installed.
    """
    entrants: list[Contender] = [Ours(name, bits) for name, bits in OURS]
    for name in against:
        if name not in RIVALS:
            raise ConfigError(
                f"unknown rival {name}", setting="against", hint=nearest(name, RIVALS)
            )
        entrants += [make() for make in RIVALS[name]]
    return entrants


def run(
    against: tuple[str, ...],
    *,
    quick: bool = False,
    repeats: int = 5,
    announce: Callable[[str], None] = lambda message: None,
) -> list[Row]:
    """The whole benchmark.

    Args:
        against: Rivals to run beside ours.
        quick: Two shapes and two repeats.
        repeats: Turns of each contender.
        announce: Called with what is measured next.
    """
    entrants = contenders(against)
    rows: list[Row] = []
    for shape in QUICK_SHAPES if quick else SHAPES:
        rows += measure(shape, entrants, 2 if quick else repeats, announce)
    return rows


def measure(
    shape: Shape, entrants: list[Contender], repeats: int, announce: Callable[[str], None]
) -> list[Row]:
    """All contenders in turn on one shape; who is slow gets a single repeat."""
    coins = KeyedEntropy.from_seed(shape.rows * 1000 + shape.columns)
    laps: dict[int, list[Trial]] = {number: [] for number in range(len(entrants))}
    for turn in range(repeats + 1):
        matrix = _whole(coins, (shape.columns, shape.rows), MATRIX_BITS)
        vector = _whole(coins, (shape.rows,), VECTOR_BITS)
        for number, entrant in enumerate(entrants):
            if _too_slow(entrant, shape) or (
                laps[number] and laps[number][0].seconds > SLOW_SECONDS
            ):
                continue
            announce(f"{shape.name}: {entrant.name} {entrant.bits}, turn {turn + 1}")
            laps[number].append(entrant.lap(matrix, vector))
    measured = [
        _row(shape, entrant, laps[number])
        for number, entrant in enumerate(entrants)
        if laps[number]
    ]
    return [_compared(row, measured) for row in measured]


def _too_slow(entrant: Contender, shape: Shape) -> bool:
    """python-paillier of 3072 bits on the large batches alone would take several minutes."""
    return entrant.name == "phe" and entrant.bits > 2048 and shape.rows * shape.columns > 10_000


def _whole(coins: KeyedEntropy, shape: tuple[int, ...], bits: int) -> IntArray:
    return np.rint((coins.uniform(shape) * 2 - 1) * 2.0**bits).astype(np.int64)


def _row(shape: Shape, entrant: Contender, laps: list[Trial]) -> Row:
    # The first lap makes keys and warms up, and counts only where it is the only one.
    timed = laps[1:] or laps
    return Row(
        shape=shape.name,
        rows=shape.rows,
        columns=shape.columns,
        scheme=entrant.name,
        bits=entrant.bits,
        ms=1e3 * statistics.median(lap.seconds for lap in timed),
        ms_ahead=1e3 * statistics.median(lap.ahead for lap in timed),
        times_phe=None,
        bytes_up=laps[-1].bytes_to_alice,
        bytes_down=laps[-1].bytes_to_bob,
        max_error=max(lap.error for lap in laps),
        repeats=len(timed),
    )


def _compared(row: Row, rows: list[Row]) -> Row:
    bits = 3072 if row.bits == 3072 else 2048
    rival = next((other for other in rows if (other.scheme, other.bits) == ("phe", bits)), None)
    if rival is None:
        return row
    return Row(**{**row.to_dict(), "times_phe": rival.ms / row.ms})
