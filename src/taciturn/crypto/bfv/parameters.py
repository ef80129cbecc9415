"""The parameter sets of BFV, with what is proven about each.

A set has the ring degree N and three kinds of primes: ``kept`` ones carry an answer to Bob, the
``dropped`` ones are switched away by Alice before she answers, and a small ``special`` one is
SEAL's own (its keys live one prime higher than its ciphertexts). With q' the product of the kept
and P that of the dropped primes, a vector is encrypted modulo q' P, and an answer is modulo q'.

**Failure.** After switching, the noise of an answer's entry is ``E/P + tau_0 + <tau_1, s> + 1``: E
the noise before, tau the rounding errors, uniform on [-1/2, 1/2], s the ternary secret, and 1 for
the two roundings of messages. It must stay below ``q'/(2t)``. Uniform variables on [-1/2, 1/2] are
sub-Gaussian with variance proxy 1/12, so with all N entries of s non-zero

    P(|noise| >= q'/(2t)) <= 2 exp(-6 (q'/(2t) - E/P - 2)^2 / N)

**What Bob learns of the matrix.** An entry of the answer depends on E only where adding E/P moves a
rounding, which has probability ``|E|/P``: replacing E by 0 changes an answer of d entries by a
statistical distance of at most ``d |E| / P``. See ``docs/encryption.md`` for the whole argument.

**E** is ``X e`` for each encrypted piece, plus Alice's encryption of zero. SEAL's errors e are
centred binomial with 42 coin tosses (variance proxy 21/2); the entries of ``X e`` are sums of at
most N of them with factors of at most 2^matrix_bits, and exceed ``TAIL sqrt(21/2 N) 2^matrix_bits``
with probability below 2 exp(-TAIL^2/2), below 2^-100 for TAIL = 12. Rounding a message to the grid
of q/t adds at most half of the sum of the factors' sizes, ``N 2^matrix_bits / 2``.

**Messages of full range** (``Wrapping``). E does not depend on the message: a message m stands as
``q m/t`` rounded, not as m times a rounded q/t, so that ``X (q/t) m`` and ``(q/t) (X m mod t)``
differ by a multiple of q, which is nothing. Both bounds hold for vectors that are uniform modulo t
and products that wrap; a smaller multiple of q/t would have left ``(q mod t) floor(X m / t)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from taciturn.crypto.base import Capacity, Wrapping
from taciturn.errors import CryptoError

DEGREE = 8192
SECURITY_BITS = 128
# The most bits of all primes together at which degree 8192 has 128-bit security
# [HomomorphicEncryptionStandard18, table 1, ternary secrets].
MOST_PRIME_BITS = 218
LEAST_FAILURE_BITS = 100
# The customary statistical security parameter, for one answer; at the sizes of a training it is 68
# and more, which leaves room for as many answers as a training has.
LEAST_LEAK_BITS = 40
MOST_EXTRA_PIECES = 15
_TAIL = 12.0
_ERROR_PROXY = 21 / 2
_ERROR_LARGEST = 21


@dataclass(frozen=True, slots=True)
class BfvParameters:
    """One choice of primes.

    >>> NARROW.prime_bits, sum(NARROW.prime_bits)
    ((60, 56, 56, 20), 192)
    """

    name: str
    kept: tuple[int, ...]
    dropped: tuple[int, ...] = (56, 56)
    special: int = 20

    @property
    def prime_bits(self) -> tuple[int, ...]:
        """All primes, in SEAL's order: the last ones are dropped first."""
        return (*self.kept, *self.dropped, self.special)

    def plain_modulus(self, capacity: Capacity) -> int:
        """The smallest odd modulus that tells all products of the capacity apart, or the agreed."""
        if isinstance(capacity, Wrapping):
            return 1 << capacity.modulus_bits
        return (1 << (capacity.product_bits + 1)) + 1

    def failure_bits(self, capacity: Capacity) -> float:
        """-log2 of a bound on the probability that an entry decrypts to another number."""
        noise = self.noise(capacity, most_pieces(capacity.terms)) / _power(self.dropped)
        room = _power(self.kept) / (2 * self.plain_modulus(capacity)) - noise - 2
        return -math.inf if room <= 0 else 6 * room**2 / DEGREE / math.log(2) - 1

    def leak_bits(self, capacity: Capacity, entries: int, pieces: int = 1) -> float:
        """-log2 of the statistical distance per answer of what Bob learns of the matrix.

        Args:
            capacity: The sizes of the products.
            entries: How many rows the matrix has.
            pieces: How many ciphertexts the vector takes.

        >>> round(NARROW.leak_bits(Capacity(20, 20, 16), entries=30))
        74
        """
        return math.log2(_power(self.dropped)) - math.log2(entries * self.noise(capacity, pieces))

    def check_leak(self, capacity: Capacity, entries: int, pieces: int) -> None:
        """Refuses an answer that would tell too much of the matrix.

        Raises:
            CryptoError: The distance of ``leak_bits`` is above 2^-LEAST_LEAK_BITS.
        """
        found = self.leak_bits(capacity, entries, pieces)
        if found < LEAST_LEAK_BITS:
            raise CryptoError(
                f"an answer of {entries} entries would hide its matrix to within 2^-{found:.0f} "
                f"only, where 2^-{LEAST_LEAK_BITS} is the least",
                hint="lower the fixed-point bits, clip the features, or use fewer rows at a time",
            )

    def noise(self, capacity: Capacity, pieces: int = 1) -> float:
        """The bound on E, wrong with probability below 2^-100 per entry."""
        largest = 1 << capacity.matrix_bits
        random = _TAIL * math.sqrt(_ERROR_PROXY * DEGREE * pieces) * largest
        rounding = DEGREE * pieces * largest / 2
        zero = _ERROR_LARGEST * (2 * DEGREE + 1)
        return random + rounding + zero


def most_pieces(terms: int) -> int:
    """The most ciphertexts that a layout may cut a vector into: a few more than it must be."""
    return -(-terms // DEGREE) + MOST_EXTRA_PIECES


def _power(bits: tuple[int, ...]) -> float:
    """A product of primes, each just below its power of two."""
    return math.exp2(sum(bits) - 0.01)


NARROW = BfvParameters("narrow", kept=(60,))
WIDE = BfvParameters("wide", kept=(60, 24))
SETS = (NARROW, WIDE)


def parameters_for(capacity: Capacity) -> BfvParameters:
    """The first set whose failure bound suffices.

    >>> parameters_for(Capacity(20, 20, 16)).name, parameters_for(Capacity(20, 24, 512)).name
    ('narrow', 'wide')

    Raises:
        CryptoError: The products are too wide for all of them.
    """
    for each in SETS:
        if (
            each.plain_modulus(capacity) < 1 << 60
            and each.failure_bits(capacity) >= LEAST_FAILURE_BITS
            and each.leak_bits(capacity, entries=1) >= LEAST_LEAK_BITS
        ):
            return each
    if isinstance(capacity, Wrapping):
        raise CryptoError(
            f"a modulus of 2^{capacity.modulus_bits} with a matrix of {capacity.matrix_bits} bits "
            "does not fit bfv, which holds 2^59",
            hint="lower the fixed-point bits, clip the features, or use paillier",
        )
    raise CryptoError(
        f"products of {capacity.product_bits} bits do not fit bfv, which holds 58",
        hint="lower the fixed-point bits, clip the features, use smaller batches, or use paillier",
    )
