"""Factors of a Paillier modulus: how they are drawn, and what only their owner can compute.

**Primes.** Every candidate is a fresh draw. Searching upwards from one random start would be
quicker, but picks a prime with a probability proportional to the gap below it; fresh draws are
uniform over the primes of the wanted form.

A candidate that survives trial division is tested by Baillie-PSW and 40 rounds of Miller-Rabin. No
composite that passes the first is known; a round of the second passes a composite with probability
at most 1/4, so 40 rounds leave 2^-80, and far less for random candidates [DamgardLP93]. The rounds'
bases come from GMP's own fixed generator: harmless for numbers that we drew, which nobody could
choose against it, and the reason why ``looks_prime`` is no proof about a number that a stranger
chose.

With n = p q and g = n + 1 a ciphertext of m is ``(1 + m n) r^n mod n^2`` [Paillier99, §4]. Its
owner works modulo p^2 and q^2 and joins the halves by the Chinese remainder theorem.

**Encryption.** The obfuscator ``r^n``, r uniform in Z_n*, is sampled from its halves. Modulo p^2
the group has order p (p-1) and is cyclic; ``r -> r^n = (r^q)^p`` sends it onto its subgroup H of
order p-1, since gcd(n, (p-1)(q-1)) = 1 makes q invertible modulo p-1. Being a homomorphism, it
sends the uniform distribution to the uniform one on H. Now ``x -> x^p mod p^2`` depends on x mod p
only (``(x + k p)^p = x^p mod p^2``), is a homomorphism from Z_p*, and is injective, as
``x^p = x mod p``: for uniform x in Z_p* it is uniform on H too. The halves of ``r^n`` modulo p^2
and q^2 are independent, because those of r are. So two powers with half the modulus and half the
exponent replace one, and the distribution is the same, not nearly the same. Negative messages stand
as ``m mod n``.

**Decryption.** With L(u) = (u - 1)/p: ``c^(p-1) = 1 + m (p-1) n mod p^2``, as the obfuscator
vanishes in H, and so ``L = -m q mod p`` [Paillier99, §7].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeVar

import gmpy2
from gmpy2 import mpz

from taciturn import parallel
from taciturn.errors import CryptoError
from taciturn.rng import Entropy

T = TypeVar("T")
R = TypeVar("R")


def on_all_cores(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """``parallel.on_all_cores`` for GMP's arithmetic, which gmpy2 lets run without the lock.

    Powers with large exponents then scale with the cores; chains of single multiplications gain
    less (on two cores 1.9 and 1.4 times were measured), because Python must be asked back after
    each.
    """

    def work(item: T) -> R:
        with gmpy2.context(gmpy2.get_context(), allow_release_gil=True):
            return function(item)

    return parallel.on_all_cores(work, items)


MILLER_RABIN_ROUNDS = 40
# GMP counts Baillie-PSW as the first 24 rounds, and does every further round as Miller-Rabin.
_GMP_ROUNDS = 24 + MILLER_RABIN_ROUNDS
_TRIAL_LIMIT = 4096
_SMALL = [k for k in range(3, _TRIAL_LIMIT, 2) if gmpy2.is_prime(k)]
_SMALL_PRODUCT = mpz(prod(_SMALL))


def has_small_factor(number: mpz) -> bool:
    """Whether an odd prime below 4096 divides the number."""
    return bool(gmpy2.gcd(number, _SMALL_PRODUCT) != 1)


def looks_prime(number: mpz) -> bool:
    """Baillie-PSW and 40 rounds of Miller-Rabin."""
    return bool(gmpy2.is_prime(number, _GMP_ROUNDS))


def draw_prime(bits: int, entropy: Entropy) -> mpz:
    """A prime of exactly ``bits`` bits, at least 16, whose two top bits are set.

    **Guarantee.** Uniform over the primes in [3 * 2^(bits-2), 2^bits) that exceed 4096. The product
    of two such primes has exactly ``2 * bits`` bits.

    **Assumes.** The entropy's draws are uniform.
    """
    top = mpz(3) << (bits - 2)
    while True:
        candidate = top + 2 * entropy.below(1 << (bits - 3)) + 1
        if not has_small_factor(candidate) and looks_prime(candidate):
            return candidate


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class _Side:
    prime: mpz
    square: mpz
    unscale: mpz

    @classmethod
    def from_primes(cls, prime: mpz, other: mpz) -> _Side:
        return cls(prime, prime * prime, gmpy2.invert(-other, prime))

    def obfuscator(self, x: mpz) -> mpz:
        return gmpy2.powmod(x, self.prime, self.square)

    def message(self, element: mpz) -> mpz:
        # The peer chooses this element and may time the answer; powmod_sec keeps the largest step
        # from depending on the secret exponent.
        power = gmpy2.powmod_sec(element % self.square, self.prime - 1, self.square)
        return (power - 1) // self.prime * self.unscale % self.prime


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Trapdoor:
    """The two factors, ready for use.

    **Guarantee.** ``decrypt`` inverts encryption exactly, and returns some number below n for every
    element that is coprime to n; it never raises on one. ``repr`` shows nothing.

    **Assumes.** The primes are distinct and gcd(n, (p-1)(q-1)) = 1. Python's and GMP's integers are
    not constant-time: someone who measures this process closely is not kept out.
    """

    n: mpz
    square: mpz
    _p: _Side
    _q: _Side
    _p_inverse: mpz
    _p_square_inverse: mpz

    @classmethod
    def from_primes(cls, p: mpz, q: mpz) -> Trapdoor:
        """The trapdoor of two suitable primes."""
        left, right = _Side.from_primes(p, q), _Side.from_primes(q, p)
        return cls(
            n=p * q,
            square=(p * q) ** 2,
            _p=left,
            _q=right,
            _p_inverse=gmpy2.invert(p, q),
            _p_square_inverse=gmpy2.invert(left.square, right.square),
        )

    @classmethod
    def draw(cls, bits: int, entropy: Entropy) -> Trapdoor:
        """Draw a trapdoor whose modulus has exactly ``bits`` bits."""
        while True:
            p, q = draw_prime(bits // 2, entropy), draw_prime(bits // 2, entropy)
            if suitable(p, q):
                return cls.from_primes(p, q)

    def to_bytes(self) -> bytes:
        """The factors, the shorter one padded: they are the key."""
        size = (max(self._p.prime.bit_length(), self._q.prime.bit_length()) + 7) // 8
        return b"".join(int(side.prime).to_bytes(size, "big") for side in (self._p, self._q))

    @classmethod
    def from_bytes(cls, data: bytes) -> Trapdoor:
        """Inverse of ``to_bytes``; raises ``CryptoError`` unless the factors make a key."""
        half = len(data) // 2
        p, q = mpz.from_bytes(data[:half] or b"\0"), mpz.from_bytes(data[half:] or b"\0")
        if len(data) % 2 or not (looks_prime(p) and looks_prime(q) and suitable(p, q)):
            raise CryptoError("these bytes are not the factors of a key")
        return cls.from_primes(p, q)

    def draw_seed(self, entropy: Entropy) -> tuple[mpz, mpz]:
        """Draw the seed from which ``obfuscator`` makes a uniform n-th residue modulo n^2."""
        x = 1 + mpz(entropy.below(int(self._p.prime) - 1))
        y = 1 + mpz(entropy.below(int(self._q.prime) - 1))
        return x, y

    def obfuscator(self, x: mpz, y: mpz) -> mpz:
        """The n-th residue that is ``x^p`` modulo p^2 and ``y^q`` modulo q^2."""
        left, right = self._p.obfuscator(x), self._q.obfuscator(y)
        # Garner's form of the remainder theorem needs no reduction modulo n^2.
        steps = (right - left) * self._p_square_inverse % self._q.square
        return left + self._p.square * steps

    def encrypt(self, message: int, obfuscator: mpz) -> mpz:
        """``(1 + m n)`` times an obfuscator, modulo n^2."""
        # n (m o) modulo n^2 depends on m o modulo n only, and m is a short number.
        element = obfuscator + message * obfuscator % self.n * self.n
        return element if element < self.square else element - self.square

    def decrypt(self, elements: Sequence[mpz]) -> list[mpz]:
        """The messages in [0, n) of elements coprime to n; the halves of each on all cores."""
        tasks = [(side, element) for element in elements for side in (self._p, self._q)]
        halves = on_all_cores(lambda task: task[0].message(task[1]), tasks)
        return [
            left + self._p.prime * ((right - left) * self._p_inverse % self._q.prime)
            for left, right in zip(halves[::2], halves[1::2], strict=True)
        ]

    def __repr__(self) -> str:
        return f"Trapdoor(<hidden>, bits={self.n.bit_length()})"


def suitable(p: mpz, q: mpz) -> bool:
    """Whether two primes of one size make a key.

    They must differ in their first 100 bits, or in the upper half of smaller test primes, so that
    searching near the root of n finds nothing [FIPS186, A.1.3], and n must be coprime to
    (p-1)(q-1).
    """
    size = max(p.bit_length(), q.bit_length())
    apart = abs(p - q) >> max(size - 100, size // 2)
    return bool(apart) and bool(gmpy2.gcd(p * q, (p - 1) * (q - 1)) == 1)
