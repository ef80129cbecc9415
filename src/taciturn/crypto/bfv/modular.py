"""Multiplication modulo primes on whole arrays, with the same work for all values.

A peer may time Bob. What he does to numbers that depend on labels therefore has no branch, no
division and no Python integer in it: NumPy's instructions on 64-bit words take as long for one
value as for another. Multiplication by a constant is Shoup's [Harvey14]: with
``w' = floor(w 2^64 / p)`` the number ``a w - floor(a w' / 2^64) p``, computed modulo 2^64, is the
product modulo p or p more, for every a below 2^64, as long as ``p < 2^63``.

**Guarantee.** Exact; the sequence of instructions depends on lengths and constants alone.

**Assumes.** NumPy's 64-bit addition, multiplication, shift and minimum take the same time for all
operands, as they do on the processors of servers.
"""

from __future__ import annotations

import math

import numpy as np

from taciturn.arrays import IntArray, WordArray
from taciturn.rng import Entropy

_LOW = np.uint64(0xFFFFFFFF)
_HALF_WORD = np.uint64(32)


class Multiplier:
    """Multiplication of words modulo ``modulus``, by a constant or elementwise by several."""

    def __init__(self, factor: int | WordArray, modulus: int) -> None:
        given = [factor] if isinstance(factor, int) else factor.tolist()
        factors = [each % modulus for each in given]
        whole = np.array([(each << 64) // modulus for each in factors], dtype=np.uint64)
        self._factor, self._modulus = np.array(factors, dtype=np.uint64), np.uint64(modulus)
        self._low, self._high = whole & _LOW, whole >> _HALF_WORD

    def __call__(self, values: WordArray) -> WordArray:
        """The products modulo ``modulus``, for any words."""
        product = values * self._factor
        # The quotient is rounded down: what is left may exceed the modulus once, never twice.
        product -= _high_words(values, self._low, self._high) * self._modulus
        return lowered(product, self._modulus)


def _high_words(
    values: WordArray, other_low: np.uint64 | WordArray, other_high: np.uint64 | WordArray
) -> WordArray:
    """Upper words of products of words; the other factors are given by their halves."""
    low, high = values & _LOW, values >> _HALF_WORD
    middle = (low * other_low) >> _HALF_WORD
    first, second = low * other_high, high * other_low
    middle += (first & _LOW) + (second & _LOW)
    upper: WordArray = high * other_high
    upper += (first >> _HALF_WORD) + (second >> _HALF_WORD) + (middle >> _HALF_WORD)
    return upper


def products(first: WordArray, second: WordArray, modulus: int) -> WordArray:
    """Elementwise products of numbers below an odd modulus, which is below 2^63.

    Montgomery's: what makes the lower word vanish is taken off, and the upper word is the product
    divided by 2^64; one factor is multiplied with that first.
    """
    shifted = Multiplier((1 << 64) % modulus, modulus)(first)
    upper = _high_words(shifted, second & _LOW, second >> _HALF_WORD)
    inverse = pow(modulus, -1, 1 << 64)
    multiples = shifted * second * np.uint64(inverse)
    taken = _high_words(multiples, np.uint64(modulus & 0xFFFFFFFF), np.uint64(modulus >> 32))
    return lowered(upper + np.uint64(modulus) - taken, np.uint64(modulus))


def lowered(values: WordArray, modulus: np.uint64) -> WordArray:
    """Words below ``2 modulus``, brought below ``modulus``; for moduli below 2^63.

    The smaller of a number and the number less the modulus: below the modulus the difference wraps
    and is large.
    """
    smaller: WordArray = np.minimum(values, values - modulus)
    return smaller


class Grid:
    """Encoding of messages on the grid of q/t: ``round(q m / t)`` modulo each prime of q.

    With ``h = floor(t/2)`` and ``rho = (q m + h) mod t`` the rounded quotient is ``(q m + h - rho)
    / t``, and q is nothing modulo its primes: what remains is ``(h - rho) / t``.
    """

    def __init__(self, primes: tuple[int, ...], modulus: int) -> None:
        self.primes, self.modulus = primes, modulus
        self._message = Multiplier(math.prod(primes) % modulus, modulus)
        inverses = [pow(modulus, -1, prime) for prime in primes]
        self._inverses = [Multiplier(*pair) for pair in zip(inverses, primes, strict=True)]
        # One prime more keeps the difference above zero.
        self._shifts = [
            np.uint64(modulus // 2 * inverse % prime + prime)
            for inverse, prime in zip(inverses, primes, strict=True)
        ]

    def __call__(self, messages: IntArray) -> WordArray:
        """Grid points of integers modulo t; one row for each prime."""
        modulus = np.uint64(self.modulus)
        rest = self._message(reduced(messages, self.modulus))
        rest = lowered(rest + np.uint64(self.modulus // 2), modulus)
        points = np.empty((len(self.primes), len(messages)), dtype=np.uint64)
        for at, prime in enumerate(self.primes):
            points[at] = lowered(self._shifts[at] - self._inverses[at](rest), np.uint64(prime))
        return points

    def at_random(self, messages: WordArray, offsets: WordArray) -> WordArray:
        """``floor((q m + u) / t)`` modulo each prime: each message rounded to its own mean.

        Messages are below t; offsets u are uniform below t.
        """
        modulus = np.uint64(self.modulus)
        rest = lowered(self._message(messages) + offsets, modulus)
        points = np.empty((len(self.primes), len(messages)), dtype=np.uint64)
        for at, prime in enumerate(self.primes):
            # A multiple of the prime that keeps the difference above zero, and below 2^64.
            above = np.uint64(-(-self.modulus // prime) * prime)
            points[at] = self._inverses[at](offsets + above - rest)
        return points


def rounded_fractions(values: WordArray, modulus: int, bits: int) -> WordArray:
    """``round(2^bits v / modulus)`` of numbers below a modulus, which is between 2^bits and 2^62.

    A half is rounded up; the result is from 0 to ``2^bits``.

    >>> rounded_fractions(np.arange(11, dtype=np.uint64), 11, 2).tolist()
    [0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4]
    """
    reciprocal = (1 << (64 + bits)) // modulus
    low, high = np.uint64(reciprocal & 0xFFFFFFFF), np.uint64(reciprocal >> 32)
    quotient = _high_words(values, low, high)
    # What the quotient leaves is computed modulo 2^64. It is less than 5/4 of the modulus, and with
    # the half that rounds less than twice the modulus.
    rest = (values << np.uint64(bits)) - quotient * np.uint64(modulus) + np.uint64(modulus // 2)
    rounded: WordArray = quotient + (rest >= np.uint64(modulus))
    return rounded


def reduced(values: IntArray, modulus: int) -> WordArray:
    """Integers of at most ``modulus`` in size, as numbers from 0 to it, in constant time."""
    # A negative number wraps to 2^64 less its size; its sign bit brings it back, unbranched.
    words = values.astype(np.uint64)
    words += np.uint64(modulus) * (words >> np.uint64(63))
    return words


def block_sums(values: WordArray, modulus: int) -> WordArray:
    """Sum of each row of numbers below a modulus, modulo it; for up to 2^31 of them."""
    low = (values & _LOW).sum(axis=1, dtype=np.uint64)
    high = (values >> _HALF_WORD).sum(axis=1, dtype=np.uint64)
    summed = Multiplier(1 << 32, modulus)(high) + Multiplier(1, modulus)(low)
    return lowered(summed, np.uint64(modulus))


class Flood:
    """Numbers uniform on ``[-half, half)``, modulo several primes at once.

    A top part of ``top_bits`` and free bits below; what lies beyond the end is drawn again.
    """

    def __init__(self, primes: tuple[int, ...], half: int, top_bits: int = 64) -> None:
        self.primes, self.half = primes, half
        rest = max(0, (2 * half).bit_length() - top_bits)
        self._widths = tuple(min(64, rest - at) for at in range(0, rest, 64))
        self._top = 2 * half >> rest
        self._parts = [
            (
                Multiplier(1, prime),
                [Multiplier((1 << width) % prime, prime) for width in self._widths],
                np.uint64(-half % prime),
            )
            for prime in primes
        ]

    def __call__(self, count: int, entropy: Entropy) -> WordArray:
        """Draw ``count`` numbers; one row per prime."""
        drawn = [entropy.integers(self._top + bool(self._widths), count)]
        for at, width in enumerate(self._widths):
            drawn.append(entropy.fork(f"part {at}").words(count) >> np.uint64(64 - width))
        for place in np.flatnonzero(drawn[0] == np.uint64(self._top)).tolist():
            # One of 2^63: the last piece of the range, of which not all is within it.
            self._bring_within(drawn, place, entropy)
        numbers = np.empty((len(self.primes), count), dtype=np.uint64)
        for at, (once, shifts, centre) in enumerate(self._parts):
            modulus = np.uint64(self.primes[at])
            summed = once(drawn[0])
            for part, shift in zip(drawn[1:], shifts, strict=True):
                summed = lowered(shift(summed) + once(part), modulus)
            numbers[at] = lowered(summed + centre, modulus)
        return numbers

    def _bring_within(self, drawn: list[WordArray], place: int, entropy: Entropy) -> None:
        number = int(drawn[0][place])
        for part, width in zip(drawn[1:], self._widths, strict=True):
            number = (number << width) + int(part[place])
        if number < 2 * self.half:
            return
        number = entropy.below(2 * self.half)
        for part, width in zip(reversed(drawn[1:]), reversed(self._widths), strict=True):
            part[place] = number & ((1 << width) - 1)
            number >>= width
        drawn[0][place] = number
