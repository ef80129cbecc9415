"""Alice's part of a product: read a vector, cover an answer, write it.

An answer is a sum of products plus a *cover*: a fresh encryption of zero under Bob's public key,
the masks on the grid of q/t, and the flood. Both must be in before the dropped prime is switched
away: added after it, the rounding of the masks to the coarse grid of q'/t would stand beside the
noise, and tell Bob a little about each mask. Of an answer's first polynomial only the coefficients
that hold entries are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import tenseal.sealapi as sealapi

from taciturn.arrays import IntArray, WordArray
from taciturn.crypto.bfv.modular import Flood, Grid, lowered
from taciturn.crypto.bfv.parameters import DEGREE, flood_half
from taciturn.crypto.bfv.seal import SEED_BYTES, Seal
from taciturn.crypto.bfv.wire import Parts, trimmed, widths
from taciturn.rng import Entropy

Places: TypeAlias = slice | IntArray
"""Coefficients, as NumPy takes them."""


class Answering:
    """Bob's public key at work."""

    def __init__(self, seal: Seal, polynomials: WordArray) -> None:
        self.seal = seal
        self.encryptor = sealapi.Encryptor(seal.context, seal.load_public(polynomials))
        self._primes = seal.primes[:-1]
        self._kept = seal.primes[: len(seal.parameters.kept)]
        self._grid = Grid(self._primes, seal.plain_modulus)
        half = flood_half(self._primes, seal.plain_modulus, len(seal.parameters.dropped))
        self._flood = Flood(self._primes, half)

    @property
    def piece_bytes(self) -> int:
        """What a ciphertext of a vector takes: its first polynomial, and the other's seed."""
        return DEGREE * widths(self._primes) + SEED_BYTES

    @property
    def plain_bytes(self) -> int:
        """What a plaintext in NTT form takes in memory."""
        return 8 * DEGREE * len(self._primes)

    def pieces(self, parts: Parts, count: int) -> Iterator[Any]:
        """The ciphertexts of a vector, in NTT form.

        Raises:
            CryptoError: A coefficient lies outside its prime.
        """
        for _ in range(count):
            first = np.empty((len(self._primes), DEGREE), dtype=np.uint64)
            for at, prime in enumerate(self._primes):
                first[at] = parts.words(DEGREE, prime)
            piece = self.seal.load_seeded(first, bytes(parts.bytes(SEED_BYTES)))
            self.seal.evaluator.transform_to_ntt_inplace(piece)
            yield piece

    def cover(self, values: IntArray, places: Places, entropy: Entropy) -> Any:  # noqa: ANN401
        """A fresh encryption of the masks of one answer, modulo all of q' P, and the flood.

        Args:
            values: Masks modulo t.
            places: Their coefficients.
            entropy: Of this answer alone.
        """
        points, floods = self._grid(values), self._flood(len(values), entropy)
        shifts = np.zeros((2, len(self._primes), DEGREE), dtype=np.uint64)
        for at, prime in enumerate(self._primes):
            shifts[0, at, places] = lowered(points[at] + floods[at], np.uint64(prime))
        cover = sealapi.Ciphertext()
        self.encryptor.encrypt_zero(cover)
        shift = self.seal.load_cipher(shifts, self.seal.first_id)
        self.seal.evaluator.add_inplace(cover, shift)
        return cover

    def written(self, answer: Any, places: Places) -> bytes:  # noqa: ANN401
        """An answer, switched to the kept primes: of c0 some coefficients, and all of c1."""
        self.seal.evaluator.mod_switch_to_inplace(answer, self.seal.kept_id)
        first, second = self.seal.polynomials(answer, len(self._kept))
        return b"".join(
            trimmed(first[at, places], prime) + trimmed(second[at], prime)
            for at, prime in enumerate(self._kept)
        )

    def saved(self, cipher: Any) -> bytes:  # noqa: ANN401
        """A ciphertext modulo all of q' P, for another process of Alice's."""
        return self.seal.polynomials(cipher, len(self._primes)).tobytes()

    def loaded(self, data: bytes | memoryview, *, ntt: bool) -> Any:  # noqa: ANN401
        """A ciphertext that another process of Alice's saved."""
        words = np.frombuffer(data, np.uint64).reshape(2, len(self._primes), DEGREE)
        return self.seal.load_cipher(words, self.seal.first_id, ntt=ntt)
