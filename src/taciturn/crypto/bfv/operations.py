"""Both parties' operations on an answer: Alice makes it, Bob decrypts it.

An answer is a sum of products plus a *cover*: a fresh encryption of zero under Bob's public key,
the masks on the grid of q/t, and the flood. With u ternary and e, e' centred binomial the
encryption of zero is ``(p_0 u + e, p_1 u + e')``: u goes to the products while they are in NTT
form, so that both leave it together, and e and e' are added to masks and flood. All must be in
before the dropped prime is switched away: added after it, the rounding of the masks to the coarse
grid of q'/t would be added to the noise, and tell Bob a little about each mask. Of an answer's
first polynomial only the coefficients that hold entries are written. Where both sides round
(``parameters.rounds``) the masks are uniform modulo the kept prime, and there is no flood.

Bob does the same work for all entries. He adds a number uniform modulo t to each entry before it is
decrypted (``shifts``; the caller subtracts it), and the coefficients that hold no entry are uniform
too: SEAL decrypts, and compresses on its way out, numbers that are uniform whatever the peer sent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import tenseal.sealapi as sealapi

from taciturn.arrays import IntArray, WordArray
from taciturn.crypto.base import MOST_MODULUS_BITS
from taciturn.crypto.bfv.modular import Flood, Grid, Multiplier, lowered, reduced
from taciturn.crypto.bfv.parameters import (
    flood_half,
)
from taciturn.crypto.bfv.seal import (
    SEED_BYTES,
    ByteReader,
    Seal,
    trimmed,
    widths,
)
from taciturn.crypto.bfv.seeds import (
    centred_binomial,
    ternary,
)
from taciturn.rng import Entropy, KeyedEntropy

Places: TypeAlias = slice | IntArray
"""Coefficients, as NumPy takes them."""


@dataclass(frozen=True, slots=True)
class AnswerMask:
    """Encryption of zero, masks and flood that hide one answer; used once.

    ``zero`` is ``(p_0 u, p_1 u)`` in NTT form; ``shift`` has errors, masks and flood as
    coefficients.
    """

    zero: Any = field(repr=False)
    shift: Any = field(repr=False)


class ServerOps:
    """Alice's operations, with Bob's public key.

    ``polynomials`` are both halves of the key at the roots, modulo the primes of a ciphertext;
    factors of ciphertexts are at most 2^factor_bits in size.
    """

    def __init__(
        self, seal: Seal, polynomials: WordArray, factor_bits: int = MOST_MODULUS_BITS
    ) -> None:
        plain_modulus, seal = seal.plain_modulus, seal.for_factors(factor_bits)
        self.seal = seal
        self.use_key(polynomials)
        # For encryptions of zero; like SEAL's own draws they change no result, and two answers
        # never share one, whatever entropy a caller hands in.
        self._entropy = KeyedEntropy.from_system()
        self._primes = seal.primes[:-1]
        self._kept = seal.primes[: len(seal.parameters.kept)]
        self._grid = Grid(self._primes, plain_modulus)
        self._flood: Flood | None = None
        if not seal.parameters.rounds:
            half = flood_half(self._primes, plain_modulus, len(seal.parameters.dropped))
            self._flood = Flood(self._primes, half)

    def use_key(self, polynomials: WordArray) -> None:
        """Encrypt under another key of the same ring from now on."""
        self._key = self.seal.load_cipher(polynomials, self.seal.first_id, ntt=True)

    @property
    def piece_bytes(self) -> int:
        """Bytes of a vector's ciphertext: its first polynomial and the seed of the other."""
        return self.seal.degree * widths(self._primes) + SEED_BYTES

    @property
    def plain_bytes(self) -> int:
        """Bytes of a plaintext in NTT form, in memory."""
        return 8 * self.seal.degree * len(self._primes)

    def pieces(self, parts: ByteReader, count: int) -> Iterator[Any]:
        """Read the ciphertexts of a vector, in NTT form."""
        for _ in range(count):
            first = np.empty((len(self._primes), self.seal.degree), dtype=np.uint64)
            for at, prime in enumerate(self._primes):
                first[at] = parts.words(self.seal.degree, prime)
            piece = self.seal.load_seeded(first, bytes(parts.bytes(SEED_BYTES)))
            self.seal.evaluator.transform_to_ntt_inplace(piece)
            yield piece

    def cover(self, values: IntArray, places: Places, entropy: Entropy) -> AnswerMask:
        """A fresh encryption of one answer's masks, modulo all of q' P, and the flood.

        ``values`` are masks at the coefficients ``places``, modulo t or the kept prime
        (``parameters.rounds``); ``entropy`` serves this answer alone.
        """
        hidden, degree = self._hidden(values, entropy), self.seal.degree
        first, second = (centred_binomial(self._entropy, degree) for _ in range(2))
        shifts = np.zeros((2, len(self._primes), degree), dtype=np.uint64)
        for at, prime in enumerate(self._primes):
            modulus = np.uint64(prime)
            # Of the first polynomial no other coefficient is sent.
            shifts[0, at, places] = lowered(hidden[at] + reduced(first[places], prime), modulus)
            shifts[1, at] = reduced(second, prime)
        return AnswerMask(self._zero(), self.seal.load_cipher(shifts, self.seal.first_id))

    def _hidden(self, masks: IntArray, entropy: Entropy) -> WordArray:
        """What hides the entries of an answer: primes by entries."""
        if self._flood is None:
            # A multiple of P: the switch divides by it, and leaves the mask exactly as it is.
            hidden = np.zeros((len(self._primes), len(masks)), dtype=np.uint64)
            kept, *dropped = self._primes
            hidden[0] = Multiplier(math.prod(dropped) % kept, kept)(masks.view(np.uint64))
            return hidden
        hidden, floods = self._grid(masks), self._flood(len(masks), entropy)
        for at, prime in enumerate(self._primes):
            hidden[at] = lowered(hidden[at] + floods[at], np.uint64(prime))
        return hidden

    def _zero(self) -> Any:  # noqa: ANN401
        secret = ternary(self._entropy, self.seal.degree)
        plain = self.seal.load_plain(reduced(secret, self.seal.plain_modulus))
        self.seal.evaluator.transform_to_ntt_inplace(plain, self.seal.first_id)
        zero = sealapi.Ciphertext()
        self.seal.evaluator.multiply_plain(self._key, plain, zero)
        return zero

    def covered(self, product: Any, cover: AnswerMask) -> Any:  # noqa: ANN401
        """Add the cover to a sum of products in NTT form (None for no product); as coefficients."""
        evaluator, answer = self.seal.evaluator, cover.zero
        if product is not None:
            evaluator.add_inplace(answer, product)
        evaluator.transform_from_ntt_inplace(answer)
        evaluator.add_inplace(answer, cover.shift)
        return answer

    def written(self, answer: Any, places: Places) -> bytes:  # noqa: ANN401
        """Switch an answer to the kept primes and write c1 whole, but of c0 only ``places``."""
        self.seal.evaluator.mod_switch_to_inplace(answer, self.seal.kept_id)
        first, second = self.seal.polynomials(answer, len(self._kept))
        return b"".join(
            trimmed(first[at, places], prime) + trimmed(second[at], prime)
            for at, prime in enumerate(self._kept)
        )

    def saved(self, cipher: Any) -> bytes:  # noqa: ANN401
        """Serialise a ciphertext modulo all of q' P for another process of Alice's."""
        return self.seal.polynomials(cipher, len(self._primes)).tobytes()

    def loaded(self, data: bytes | memoryview, *, ntt: bool) -> Any:  # noqa: ANN401
        """Load a ciphertext that ``saved`` wrote."""
        words = np.frombuffer(data, np.uint64).reshape(2, len(self._primes), -1)
        return self.seal.load_cipher(words, self.seal.first_id, ntt=ntt)


