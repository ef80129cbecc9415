"""Bounded functions of a shared score as sums of waves: capped losses of held-out rows.

A score z is shared modulo ``2^k``, and the ring is the range ``[-H, H)``, as in
``numerics.periodic_sigmoid``. A function of period 2H is a sum of waves

    f(z) = m + sum over k of a_k cos(pi k z / H) + b_k sin(pi k z / H)

With shares ``z = z_A + z_B``, ``a = pi z_A / H`` and ``b = pi z_B / H`` each wave is two products
of a number of Alice's with a number of Bob's:

    a_k cos k(a + b) + b_k sin k(a + b) = cos(k a) (a_k cos(k b) + b_k sin(k b))
                                        + sin(k a) (b_k cos(k b) - a_k sin(k b))

Alice's numbers know nothing of the function. Bob's have its coefficients, which may differ from row
to row: a function of the row's label, or of anything else that he knows of the row.

**Capped losses.** ``capped_log_loss`` is the logistic loss of a label of 1 with a soft minimum at
``CAP``; that of a label of 0 is its mirror image. ``capped_square`` is half of a squared residue
that levels off at ``CAP`` (Welsch's function): its waves fall fastest. Within ``[-R, R]`` they are
as they stand; from R to ``2 H - R`` a smooth step leads from one end to the other, since the
function has the period 2H.

**Guarantee.** A row adds at least ``-error`` and at most ``CAP + error`` to a sum, whatever its
score: a score beyond the range counts as another one. ``BoundedWaves.fit`` takes as many waves as
keep the distance to the function within ``[-R, R]`` below the wanted error, on a grid of ``_GRID``
points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.data.label_table import LabelTable
from taciturn.errors import ConfigError
from taciturn.families.registry import FAMILIES
from taciturn.numerics.periodic_sigmoid import on_circle

CAP = 4.0
"""The most that the loss of one row counts."""
WAVE_ERROR = 0.02
"""Largest distance of the waves from a capped loss. It alternates with the score."""
_SHARPNESS = 2.0
_GRID = 1 << 14
_MOST_WAVES = 1024
Function = Callable[[FloatArray], FloatArray]


def capped_log_loss(scores: FloatArray) -> FloatArray:
    """Logistic loss of a label of 1, softly capped at ``CAP``.

    >>> capped_log_loss(np.array([40.0, 0.0, -2.0, -60.0])).round(3).tolist()
    [0.0, 0.693, 2.115, 4.0]
    """
    losses = np.logaddexp(0.0, -np.asarray(scores, dtype=np.float64))
    lowest = np.logaddexp(0.0, -_SHARPNESS * CAP)
    capped: FloatArray = (lowest - np.logaddexp(-_SHARPNESS * losses, -_SHARPNESS * CAP)) / (
        _SHARPNESS
    )
    return capped


def capped_square(residues: FloatArray) -> FloatArray:
    """Half of a squared residue, softly capped at ``CAP``.

    >>> capped_square(np.array([0.0, 0.5, 1.0, 50.0])).round(3).tolist()
    [0.0, 0.123, 0.47, 4.0]
    """
    squares: FloatArray = -CAP * np.expm1(-np.square(residues) / (2 * CAP))
    return squares


@dataclass(frozen=True, slots=True)
class BoundedWaves:
    """Waves of a function of period 2H: mean, and coefficients of the cosines and sines."""

    half_range: float
    mean: float
    cosines: FloatArray = field(repr=False)
    sines: FloatArray = field(repr=False)

    @classmethod
    def fit(
        cls, function: Function, score_range: float, half_range: float, error: float = WAVE_ERROR
    ) -> BoundedWaves:
        """Return the fewest waves that stay within ``error`` of a function up to a score range."""
        scores = (np.arange(_GRID) / _GRID * 2 - 1) * half_range
        inside = np.abs(scores) <= score_range
        values = _periodic(function, scores, score_range, half_range)
        # The grid starts at -H: every other coefficient changes its sign.
        coefficients = np.fft.rfft(values) / _GRID * (-1.0) ** np.arange(_GRID // 2 + 1)
        cosines, sines = 2 * coefficients.real[1:], -2 * coefficients.imag[1:]
        left = (values - coefficients.real[0])[inside]
        for waves in range(_MOST_WAVES):
            if float(np.abs(left).max()) <= error:
                kept = cosines[:waves].copy(), sines[:waves].copy()
                return cls(half_range, float(coefficients.real[0]), *kept)
            angles = (waves + 1) * math.pi / half_range * scores[inside]
            left = left - cosines[waves] * np.cos(angles) - sines[waves] * np.sin(angles)
        raise ConfigError(
            f"scores up to {score_range:g} need more than {_MOST_WAVES:,} waves",
            setting="score_range",
            hint="use a smaller range",
        )

    @property
    def waves(self) -> int:
        """Number of waves."""
        return len(self.cosines)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """The sum of the waves at any reals."""
        numbers = np.arange(1, self.waves + 1) * (math.pi / self.half_range)
        angles = np.outer(scores, numbers)
        values: FloatArray = self.mean + np.cos(angles) @ self.cosines + np.sin(angles) @ self.sines
        return values


def _periodic(
    function: Function, scores: FloatArray, score_range: float, half_range: float
) -> FloatArray:
    """The function within the range, and a smooth step from its one end to the other beyond."""
    right, left = function(np.array([score_range, -score_range])).tolist()
    beyond = np.where(scores > 0, scores, scores + 2 * half_range) - score_range
    at = np.clip(beyond / (2 * (half_range - score_range)), 0.0, 1.0)
    step = at**3 * (at * (6 * at - 15) + 10)
    inside = np.abs(scores) <= score_range
    values: FloatArray = np.where(inside, function(scores), right + (left - right) * step)
    return values


@lru_cache(maxsize=16)
def loss_waves(family: str, score_range: float, half_range: float) -> BoundedWaves:
    """Waves of a family's capped loss; of two classes that of a label of 1."""
    function = capped_log_loss if FAMILIES[family].has_classes else capped_square
    return BoundedWaves.fit(function, score_range, half_range)


