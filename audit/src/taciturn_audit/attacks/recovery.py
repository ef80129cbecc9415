"""Common parts of attacks on undetermined batches: selection, worker cores and proofs.

A batch says ``X^T r = g`` in integers, with more rows than independent equations, so that the
equations alone leave freedom. An attack that guesses r by some further knowledge (few rows count;
each r is one of three values) can check its guess: the integers must satisfy all equations to the
last bit. A wrong guess does so by coincidence only. Residues have F binary digits, so that each
equation beyond the number of guessed rows holds by chance with a probability of about ``2^-F``
(even for a column of two values, where it says no more than a sum of residues).

Two things are not chance. *Twins*, rows of equal features, can be exchanged in every equation, so
that the integers never tell which of them is meant: a row with a twin in its batch is not called
certain. Neither is a row whose integer is within one step of zero: its sign would hang on the order
in which somebody added floating-point numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from scipy.linalg import qr

from taciturn.arrays import BoolArray, FloatArray, IndexArray, IntArray
from taciturn.parallel import on_all_cores
from taciturn.protocol.observations import GradientSeen
from taciturn_audit.attacks.base import LabelGuess
from taciturn_audit.views.alice_view import AliceView

T = TypeVar("T")
R = TypeVar("R")

# Batches handed out at a time: enough for every core, few enough to hear of progress.
CHUNK = 8
# Below this many entries a solver spends most of its time in Python, where threads do not help: of
# 13 ms for 90 rows by 81 columns 6 run without the interpreter, of 3.9 for 15 by 10 only 0.6.
_WORTH_A_THREAD = 2_000
# A residue of one step of the grid may be zero for the other party's floating-point arithmetic.
_LEAST_STEPS = 2


@dataclass(frozen=True, slots=True)
class System:
    """The integer equations of one batch; bits are the scales of features and residues."""

    seen: GradientSeen
    features: IntArray = field(repr=False)
    feature_bits: int
    residue_bits: int

    @classmethod
    def from_view(cls, view: AliceView, seen: GradientSeen) -> System:
        """The equations of a batch as Alice multiplied it."""
        agreed = view.agreement
        return cls(seen, view.encoded(seen.rows), agreed.feature_bits, agreed.residue_bits)

    @property
    def matrix(self) -> FloatArray:
        """The features at their real scale."""
        return np.multiply(self.features, 2.0**-self.feature_bits, dtype=np.float64)

    @property
    def target(self) -> FloatArray:
        """The gradient at its real scale."""
        scale = 2.0 ** -(self.feature_bits + self.residue_bits)
        return np.multiply(self.seen.gradient, scale, dtype=np.float64)

    @property
    def step(self) -> float:
        """The step of the residues' grid."""
        return 2.0**-self.residue_bits

    def remainder(self, steps: IntArray) -> IntArray | None:
        """The gradient less the product with ``steps``, residues in steps of their grid.

        None where a residue exceeds ``largest``. Within that the protocol's capacity keeps every
        sum below 2^63, so that int64 products do not wrap.
        """
        if np.abs(steps).max(initial=0) > self.seen.largest * 2.0**self.residue_bits:
            return None
        left: IntArray = self.seen.gradient - steps @ self.features
        return left

    def holds(self, steps: IntArray) -> bool:
        """Whether residues, in steps of their grid, satisfy the equations to the last bit."""
        left = self.remainder(steps)
        return left is not None and not left.any()

    def fitted(self, rows: IndexArray, target: FloatArray) -> IntArray | None:
        """The integer residues of ``rows``, all others being zero; None if they are not unique.

        ``target`` is the sum of their products, in the integers' scale.
        """
        if not len(rows):
            return np.zeros(len(self.features), dtype=np.int64)
        solved, _, rank, _ = np.linalg.lstsq(
            self.features[rows].T.astype(np.float64), target, rcond=None
        )
        if rank < len(rows) or np.abs(solved).max() > 2.0**62:
            return None
        steps = np.zeros(len(self.features), dtype=np.int64)
        steps[rows] = np.rint(solved).astype(np.int64)
        return steps


