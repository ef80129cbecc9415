"""Keys from two seeds: one secret, one that anybody may know.

With s ternary and e SEAL's centred binomial error, both drawn from the secret seed, and a uniform
modulo the primes of a ciphertext, expanded from the public one, a public key is
``(-(a s + e), a)``. On the wire it is its first half and the public seed: nobody can send another a
than a seed gives. Where the seed is joint (``taciturn.protocol.joint_seed``) the owner of the key
cannot choose it either.

**The expansion.** For the i-th prime p the coefficients of a are the first N numbers below p among
the 64-bit little-endian words, shifted down to the bits of p - 1, of the ChaCha20 stream of
``KeyedEntropy(seed).fork("uniform half i")``, with what was rejected drawn again at the end. SEAL
takes these numbers for values at the roots (NTT form), which are as uniform as coefficients.

**Guarantee.** a is exactly uniform if the seed's stream is; s and e have the distributions that
SEAL's own keys have, and that the parameters' security was estimated for. The same seeds give the
same key, to the last bit.

**Assumes.** ``rng.KeyedEntropy``; given the public seed, its stream as a random oracle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from taciturn.arrays import IntArray, WordArray
from taciturn.crypto.bfv.modular import lowered, products, reduced
from taciturn.crypto.bfv.parameters import DEGREE
from taciturn.crypto.bfv.seal import Seal, exactly, trimmed, widths
from taciturn.errors import CryptoError
from taciturn.rng import KEY_BYTES, Entropy, KeyedEntropy

_ERROR_COINS = 21
"""Number of fair bits in each of the two sums: SEAL's error, of standard deviation 3.24."""
_SOME = np.uint64((1 << _ERROR_COINS) - 1)
_ENOUGH = 257


def expanded(primes: tuple[int, ...], seed: bytes, degree: int = DEGREE) -> WordArray:
    """What a seed expands to, as values at the roots: primes by N."""
    entropy = KeyedEntropy(seed)
    return np.stack(
        [
            entropy.fork(f"uniform half {at}").integers(prime, degree)
            for at, prime in enumerate(primes)
        ]
    )


@lru_cache(maxsize=8)
def uniform_half(primes: tuple[int, ...], seed: bytes, degree: int = DEGREE) -> WordArray:
    """The uniform half of a key, kept. Not to be written to."""
    half = expanded(primes, seed, degree)
    half.flags.writeable = False
    return half


def ternary(entropy: Entropy, degree: int = DEGREE) -> IntArray:
    """Coefficients of a secret: -1, 0 or 1, each as likely."""
    return entropy.integers(3, degree).astype(np.int64) - 1


def centred_binomial(entropy: Entropy, degree: int = DEGREE) -> IntArray:
    """Error coefficients, centred binomial: the difference of two sums of 21 fair bits."""
    stream = entropy.words(degree)
    heads = np.bitwise_count(stream & _SOME).astype(np.int64)
    tails = np.bitwise_count(stream >> np.uint64(32) & _SOME)
    difference: IntArray = heads - tails
    return difference


@dataclass(frozen=True)
class KeySeeds:
    """Seeds of a key pair: the owner's, and that of the uniform half."""

    secret: bytes = field(repr=False)
    public: bytes

    @classmethod
    def draw(cls, entropy: Entropy, public: bytes | None) -> KeySeeds:
        """Draw new seeds; a public seed that was not agreed on is drawn as well."""
        if public is None:
            public = entropy.fork("uniform half").token(KEY_BYTES)
        return cls(entropy.token(KEY_BYTES), public)

    @classmethod
    def from_bytes(cls, data: bytes) -> KeySeeds:
        """Read the owner's stored seeds."""
        parts = exactly(data, 2 * KEY_BYTES, "a secret key")
        return cls(bytes(parts.bytes(KEY_BYTES)), bytes(parts.bytes(KEY_BYTES)))

    def to_bytes(self) -> bytes:
        """Both seeds, for the owner's file."""
        return self.secret + self.public

    @cached_property
    def _entropy(self) -> KeyedEntropy:
        return KeyedEntropy(self.secret)

    def blinding(self, purpose: str) -> Entropy:
        """The owner's own source of blinds for one purpose, the same whenever it is asked for."""
        return self._entropy.fork(f"blinds {purpose}")

    def secret_values(self, seal: Seal) -> WordArray:
        """Values of the secret at the roots: primes by N."""
        return _at_roots(seal, ternary(self._entropy.fork("secret"), seal.degree))

    def public_half(self, seal: Seal, secret: WordArray) -> PublicHalf:
        """Public half of the key, for s at the roots."""
        error = _at_roots(seal, centred_binomial(self._entropy.fork("error"), seal.degree))
        primes = seal.primes[:-1]
        a = uniform_half(primes, self.public, seal.degree)
        first = np.empty((len(primes), seal.degree), dtype=np.uint64)
        for at, prime in enumerate(primes):
            modulus = np.uint64(prime)
            summed = lowered(products(a[at], secret[at], prime) + error[at], modulus)
            first[at] = lowered(modulus - summed, modulus)
        return PublicHalf(first, self.public)


@dataclass(frozen=True, slots=True)
class PublicHalf:
    """Public key: its first polynomial and the seed of the other.

    ``first`` is ``-(a s + e)`` at the roots, modulo the primes of a ciphertext: primes by N. It
    leaves out SEAL's own prime: nothing is encrypted modulo that.
    """

    first: WordArray = field(repr=False)
    seed: bytes

    @classmethod
    def from_bytes(cls, data: bytes, seal: Seal, seed: bytes | None) -> PublicHalf:
        """Read a peer's public key; SEAL checks that numbers lie below their primes.

        ``seed`` is the one on which both agreed; None where the owner draws it.
        """
        primes = seal.primes[:-1]
        parts = exactly(data, seal.degree * widths(primes) + KEY_BYTES, "a public key")
        first = np.stack([parts.words(seal.degree, prime) for prime in primes])
        stated = bytes(parts.bytes(KEY_BYTES))
        if seed is not None and stated != seed:
            raise CryptoError(
                "the uniform half of the peer's public key is not that of the joint seed"
            )
        return cls(first, stated)

    def to_bytes(self, seal: Seal) -> bytes:
        """The wire format: the first polynomial, then the seed."""
        primes = seal.primes[:-1]
        parts = (trimmed(part, prime) for part, prime in zip(self.first, primes, strict=True))
        return b"".join([*parts, self.seed])

    def polynomials(self, seal: Seal) -> WordArray:
        """Both halves at the roots: two by primes by N."""
        return np.stack([self.first, uniform_half(seal.primes[:-1], self.seed, seal.degree)])


def _at_roots(seal: Seal, coefficients: IntArray) -> WordArray:
    """Values of a polynomial of small coefficients at the roots: primes by N."""
    if seal.plain_modulus <= 2 * _ERROR_COINS:
        # Too few numbers for an error; the roots are those of the primes alone.
        seal = Seal(seal.parameters, _ENOUGH)
    plain = seal.load_plain(reduced(coefficients, seal.plain_modulus))
    seal.evaluator.transform_to_ntt_inplace(plain, seal.context.key_parms_id())
    return seal.root_values(plain).reshape(len(seal.primes), seal.degree)
