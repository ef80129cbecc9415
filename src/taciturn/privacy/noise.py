"""Discrete Laplace noise, exact and drawn ahead, and the closed forms of its distribution.

A *unit* draw is a geometric integer ``G >= 0`` with ``P(G >= g) = exp(-g / 2^56)``, made by the
exact method of [CanonneKS20, Alg. 1 and 2]: integers and comparisons only, no logarithm whose
rounding would show [Mironov12]. For any whole divisor s the quotient ``G // s`` is again exactly
geometric, of scale ``2^56 / s``, and the difference of two of them is exactly discrete Laplace::

    P(k) = tanh(1 / (2 sigma)) exp(-|k| / sigma),    sigma = 2^56 / s
    P(K >= k) = exp(-k/sigma) / (1 + exp(-1/sigma)),    k >= 1

So one stock of unit draws serves every scale, also one that differs from row to row, and a batch
costs two divisions. The divisor is rounded down: the scale is not below the one asked for, but for
the rounding of a real, and above it by a part in s at most, which is 2^16 or more.

On reals ``p(x) = exp(-|x|/sigma) / (2 sigma)`` and ``P(X >= x) = exp(-x/sigma)/2`` for ``x >= 0``.

**Guarantee.** The distribution is the stated one, but for draws beyond ``2^63``, which are cut
there: probability ``exp(-128)``, below 2^-184, each. The closed forms are exact up to the rounding
of double precision.

**Assumes.** The words of the entropy are uniform and independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias

import numpy as np
from numpy.typing import NDArray

from taciturn.arrays import BoolArray, FloatArray, IntArray, WordArray
from taciturn.errors import ConfigError
from taciturn.privacy.base import D
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint

UNIT_BITS = 56
SMALLEST_DIVISOR, LARGEST_DIVISOR = 1 << 16, 1 << 63
_UNIT = 1 << UNIT_BITS
_FRACTION = np.uint64(_UNIT - 1)
_MOST_WHOLE = 127
_BLOCK_ROWS = 4096


def divisor(sigma: float) -> int:
    """The divisor that turns unit draws into noise of scale ``sigma`` or a little more."""
    if not (math.isfinite(sigma) and sigma > 0):
        raise ConfigError(f"invalid noise scale {sigma:g}", setting="epsilon")
    # Beyond the largest there is no noise at all, and a larger scale costs no privacy.
    steps = math.floor(min(_UNIT / sigma, LARGEST_DIVISOR))
    if steps < SMALLEST_DIVISOR:
        raise ConfigError(
            f"noise of {sigma:.3g} steps of the residues' grid is more than the sampler resolves",
            setting="epsilon",
            hint=Hint("raise {epsilon} or {b1}, or lower {b2} or {residue_bits}"),
        )
    return steps


def scale(divisor: int) -> float:
    """Scale of the noise for a divisor."""
    return _UNIT / divisor


@dataclass(frozen=True, slots=True)
class LaplaceDraws:
    """Unit draws in pairs, for as many numbers."""

    left: WordArray = field(repr=False)
    right: WordArray = field(repr=False)

    def noise(self, divisors: int | WordArray) -> IntArray:
        """Discrete Laplace noise of one scale, or of one scale per number."""
        by = np.uint64(divisors) if isinstance(divisors, int) else divisors
        return (self.left // by).astype(np.int64) - (self.right // by).astype(np.int64)

    def __getitem__(self, rows: slice) -> LaplaceDraws:
        return LaplaceDraws(self.left[rows], self.right[rows])


def draw(count: int, entropy: Entropy) -> LaplaceDraws:
    """Fresh draws for ``count`` numbers."""
    both = geometric(2 * count, entropy)
    return LaplaceDraws(both[:count], both[count:])


class Stock(Generic[D]):
    """Draws for every iteration of a training, made in blocks ahead of their use.

    Each block has a stream of its own, derived from its number: what an iteration gets does not
    depend on which were asked for before, so that a resumed run draws nothing anew.

    ``entropy`` is a stream for this purpose alone; ``batch_size`` is the most numbers that an
    iteration takes.
    """

    def __init__(
        self, draw: Callable[[int, Entropy], D], entropy: Entropy, batch_size: int
    ) -> None:
        self._draw = draw
        self._entropy = entropy
        self._batch_size = batch_size
        self._per_block = max(1, _BLOCK_ROWS // batch_size)
        self._block: tuple[int, D] | None = None

    def take(self, iteration: int, count: int) -> D:
        """The draws of one iteration."""
        number, place = divmod(iteration, self._per_block)
        if self._block is None or self._block[0] != number:
            size = self._per_block * self._batch_size
            self._block = number, self._draw(size, self._entropy.fork(f"block {number}"))
        start = place * self._batch_size
        part: D = self._block[1][start : start + min(count, self._batch_size)]
        return part


def bernoulli_exp(exponent: float, count: int, entropy: Entropy) -> BoolArray:
    """Bernoulli draws with probability ``exp(-exponent)``, the exponent to 2^-56."""
    whole, rest = divmod(math.floor(math.ldexp(exponent, UNIT_BITS)), _UNIT)
    heads = _bernoulli_exp_units(np.full(count, rest, dtype=np.uint64), entropy)
    for _ in range(whole):
        still = np.flatnonzero(heads)
        if not len(still):
            break
        ones = np.full(len(still), _UNIT, dtype=np.uint64)
        heads[still] = _bernoulli_exp_units(ones, entropy)
    return heads


def response_flips(epsilon: float, count: int, entropy: Entropy) -> BoolArray:
    """Bits that are 1 with probability ``1/(1+e^eps)``, exactly [CanonneKS20].

    A fair bit proposes; a proposed 1 stands with probability ``exp(-eps)``, else all is repeated.
    """
    flips = np.zeros(count, dtype=bool)
    going = np.arange(count)
    while len(going):
        proposed = (entropy.words(len(going)) & np.uint64(1)).astype(bool)
        stands = bernoulli_exp(epsilon, len(going), entropy)
        flips[going] = proposed & stands
        going = going[proposed & ~stands]
    return flips


def geometric(count: int, entropy: Entropy) -> WordArray:
    """Unit draws: ``P(G >= g) = exp(-g / 2^56)``, exactly.

    The fraction below 2^56 has a probability proportional to ``exp(-u / 2^56)``; the whole part is
    the number of Bernoulli(exp(-1)) successes before the first failure.
    """
    return _fraction(count, entropy) + (_whole(count, entropy) << np.uint64(UNIT_BITS))


def _fraction(count: int, entropy: Entropy) -> WordArray:
    accepted = np.empty(0, dtype=np.uint64)
    while len(accepted) < count:
        # Uniform, then kept with probability exp(-u / 2^56): 63 % of them are.
        tries = entropy.words(64 + (count - len(accepted)) * 17 // 10) & _FRACTION
        accepted = np.concatenate([accepted, tries[_bernoulli_exp_units(tries, entropy)]])
    return accepted[:count]


def _whole(count: int, entropy: Entropy) -> WordArray:
    wholes = np.zeros(count, dtype=np.uint64)
    going = np.arange(count)
    for _ in range(_MOST_WHOLE):
        ones = np.full(len(going), _UNIT, dtype=np.uint64)
        going = going[_bernoulli_exp_units(ones, entropy)]
        if not len(going):
            break
        wholes[going] += np.uint64(1)
    return wholes


def _bernoulli_exp_units(gammas: WordArray, entropy: Entropy) -> BoolArray:
    """Bernoulli draws with probability ``exp(-gamma / 2^56)``, gamma at most 2^56.

    [CanonneKS20, Alg. 1]: count how long draws of probability ``gamma / k``, k = 1, 2, …, succeed;
    the first failure comes at an odd k with exactly that probability.
    """
    result = np.zeros(len(gammas), dtype=bool)
    going = np.arange(len(gammas))
    k = 1
    while len(going):
        heads = entropy.integers(_UNIT * k, len(going)) < gammas[going]
        result[going[~heads]] = k % 2 == 1
        going = going[heads]
        k += 1
    return result


def continuous_laplace(scales: float | FloatArray, count: int, entropy: Entropy) -> FloatArray:
    """Laplace noise in floating point, for simulations of the formula as printed.

    Its low bits depend on what it is added to and can give that away [Mironov12]: nothing that
    connects two real parties may use it.
    """
    uniform = entropy.uniform((2, count))
    # 1 - u lies in (0, 1]: the logarithm is finite.
    size: FloatArray = -np.log1p(-uniform[0])
    return np.where(uniform[1] < 0.5, -size, size) * scales


Scale: TypeAlias = float | FloatArray
Numbers: TypeAlias = NDArray[Any]
"""Integers or reals, as the law has it."""


def log_mass(k: IntArray, sigma: Scale) -> FloatArray:
    """``log P(K = k)`` on integers."""
    logs: FloatArray = np.log(np.tanh(0.5 / np.asarray(sigma))) - np.abs(k) / sigma
    return logs


def log_mass_at_least(k: IntArray, sigma: Scale) -> FloatArray:
    """``log P(K >= k)`` on integers."""
    at = np.asarray(k, dtype=np.float64)
    step = np.log1p(np.exp(-1.0 / np.asarray(sigma)))
    upper = -np.maximum(at, 1.0) / sigma - step
    lower = np.log1p(-np.exp(-(1.0 - np.minimum(at, 0.0)) / sigma - step))
    logs: FloatArray = np.where(at >= 1, upper, lower)
    return logs


def log_density(x: FloatArray, sigma: Scale) -> FloatArray:
    """``log p(x)`` on reals."""
    logs: FloatArray = -np.abs(x) / sigma - np.log(2.0 * np.asarray(sigma))
    return logs


def log_at_least(x: FloatArray, sigma: Scale) -> FloatArray:
    """``log P(X >= x)`` on reals."""
    at = np.asarray(x)
    upper = -np.maximum(at, 0.0) / sigma - np.log(2.0)
    lower = np.log1p(-0.5 * np.exp(np.minimum(at, 0.0) / sigma))
    logs: FloatArray = np.where(at >= 0, upper, lower)
    return logs


@dataclass(frozen=True, slots=True)
class Law:
    """Probability mass (or density) function and survival function, in logarithms."""

    log_point: Callable[[Numbers, Scale], FloatArray]
    log_at_least: Callable[[Numbers, Scale], FloatArray]


ON_INTEGERS = Law(log_mass, log_mass_at_least)
ON_REALS = Law(log_density, log_at_least)