@dataclass(frozen=True, slots=True)
class Recovered:
    """An attack's result for one batch.

    ``residues`` are estimates at the real scale. ``members`` and ``size`` describe the guessed true
    batch. ``certified``: the integers hold to the last bit, and chance cannot explain it.
    ``certain`` are the rows whose sign that proves. ``work`` is in the units of ``LabelGuess``.
    """

    seen: GradientSeen
    residues: FloatArray = field(repr=False)
    members: BoolArray = field(repr=False)
    size: int
    certified: bool
    certain: BoolArray = field(repr=False)
    failed: bool = False
    work: float = 0.0

    @classmethod
    def nothing(cls, seen: GradientSeen, work: float = 0.0, *, failed: bool = True) -> Recovered:
        """The result for a batch that was given up."""
        none = np.zeros(len(seen.rows), dtype=bool)
        return cls(seen, np.zeros(len(none)), none, 0, False, none, failed, work)

    @classmethod
    def proven(cls, system: System, steps: IntArray, size: int, certain: BoolArray) -> Recovered:
        """The result from integers that hold; ``certain`` excludes twins and zero residues.

        ``size`` includes members whose residue rounds to zero.
        """
        identified = certain & lone(system.features) & (np.abs(steps) >= _LEAST_STEPS)
        residues = np.multiply(steps, system.step, dtype=np.float64)
        return cls(system.seen, residues, steps != 0, size, bool(identified.any()), identified)


def lone(features: IntArray) -> BoolArray:
    """Which rows have no twin in the batch, and are not all zero.

    >>> lone(np.array([[1, 2], [3, 4], [1, 2], [0, 0]])).tolist()
    [False, True, False, False]
    """
    _, number, count = np.unique(features, axis=0, return_inverse=True, return_counts=True)
    alone: BoolArray = (count[number] == 1) & features.any(axis=1)
    return alone


def independent_columns(matrix: FloatArray) -> IndexArray:
    """Well-conditioned basis of the columns: as many as the rank.

    >>> independent_columns(np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0]])).tolist()
    [1, 2]
    """
    norms = np.linalg.norm(matrix, axis=0)
    scaled = matrix / np.where(norms > 0, norms, 1.0)
    triangle, order = qr(scaled, mode="r", pivoting=True)
    size = np.abs(np.diagonal(triangle))
    rank = int((size > size.max(initial=0.0) * max(matrix.shape) * 1e-14).sum())
    chosen: IndexArray = np.sort(order[:rank]).astype(np.int64)
    return chosen


def evenly(batches: Sequence[T], most: int) -> list[T]:
    """At most ``most`` batches, spread evenly over the run.

    >>> evenly(range(10), 4)
    [0, 3, 6, 9]
    """
    if len(batches) <= most:
        return list(batches)
    return [batches[int(at)] for at in np.linspace(0, len(batches) - 1, most).round()]


def scattered(batches: Sequence[T]) -> list[T]:
    """All batches in an order of which every beginning is spread evenly over the run.

    >>> scattered(range(8))
    [0, 5, 2, 7, 4, 1, 6, 3]
    """
    golden = (np.sqrt(5.0) - 1.0) / 2.0
    places = np.argsort(np.argsort(np.arange(len(batches)) * golden % 1.0))
    return [batches[int(at)] for at in places]


def on_cores(function: Callable[[GradientSeen], R], batches: Sequence[GradientSeen]) -> Iterator[R]:
    """``map`` on all cores, a chunk at a time; a chunk begins when the one before was consumed.

    A whole chunk is computed before any of it is consumed, on one core as on many: what the
    function may read of earlier results does not depend on how fast the machine is.
    """
    for start in range(0, len(batches), CHUNK):
        chunk = batches[start : start + CHUNK]
        large = len(chunk[0].rows) * len(chunk[0].gradient) >= _WORTH_A_THREAD
        yield from on_all_cores(function, chunk) if large else [function(seen) for seen in chunk]


class ProvenLabels:
    """The labels proven so far."""

    def __init__(self, rows: int) -> None:
        self.certain: BoolArray = np.zeros(rows, dtype=bool)
        self.signs: FloatArray = np.zeros(rows)

    def may_prove(self, seen: GradientSeen) -> bool:
        """Whether a batch has a row whose label is not proven yet."""
        return not bool(self.certain[seen.rows].all())

    def settle(self, recovered: Recovered) -> None:
        """Record what a batch proves; an earlier proof stands."""
        new = recovered.certain & ~self.certain[recovered.seen.rows]
        rows = recovered.seen.rows[new]
        self.signs[rows] = np.sign(recovered.residues[new])
        self.certain[rows] = True

    def guess(
        self, soft: FloatArray, remark: str, *, limited: bool = False, work: float = 0.0
    ) -> LabelGuess:
        """The guess: proven labels, then likely ones by size; zero is no guess."""
        within = soft / (1.0 + np.abs(soft))
        scores = np.where(self.certain, self.signs, within)
        spoken = self.certain | (soft != 0)
        return LabelGuess(scores, spoken, self.certain.copy(), remark, limited, work)
