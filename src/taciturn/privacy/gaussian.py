"""Discrete Gaussian noise, exact, and how much of it a guarantee needs.

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
from functools import cache

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
