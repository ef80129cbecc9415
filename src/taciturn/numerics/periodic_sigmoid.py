"""The sigmoid of a number that two parties share, as a sum of waves.

A score z is shared modulo ``t = 2^k``: ``Z = A + B``, and the whole ring is the range ``[-H, H)``.
What is computed of it must have that period, and must be a short sum of products of something of A
with something of B. Waves are both: with ``a = pi z_A / H`` and ``b = pi z_B / H``

    sin(k (a + b)) = sin(k a) cos(k b) + cos(k a) sin(k b)

and a sum that wraps changes neither side. Among all sums of products that depend on ``A + B``
alone, waves reach an error with the fewest terms: they are the characters of the ring.

**The function.** A square wave of period 2H, smoothed by the logistic density, is

    f(z) = 1/2 + sum over odd k of c_k sin(pi k z / H),     c_k = (2 pi / H) / sinh(pi^2 k / H)

It is the sigmoid but for what the density has beyond the next edge, at -H or H, and its terms fall
like ``exp(-pi^2 k / H)``: about one wave for every three units of the range at an error of 1e-3.

**Guarantee.** For ``|z| <= R < H``, and waves up to K: ``|f_K(z) - sigma(z)| <= exp(R - H) (1 +
exp(-2 R)) + c_(K+2) / (1 - exp(-2 pi^2 / H))`` (``bound``): the chance that a logistic number goes
beyond an edge, and the tail, since ``sinh(x) / sinh(x + d) <= exp(-d)``.

**The loss.** The even part ``log(2 cosh(z/2))`` of the logistic loss is half a triangle wave,
smoothed by the same density; its derivative is the function above, wave by wave:

    g(z) = H/4 - sum over odd k of d_k cos(pi k z / H),     d_k = c_k H / (pi k)

So the loss that the waves give is exactly the one that their sigmoid descends. Within R it is off
by at most the same edge, ``exp(R - H) (1 + exp(-2 R))``, and the tail of d_k (``loss_bound``): the
triangle leaves ``|z|/2`` by no more than the way beyond the edge, and that integrates to the edge.

**Assumes.** Scores within R. Beyond it the function falls back to 0 at H and continues with the
opposite sign: a score that does not fit has the residue of another one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count

import numpy as np
import numpy.typing as npt

from taciturn.arrays import FloatArray, IntArray
from taciturn.rng import Entropy

# The part of the error that may come from the ring's other edge; the rest is for the tail.
_EDGE_PART = 4.0
# How far an angle is brought down before its series, and up again by squaring.
_HALVINGS = 4
_SERIES = 12


@dataclass(frozen=True, slots=True)
class PeriodicSigmoid:
    """Periodic approximation of the sigmoid on ``[-H, H)`` by ``waves`` odd waves."""

    half_range: float
    waves: int

    @classmethod
    def with_error(cls, half_range: float, error: float) -> PeriodicSigmoid:
        """The fewest waves whose tail leaves room for the ring's edge in an error."""
        left = error * (1 - 1 / _EDGE_PART)
        return next(
            chosen
            for chosen in (cls(half_range, waves) for waves in count(1))
            if chosen.tail <= left
        )

    @property
    def frequencies(self) -> FloatArray:
        """The odd numbers k."""
        return np.arange(1, 2 * self.waves, 2, dtype=np.float64)

    @property
    def coefficients(self) -> FloatArray:
        """c_k of each wave."""
        return _coefficients(self.half_range, self.frequencies)

    @property
    def loss_coefficients(self) -> FloatArray:
        """d_k of each wave."""
        return self.coefficients * self.half_range / (math.pi * self.frequencies)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """The approximation at any reals."""
        angles = np.outer(scores, self.frequencies) * (math.pi / self.half_range)
        return np.asarray(0.5 + np.sin(angles) @ self.coefficients)

    def bound(self, score_range: float) -> float:
        """Bound on the distance to the sigmoid for scores of at most this size."""
        return self.tail + self._edge(score_range)

    def even_loss(self, scores: FloatArray) -> FloatArray:
        """The approximation of ``log(2 cosh(z/2))`` at any reals."""
        angles = np.outer(scores, self.frequencies) * (math.pi / self.half_range)
        return np.asarray(self.half_range / 4 - np.cos(angles) @ self.loss_coefficients)

    def loss_bound(self, score_range: float) -> float:
        """Bound on the distance to the loss for scores of at most this size."""
        following = 2 * self.waves + 1
        return self.tail * self.half_range / (math.pi * following) + self._edge(score_range)

    def _edge(self, score_range: float) -> float:
        return math.exp(score_range - self.half_range) * (1 + math.exp(-2 * score_range))

    @property
    def tail(self) -> float:
        """Bound on the sum of all waves beyond these."""
        following = np.array([2.0 * self.waves + 1])
        first = float(_coefficients(self.half_range, following)[0])
        return first / (1 - math.exp(-2 * math.pi**2 / self.half_range))


def _coefficients(half_range: float, frequencies: FloatArray) -> FloatArray:
    # Of large numbers the hyperbolic sine overflows; such a wave is nothing.
    whole = np.minimum(frequencies * (math.pi**2 / half_range), 700.0)
    return np.asarray(2 * math.pi / half_range / np.sinh(whole))


