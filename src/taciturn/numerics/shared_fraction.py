"""A fraction of a number that two parties share modulo ``t = 2^k``.

Sums and whole multiples of shares need no exchange. A fraction does: with the parts a and b as
numbers from 0 to t, ``a + b`` is the number, or the number and t, and halving both parts halves
that t as well. What both sides must know of it, shared in its turn, is the *carry*, 0 or 1.

One side adds t/2 to its part, so that with ``|x| < t/4``

    a + b = x + t/2 + t c        t/4 < x + t/2 < 3t/4

With ``a < t/2``, c = 1 makes b more than 3t/4, and c = 0 less; with ``a >= t/2``, more and less
than t/4. So b alone tells c, but where it is from t/4 to 3t/4, and there a tells it:

    c = [b >= 3t/4] + [a >= t/2] [t/4 <= b < 3t/4]

One product of two numbers that are 0 or 1, whose sum is one side's to add (``Carry``). The same
holds modulo a prime.

**Guarantee.** For ``|x| < t/4`` the carry is exact, ``scaled_down`` is off by less than two units
and ``accelerated`` by less than ten, whatever the parts are (tests go through whole small rings).
``widened`` is off by two units at most. All is done by additions, multiplications and shifts, with
the same work for all shares.

**Assumes.** ``|x| < t/4``. Beyond, the carry may be wrong, and the result another number: what a
score beyond its range is too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from taciturn.arrays import IntArray, WordArray

UNIT_BITS = 10
"""A momentum is two whole numbers of ``2^-UNIT_BITS``."""
_UNIT = 1 << UNIT_BITS


class Momentum(NamedTuple):
    """Extrapolation beyond the last step, in units of ``2^-UNIT_BITS``.

    ``by_step`` multiplies the way from the step before, ``by_point`` that from the point at which
    the last step started; each is from 0 to 1.
    """

    by_step: int
    by_point: int


@dataclass(frozen=True, slots=True)
class Carried:
    """Shares of some numbers and of their carries, on one side.

    Parts are from 0 to t, with t/2 added on the side that raises; carries are shares of 0 or 1,
    modulo t.
    """

    parts: IntArray = field(repr=False)
    carries: IntArray = field(repr=False)


@dataclass(frozen=True, slots=True)
class Carry:
    """One side's numbers for the carries of parts modulo ``modulus``."""

    modulus: int
    raises: bool

    def factors(self, parts: IntArray) -> IntArray:
        """What this side multiplies, a row for each part: 0 or 1."""
        quarter = self.modulus // 4
        if self.raises:
            chosen = parts >= self.modulus // 2
        else:
            chosen = (parts >= quarter) & (parts < self.modulus - quarter)
        return chosen.astype(np.int64)[:, np.newaxis]

    def completed(self, products: IntArray, parts: IntArray) -> IntArray:
        """This side's shares of the carries, from its shares of the products."""
        if self.raises:
            return products
        return products + (parts >= self.modulus - self.modulus // 4)


@dataclass(frozen=True, slots=True)
class Widening:
    """Shares modulo a prime p, as shares of ``factor`` times the numbers modulo a power of two.

    Numbers are below p/4 in size, and the factor is below ``2^63 / p``. The side that ``raises``
    adds half of p.

    >>> alice, bob = (Widening(97, 2.5, raises=raises) for raises in (True, False))
    >>> hers, his = alice.parts(np.array([90], np.uint64)), bob.parts(np.array([20], np.uint64))
    >>> product = (alice.carry.factors(hers) * bob.carry.factors(his)).sum(axis=1)
    >>> own = alice.widened(Carried(hers, alice.carry.completed(0 * product, hers)))
    >>> int((own + bob.widened(Carried(his, bob.carry.completed(product, his))))[0]), 13 * 2.5
    (32, 32.5)
    """

    modulus: int
    factor: float
    raises: bool

    @property
    def carry(self) -> Carry:
        """How carries are made."""
        return Carry(self.modulus, self.raises)

    def parts(self, shares: WordArray) -> IntArray:
        """This side's parts in [0, p), of shares from 0 to p."""
        raised = shares + np.uint64(self._raised)
        lowered: WordArray = np.minimum(raised, raised - np.uint64(self.modulus))
        return lowered.view(np.int64)

    def widened(self, now: Carried) -> IntArray:
        """This side's shares; not reduced."""
        scaled = np.rint(now.parts * self.factor).astype(np.int64)
        carried = now.carries * self._whole(self.modulus)
        shares: IntArray = scaled - carried - self._whole(self._raised)
        return shares

    def _whole(self, number: int) -> np.int64:
        return np.int64(round(number * self.factor))

    @property
    def _raised(self) -> int:
        return self.modulus // 2 if self.raises else 0


@dataclass(frozen=True, slots=True)
class SharedFraction:
    """One side's work.

    Shares live modulo ``2^modulus_bits``. Numbers are divided by ``2^shift``, with a shift from
    ``modulus_bits - 51`` to ``modulus_bits - 1 - UNIT_BITS``. The side that ``raises`` adds t/2.

    >>> alice, bob = SharedFraction(20, 8, raises=True), SharedFraction(20, 8, raises=False)
    >>> mask = np.array([123_456, 900_000])
    >>> parts = alice.parts(mask), bob.parts(np.array([100_000, -100_000]) - mask)
    >>> products = (alice.carry.factors(parts[0]) * bob.carry.factors(parts[1])).sum(axis=1)
    >>> carries = bob.carry.completed(products, parts[1])
    >>> hers, his = Carried(parts[0], np.zeros(2, dtype=np.int64)), Carried(parts[1], carries)
    >>> both = alice.scaled_down(hers) + bob.scaled_down(his)
    >>> ((both + 2**19) % 2**20 - 2**19).tolist(), 100_000 / 2**8
    ([390, -392], 390.625)
    """

    modulus_bits: int
    shift: int
    raises: bool

    def parts(self, shares: IntArray) -> IntArray:
        """This side's parts in [0, t): its shares, plus t/2 where it ``raises``, modulo t."""
        raised = shares + (np.int64(self.raises) << np.int64(self.modulus_bits - 1))
        parts: IntArray = np.bitwise_and(raised, np.int64((1 << self.modulus_bits) - 1))
        return parts

    @property
    def carry(self) -> Carry:
        """How carries are made."""
        return Carry(1 << self.modulus_bits, self.raises)

    def scaled_down(self, now: Carried) -> IntArray:
        """This side's share of ``x / 2^shift``; not reduced modulo t."""
        # The t that a carry stands for is a whole number of units here: t is a power of two.
        carries = now.carries << np.int64(self.modulus_bits - self.shift)
        return (now.parts >> np.int64(self.shift)) - carries - self._raised(self.shift)

    def accelerated(
        self, now: Carried, before: Carried, start: Carried, momentum: Momentum
    ) -> IntArray:
        """This side's share of ``((1 + b + g) x - b x') / 2^shift - g y``; not reduced modulo t.

        x is ``now``, x' ``before`` and y the ``start`` of the last step, which has no digits to
        spare; b and g are the momentum.
        """
        by_step, by_point = momentum
        ahead, shift, unit = _UNIT + by_step + by_point, self.shift, np.int64(UNIT_BITS)
        parts = (now.parts >> np.int64(shift)) * ahead - (before.parts >> np.int64(shift)) * by_step
        carries = now.carries * ahead - before.carries * by_step
        carries <<= np.int64(self.modulus_bits - shift - UNIT_BITS)
        raised = self._raised(shift + UNIT_BITS) * (ahead - by_step)
        return (parts >> unit) - carries - raised - self._times(start, by_point)

    def _times(self, number: Carried, factor: int) -> IntArray:
        """This side's share of ``factor y / 2^UNIT_BITS``."""
        # In two parts: 64 bits do not hold the product of a whole share.
        high, low = number.parts >> np.int64(UNIT_BITS), number.parts & np.int64(_UNIT - 1)
        carries = (number.carries * factor) << np.int64(self.modulus_bits - UNIT_BITS)
        parts: IntArray = high * factor + (low * factor >> np.int64(UNIT_BITS))
        return parts - carries - self._raised(UNIT_BITS) * factor

    def _raised(self, shift: int) -> np.int64:
        """What ``parts`` added to a share, t/2 or 0, divided by ``2^shift``."""
        return np.int64(self.raises) << np.int64(self.modulus_bits - 1 - shift)


def momentum(number: int, passes: int) -> Momentum:
    """The b and g of the step after pass ``number`` of ``passes``, in units of ``2^-UNIT_BITS``.

    >>> [tuple(momentum(number, 42)) for number in (0, 1, 2, 40)]
    [(0, 632), (288, 755), (444, 816), (679, 712)]
    """
    now = 1.0
    for _ in range(number):
        now = _following(now, 4.0)
    last = number == passes - 2
    factor = (1 << UNIT_BITS) / _following(now, 8.0 if last else 4.0)
    return Momentum(math.floor((now - 1.0) * factor), math.floor(now * factor))


def _following(size: float, factor: float) -> float:
    return (1.0 + math.sqrt(1.0 + factor * size * size)) / 2.0