class ClientOps:
    """Bob's operations with his secret key; ``entropy`` fills coefficients that hold no entry."""

    def __init__(self, seal: Seal, secret: Any, entropy: KeyedEntropy) -> None:  # noqa: ANN401
        self._seal, self._entropy = seal, entropy
        self._primes = seal.primes[: len(seal.parameters.kept)]
        self._decryptor = sealapi.Decryptor(seal.context, secret)

    def entries(self, parts: ByteReader, places: Places, shifts: WordArray) -> WordArray:
        """Decrypt the entries of the next answer, shifted, modulo t.

        ``places`` are the coefficients of the first polynomial that were sent. ``shifts`` are added
        to them on the grid of q'/t: primes by entries.
        """
        primes, degree = self._primes, self._seal.degree
        polynomials = np.empty((2, len(primes), degree), dtype=np.uint64)
        noise = self._entropy.words(len(primes) * degree).reshape(len(primes), degree)
        for at, prime in enumerate(primes):
            # Below a power of two that is at most twice the prime, as ``lowered`` needs it.
            beyond = noise[at] >> np.uint64(64 - prime.bit_length())
            polynomials[0, at] = lowered(beyond, np.uint64(prime))
            words = parts.words(shifts.shape[1], prime)
            # A peer's number beyond its prime stays beyond it, for SEAL to refuse.
            summed = lowered(words + shifts[at], np.uint64(prime))
            polynomials[0, at, places] = np.where(words < np.uint64(prime), summed, words)
            polynomials[1, at] = parts.words(degree, prime)
        plain = sealapi.Plaintext()
        self._decryptor.decrypt(self._seal.load_cipher(polynomials, self._seal.kept_id), plain)
        return self._seal.coefficients(plain)[places]
