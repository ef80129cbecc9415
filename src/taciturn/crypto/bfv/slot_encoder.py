"""Numbers in n slots as polynomials in ``y = x^(N/n)``, modulo the wide prime.

Modulo a prime t that is 1 modulo 2n a polynomial is the n numbers that it takes at the roots of
``y^n + 1``, and a product of polynomials is the products of these (SEAL's ``BatchEncoder``). n is
the smallest power of two that holds the numbers, and y is ``x^(N/n)``: a polynomial in y has every
``N/n``-th coefficient alone, and so has its product with another. The first half of a ciphertext
need therefore hold no other coefficient: what is multiplied with a polynomial in y, in these
places, depends on these places alone. The second half is whole, as ever.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tenseal.sealapi as sealapi

from taciturn.arrays import WordArray
from taciturn.crypto.bfv.parameters import DEGREE, SLOT_MODULUS
from taciturn.crypto.bfv.seal import Plaintexts

LEAST_SLOTS = 64


def slots_for(count: int) -> int:
    """Number of slots for ``count`` numbers: a power of two, at least ``LEAST_SLOTS``.

    >>> slots_for(896), slots_for(1025), slots_for(1)
    (1024, 2048, 64)
    """
    return max(LEAST_SLOTS, 1 << (count - 1).bit_length())


class SlotEncoder:
    """Converter of numbers in n slots, a power of two, to polynomials in y; holds no secret."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.places = slice(0, DEGREE, DEGREE // slots)
        self._seal = Plaintexts.for_encoding(slots, SLOT_MODULUS)
        self._encoder = sealapi.BatchEncoder(self._seal.context)

    def plaintext(self, values: WordArray) -> Any:  # noqa: ANN401 - SEAL has no types
        """The polynomial in y of n numbers below t, for SEAL."""
        plain = sealapi.Plaintext()
        self._encoder.encode(values.tolist(), plain)
        return plain

    def polynomial(self, values: WordArray) -> WordArray:
        """Coefficients in y of n numbers below t."""
        return self._seal.coefficients(self.plaintext(values))

    def numbers(self, coefficients: WordArray) -> WordArray:
        """Numbers of coefficients in y."""
        plain = self._seal.load_plain(coefficients)
        return np.array(self._encoder.decode_uint64(plain), dtype=np.uint64)

    def filled(self, values: WordArray) -> WordArray:
        """The numbers, padded with zeros to all slots."""
        whole = np.zeros(self.slots, dtype=np.uint64)
        whole[: len(values)] = values
        return whole