@dataclass(frozen=True, slots=True)
class RowFunctions:
    """Bounded function of each row's score, as Bob has it.

    ``shifts`` are subtracted from the scores first. ``coefficients`` returns the cosines' and the
    sines' of some rows, a line for each row or one for all; ``constant`` is the sum of all means.
    """

    shifts: FloatArray = field(repr=False)
    coefficients: Callable[[slice], tuple[FloatArray, FloatArray]] = field(repr=False)
    constant: float

    @classmethod
    def from_losses(cls, waves: BoundedWaves, labels: LabelTable, shift: float) -> RowFunctions:
        """Capped losses of rows; ``shift`` is by how much class weights move log-odds."""
        total = waves.mean * labels.rows
        if not labels.kind.has_classes:
            # A residue is the score less the label, in the coordinates of scores.
            one = waves.cosines[np.newaxis], waves.sines[np.newaxis]
            return cls(standard_labels(labels), lambda _: one, total)
        signs = np.where(labels.values > 0, 1.0, -1.0)

        def coefficients(rows: slice) -> tuple[FloatArray, FloatArray]:
            return waves.cosines[np.newaxis], signs[rows, np.newaxis] * waves.sines

        return cls(np.full(labels.rows, shift), coefficients, total)


def standard_labels(labels: LabelTable) -> FloatArray:
    """Labels in the coordinates of scores."""
    response = labels.response
    values: FloatArray = (labels.values - response.location) / response.scale
    return values


def capped_loss(scores: FloatArray, labels: LabelTable, shift: float = 0.0) -> FloatArray:
    """Capped loss of each row, exactly."""
    if not labels.kind.has_classes:
        return capped_square(scores - standard_labels(labels))
    return capped_log_loss(np.where(labels.values > 0, 1.0, -1.0) * (scores - shift))


def base_loss(labels: LabelTable) -> float:
    """Sum of the capped losses of the best constant model: the base rate, or the mean."""
    if not labels.kind.has_classes:
        values = standard_labels(labels)
        return float(capped_square(values - values.mean()).sum())
    positives = int(np.count_nonzero(labels.values > 0))
    odds = (positives + 0.5) / (labels.rows - positives + 0.5)
    return float(capped_loss(np.full(labels.rows, math.log(odds)), labels).sum())


@dataclass(frozen=True, slots=True)
class SharedWaves:
    """Both sides' numbers of waves, of shares modulo ``2^modulus_bits``.

    Alice's have ``alice_bits`` binary digits and Bob's ``bob_bits``; the sum of a row's products is
    the function without its mean, in units of ``1 / unit``.
    """

    waves: int
    modulus_bits: int
    alice_bits: int
    bob_bits: int

    @property
    def entries(self) -> int:
        """Numbers per row, on either side."""
        return 2 * self.waves

    @property
    def unit(self) -> int:
        """Integer that stands for a value of 1."""
        return 1 << (self.alice_bits + self.bob_bits)

    def table(self, share: IntArray) -> IntArray:
        """Alice's numbers: one row per share."""
        waves = self._waves(share)
        return self._rounded(waves.real, waves.imag, self.alice_bits)

    def numbers(self, share: IntArray, cosines: FloatArray, sines: FloatArray) -> IntArray:
        """Bob's numbers: one row per share, with the coefficients of its function."""
        waves = self._waves(share)
        by_cosine = cosines * waves.real + sines * waves.imag
        by_sine = sines * waves.real - cosines * waves.imag
        return self._rounded(by_cosine, by_sine, self.bob_bits)

    def _rounded(self, by_cosine: FloatArray, by_sine: FloatArray, bits: int) -> IntArray:
        pairs = np.stack([by_cosine, by_sine], axis=2).reshape(len(by_cosine), -1)
        return np.rint(pairs * 2.0**bits).astype(np.int64)

    def _waves(self, share: IntArray) -> np.ndarray[tuple[int, int], np.dtype[np.complex128]]:
        """``exp(i k angle)`` of each share, for k from 1 on."""
        turn = 2 * math.pi * 2.0**-self.modulus_bits
        first = on_circle(np.multiply(share, turn, dtype=np.float64))
        waves = np.empty((len(share), self.waves), dtype=np.complex128)
        power = first
        for at in range(self.waves):
            waves[:, at] = power
            power = power * first
        return waves
