"""Release of the model: Alice's weights with noise, at a price that is known beforehand.

With ``reveal_epsilon`` Bob descends on a public schedule (``taciturn.numerics.descent``). One label
moves one slope by 1 at most, and no step takes two weights further apart, so that K steps of 1/P
take them ``K (R / P n)`` apart, R the length of a row of both tables. The rows' numbers are rounded
at random in each step. That moves weights by ``B`` at most, but for a probability of ``failure``::

    B = 2^-g sqrt(n) (sqrt(d) + min(sqrt(d), 2) sqrt(2 ln(1 / failure)))
    sensitivity = K (R / P n + 2 B)                        g the digits of the rows' numbers

Discrete Gaussian noise for that much stands on Bob's share before he sends it. ``docs/sealed.md``
has the proof.

**Guarantee.** What Alice receives is (epsilon, delta)-differentially private in each label; a tenth
of delta is for the roundings. All figures follow from what is agreed on and from the tables' sizes,
and from nothing that depends on a label.

**Assumes.** Alice keeps to the protocol: her table is within its bounds, which Bob cannot see, and
her answers are the products that they should be. Floating point, with which Bob computes, errs by
less than a hundredth of the sensitivity, which is added for it.

Discrete Gaussian noise, exact, and how much of it a guarantee needs.

``P(x)`` is proportional to ``exp(-x^2 / 2 sigma^2)`` on the integers. Drawn by [CanonneKS20, Alg. 1
to 3]: a discrete Laplace draw, kept with a probability that makes it Gaussian, in whole numbers of
any size and comparisons only.

Independent noise on each entry of an integer vector, two values of which lie ``Delta`` apart in
Euclidean length, is ``rho``-concentrated differentially private with ``rho = Delta^2 / 2 sigma^2``
[CanonneKS20, §2], hence for every ``alpha > 1`` (epsilon, delta)-differentially private with ::

    delta = exp((alpha - 1) (alpha rho - epsilon)) (1 - 1/alpha)^alpha / (alpha - 1)

**Guarantee.** The distribution is the stated one; ``deviation`` is large enough for its guarantee.

**Assumes.** The draws of the entropy are uniform and independent. How long a draw takes depends on
it: this is for a single release, and not for one that is timed in thousands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from taciturn.arrays import IntArray
from taciturn.numerics.descent import parties_with_columns, row_bound
from taciturn.privacy.base import Released
from taciturn.privacy.events import NoisyModel
from taciturn.rng import Entropy

_SEARCH = 100
# alpha - 1 is sought between 2 to the minus and to the plus this.
_LARGEST_EXPONENT = 40.0
# Above the rounding errors of the search.
_ROUNDING = 1e-9


@cache
def deviation(sensitivity: float, epsilon: float, delta: float) -> int:
    """The least whole sigma, nearly, whose noise is (epsilon, delta)-differentially private.

    ``sensitivity`` is the Euclidean distance of two values, as integers.
    """
    low, high = 0.0, 1.0
    while _delta(high, epsilon) < delta:
        high *= 2.0
    for _ in range(_SEARCH):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _delta(middle, epsilon) <= delta else (low, middle)
    return max(1, math.ceil(sensitivity / math.sqrt(2.0 * low) * (1.0 + _ROUNDING)))


def delta_of(sigma: float, sensitivity: float, epsilon: float) -> float:
    """A delta at which noise of this sigma guarantees epsilon."""
    return _delta(sensitivity**2 / (2.0 * sigma**2), epsilon)


def _delta(rho: float, epsilon: float) -> float:
    """The least of the formula's values over alpha, or nearly: each of them is true."""

    def logarithm(exponent: float) -> float:
        less = math.exp2(exponent)
        alpha = 1.0 + less
        # (1 - 1/alpha)^alpha, from the quotient (alpha - 1)/alpha.
        shrink = alpha * (math.log(less) - math.log1p(less))
        return less * (alpha * rho - epsilon) + shrink - math.log(less)

    low, high = -_LARGEST_EXPONENT, _LARGEST_EXPONENT
    for _ in range(_SEARCH):
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (low, right) if logarithm(left) < logarithm(right) else (left, high)
    return math.exp(min(0.0, logarithm((low + high) / 2.0)))


def draw(sigma: int, entropy: Entropy) -> int:
    """One draw of discrete Gaussian noise.

    ``sigma`` is 1 or more, nearly the standard deviation; ``entropy`` is a stream for this purpose
    alone.
    """
    scale, square = sigma + 1, sigma * sigma
    while True:
        proposed = _laplace(scale, entropy)
        # (|y| - sigma^2 / t)^2 / 2 sigma^2 as a quotient of integers.
        above = (abs(proposed) * scale - square) ** 2
        if _decays(above, 2 * square * scale * scale, entropy):
            return proposed