def half_range(score_range: float, error: float) -> float:
    """Half of the ring that a range of scores needs: its other edge takes its part of the error."""
    return score_range + math.log(_EDGE_PART / error)


@dataclass(frozen=True, slots=True)
class SharedSigmoid:
    """The products that make shares of ``step sigma(z)`` from shares of z.

    Bob's numbers of a row are ``[cos(k b), sin(k b)]``, k after k, at a scale of ``2^bits``;
    Alice's ``step c_k [sin(k a), cos(k a)] / 2^bits``. The sum of their products is ``step (f(z) -
    1/2)``. Bob's are rounded to the nearest, hers at random to their own mean: small ones would
    vanish otherwise. Both sums have the same work for all shares, which live modulo
    ``2^modulus_bits``; ``step`` is a residue of 1 as an integer on the grid of steps.

    ``extra_bits`` are further digits of Bob's numbers, for passes whose loss is opened: his
    roundings are those of a loss, and too coarse for its change otherwise.
    """

    sigmoid: PeriodicSigmoid
    modulus_bits: int
    step: float
    extra_bits: int = 0

    @property
    def entries(self) -> int:
        """Numbers per row, on either side."""
        return 2 * self.sigmoid.waves

    @property
    def bits(self) -> int:
        """Digits of Bob's numbers: as many as make both roundings weigh about the same.

        His err by 1/sqrt(12) each, times coefficients whose squares sum to about a half; hers by
        1/sqrt(6) each in all waves, about eight times as much.
        """
        return max(2, (math.floor(math.log2(max(self.step, 1.0))) - 3) // 2) + self.extra_bits

    @property
    def table_bits(self) -> int:
        """Base-2 logarithm of a bound on Alice's numbers."""
        largest = self.step * float(self.sigmoid.coefficients[0]) * 2.0**-self.bits
        return max(1, math.ceil(math.log2(largest + 1.0)))

    @property
    def rounding(self) -> float:
        """Standard deviation of the roundings' error in sigma(z)."""
        his = float(np.sum(self.sigmoid.coefficients**2)) / 12 * 4.0**-self.bits
        hers = self.sigmoid.waves / 6 * (2.0**self.bits / self.step) ** 2
        return math.sqrt(his + hers)

    @property
    def loss_rounding(self) -> float:
        """Standard deviation of the error that Bob's roundings make in the loss of a row."""
        spread = float(np.sum(self.sigmoid.loss_coefficients**2)) / 12
        return math.sqrt(spread) * 2.0**-self.bits

    def phases(self, share: IntArray, factors: FloatArray) -> IntArray:
        """Bob's numbers: one row per share, times its factor."""
        waves = self._waves(share) * factors[:, np.newaxis]
        scaled = np.stack([waves.real, waves.imag], axis=2).reshape(len(share), -1)
        return np.rint(scaled * 2.0**self.bits).astype(np.int64)

    def table(self, share: IntArray, entropy: Entropy) -> IntArray:
        """Alice's numbers: a row for each of her shares."""
        waves = self._waves(share) * (self.step * 2.0**-self.bits * self.sigmoid.coefficients)
        return self._rounded(waves.imag, waves.real, entropy)

    def loss_table(self, share: IntArray, unit: float, entropy: Entropy) -> IntArray:
        """Alice's numbers for the loss, for the same numbers of Bob's.

        The sum of the products is ``-unit (g(z) - H/4)`` times Bob's factor.
        """
        waves = self._waves(share) * (unit * 2.0**-self.bits * self.sigmoid.loss_coefficients)
        return self._rounded(waves.real, -waves.imag, entropy)

    def _rounded(self, by_cosine: FloatArray, by_sine: FloatArray, entropy: Entropy) -> IntArray:
        """Numbers that multiply Bob's cosines and sines, each rounded at random to its own mean."""
        scaled = np.stack([by_cosine, by_sine], axis=2).reshape(len(by_cosine), -1)
        # A hair below 1 at most: a whole number must not be carried to the next by rounding.
        scaled += entropy.uniform(scaled.shape) * (1.0 - 2.0**-32)
        return np.floor(scaled).astype(np.int64)

    def _waves(self, share: IntArray) -> npt.NDArray[np.complex128]:
        """``exp(i k angle)`` of each share, for each odd k."""
        turn = 2 * math.pi * 2.0**-self.modulus_bits
        first = on_circle(np.multiply(share, turn, dtype=np.float64))
        waves = np.empty((len(share), self.sigmoid.waves), dtype=np.complex128)
        waves[:, 0], twice = first, first * first
        for at in range(1, self.sigmoid.waves):
            waves[:, at] = waves[:, at - 1] * twice
        return waves


def on_circle(angles: FloatArray) -> npt.NDArray[np.complex128]:
    """``exp(i angle)`` for angles within ±pi, by multiplications and additions alone.

    A peer may time this: a library's sine takes longer for some angles.
    """
    small = 1j * angles * 2.0**-_HALVINGS
    total = np.ones(len(angles), dtype=np.complex128)
    for order in range(_SERIES, 0, -1):
        total = 1.0 + small * total / order
    for _ in range(_HALVINGS):
        total = total * total
    return total
