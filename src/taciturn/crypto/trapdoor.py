"""The factors of a Paillier modulus, and what only they make possible.

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

from collections.abc import Sequence
from dataclasses import dataclass

import gmpy2
from gmpy2 import mpz

from taciturn.crypto.cores import on_all_cores
from taciturn.crypto.primes import draw_prime, looks_prime
from taciturn.errors import CryptoError
from taciturn.rng import Entropy


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class _Side:
    prime: mpz
    square: mpz
    unscale: mpz

    @classmethod
    def of(cls, prime: mpz, other: mpz) -> _Side:
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
    def of(cls, p: mpz, q: mpz) -> Trapdoor:
        """The trapdoor of two suitable primes."""
        left, right = _Side.of(p, q), _Side.of(q, p)
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
                return cls.of(p, q)

    def to_bytes(self) -> bytes:
        """The factors, the shorter one padded: whoever has them has the key."""
        size = (max(self._p.prime.bit_length(), self._q.prime.bit_length()) + 7) // 8
        return b"".join(int(side.prime).to_bytes(size, "big") for side in (self._p, self._q))

    @classmethod
    def of_bytes(cls, data: bytes) -> Trapdoor:
        """Reads factors back.

        >>> Trapdoor.of_bytes(Trapdoor.of(mpz(61), mpz(37)).to_bytes()).n == 61 * 37
        True
        """
        half = len(data) // 2
        p, q = mpz.from_bytes(data[:half] or b"\0"), mpz.from_bytes(data[half:] or b"\0")
        if len(data) % 2 or not (looks_prime(p) and looks_prime(q) and suitable(p, q)):
            raise CryptoError("these bytes are not the factors of a key")
        return cls.of(p, q)

    def draw_seed(self, entropy: Entropy) -> tuple[mpz, mpz]:
        """Draw the seed from which ``obfuscator`` makes a uniform n-th residue modulo n^2."""
        x = 1 + mpz(entropy.below(int(self._p.prime) - 1))
        y = 1 + mpz(entropy.below(int(self._q.prime) - 1))
        return x, y

    def obfuscator(self, x: mpz, y: mpz) -> mpz:
        """The n-th residue that is ``x^p`` modulo p^2 and ``y^q`` modulo q^2.

        >>> element = Trapdoor.of(mpz(11), mpz(17)).obfuscator(mpz(3), mpz(5))
        >>> element % 121 == 3**11 % 121, element % 289 == 5**17 % 289
        (True, True)
        """
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
        """The messages in [0, n) of elements coprime to n; the halves of each on all cores.

        >>> trapdoor = Trapdoor.of(mpz(11), mpz(17))
        >>> element = trapdoor.encrypt(-2, trapdoor.obfuscator(mpz(3), mpz(5)))
        >>> trapdoor.decrypt([element]) == [11 * 17 - 2]
        True
        """
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

    >>> suitable(mpz(61), mpz(37)), suitable(mpz(61), mpz(59)), suitable(mpz(29), mpz(59))
    (True, False, False)
    """
    size = max(p.bit_length(), q.bit_length())
    apart = abs(p - q) >> max(size - 100, size // 2)
    return bool(apart) and bool(gmpy2.gcd(p * q, (p - 1) * (q - 1)) == 1)