def _laplace(scale: int, entropy: Entropy) -> int:
    """An integer of probability proportional to ``exp(-|x| / scale)``."""
    while True:
        fraction = entropy.below(scale)
        if not _decays(fraction, scale, entropy):
            continue
        whole = 0
        while _decays(1, 1, entropy):
            whole += 1
        size = fraction + scale * whole
        negative = bool(entropy.below(2))
        # Zero would otherwise have two ways to come.
        if not (negative and size == 0):
            return -size if negative else size


def _decays(above: int, below: int, entropy: Entropy) -> bool:
    """Bernoulli draw with probability ``exp(-above / below)``."""
    whole, rest = divmod(above, below)
    # The first failure ends it: a huge exponent takes no longer than a small one.
    for _ in range(whole):
        if not _decays_by_fraction(1, 1, entropy):
            return False
    return _decays_by_fraction(rest, below, entropy)


def _decays_by_fraction(above: int, below: int, entropy: Entropy) -> bool:
    """Bernoulli draw for an exponent of 1 at most [CanonneKS20, Alg. 1]."""
    number = 1
    while entropy.below(below * number) < above:
        number += 1
    return number % 2 == 1


_ROUNDINGS_PART = 0.1
_FLOATING_POINT = 1.01


@dataclass(frozen=True, slots=True)
class ModelRelease:
    """The release of Alice's weights at the end of a training.

    ``rows`` is n and ``alice_columns`` d. Bob's columns include an intercept; ``bob_free`` of them
    carry no penalty. Scores are exchanged in ``passes``; there is one step more. ``row_bits`` is g,
    the digits of the rows' numbers, and ``weight_bits`` the digits of a weight.
    """

    event: NoisyModel
    rows: int
    alice_columns: int
    bob_columns: int
    bob_free: int
    passes: int
    row_bits: int
    weight_bits: int

    @property
    def steps(self) -> int:
        """K: the first is from zero, where scores need no exchange."""
        return self.passes + 1

    @property
    def log_inverse_failure(self) -> float:
        """``ln(1 / failure)`` of one step's rounding."""
        return log_inverse_failure(self.event, self.passes)

    @property
    def row_bound(self) -> float:
        """R: largest length of a row of both tables."""
        return math.hypot(row_bound(self.alice_columns), row_bound(self.bob_columns, self.bob_free))

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity of the whitened weights to one label."""
        moved = self.row_bound / (parties_with_columns(self.bob_columns) * self.rows)
        rounded = rounding_error(self.rows, self.alice_columns, self.log_inverse_failure)
        both_runs = 2.0 * math.ldexp(rounded, -self.row_bits)
        return _FLOATING_POINT * self.steps * (moved + both_runs)

    @property
    def sigma(self) -> int:
        """Parameter of the noise, in units of a weight's last digit."""
        sensitivity = math.ldexp(self.sensitivity, self.weight_bits)
        delta = (1.0 - _ROUNDINGS_PART) * self.event.delta
        return deviation(sensitivity, self.event.epsilon, delta)

    def release(self, share: IntArray, modulus_bits: int, entropy: Entropy) -> Released[IntArray]:
        """Bob's share, integers modulo ``2^modulus_bits``, with noise.

        What is beyond the modulus wraps, which costs nothing. ``entropy`` is a stream for this
        purpose alone.
        """
        sigma, half = self.sigma, 1 << (modulus_bits - 1)
        noisy = [entry + draw(sigma, entropy) for entry in share.tolist()]
        wrapped = [(entry + half) % (2 * half) - half for entry in noisy]
        return Released(np.array(wrapped, dtype=np.int64), self.event)


def log_inverse_failure(event: NoisyModel, passes: int) -> float:
    """``ln(1 / failure)`` of one step's rounding, such that all of them take a tenth of delta.

    Roundings that fail with probability p, summed over all steps, cost ``p (1 + e^epsilon)`` of
    delta.
    """
    both = float(np.logaddexp(0.0, event.epsilon))
    return math.log((passes + 1) / (_ROUNDINGS_PART * event.delta)) + both


def rounding_error(rows: int, columns: int, log_inverse_failure: float) -> float:
    """Bound on how far one step's rounding moves weights, in units of the rows' last digit."""
    spread = min(math.sqrt(columns), 2.0) * math.sqrt(2.0 * log_inverse_failure)
    return math.sqrt(rows) * (math.sqrt(columns) + spread)
