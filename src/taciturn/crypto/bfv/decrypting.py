"""The owner's part of a product: the entries of an answer, with the same work for all of them.

A number uniform modulo t is added to each entry before it is decrypted (``shifts``; the caller
takes it off), and the coefficients that hold no entry are uniform too: SEAL decrypts, and
compresses on its way out, numbers that are uniform whatever the peer sent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tenseal.sealapi as sealapi

from taciturn.arrays import WordArray
from taciturn.crypto.bfv.answering import Places
from taciturn.crypto.bfv.modular import lowered
from taciturn.crypto.bfv.parameters import DEGREE
from taciturn.crypto.bfv.seal import Seal
from taciturn.crypto.bfv.wire import Parts
from taciturn.rng import KeyedEntropy


class Decrypting:
    """Operations with a secret key on answers.

    ``coins`` fill the coefficients that hold no entry; they change no result.
    """

    def __init__(self, seal: Seal, secret: Any, coins: KeyedEntropy) -> None:  # noqa: ANN401
        self._seal, self._coins = seal, coins
        self._primes = seal.primes[: len(seal.parameters.kept)]
        self._decryptor = sealapi.Decryptor(seal.context, secret)

    def entries(self, parts: Parts, places: Places, shifts: WordArray) -> WordArray:
        """Decrypt the entries of the next answer, shifted, modulo t.

        ``places`` are the coefficients of the first polynomial that were sent. ``shifts`` are added
        to them on the grid of q'/t: primes by entries.
        """
        primes = self._primes
        polynomials = np.empty((2, len(primes), DEGREE), dtype=np.uint64)
        noise = self._coins.words(len(primes) * DEGREE).reshape(len(primes), DEGREE)
        for at, prime in enumerate(primes):
            # Below a power of two that is at most twice the prime, as ``lowered`` needs it.
            beyond = noise[at] >> np.uint64(64 - prime.bit_length())
            polynomials[0, at] = lowered(beyond, np.uint64(prime))
            words = parts.words(shifts.shape[1], prime)
            # A peer's number beyond its prime stays beyond it, for SEAL to refuse.
            summed = lowered(words + shifts[at], np.uint64(prime))
            polynomials[0, at, places] = np.where(words < np.uint64(prime), summed, words)
            polynomials[1, at] = parts.words(DEGREE, prime)
        plain = sealapi.Plaintext()
        self._decryptor.decrypt(self._seal.load_cipher(polynomials, self._seal.kept_id), plain)
        return self._seal.coefficients(plain)[places]
