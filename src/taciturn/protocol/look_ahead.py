"""One exchange an iteration: the scores of the next batch come with the step of this one.

Both sides know the next batch. With X the rows of this one, X' those of the next and ``w' = w + X^T
r'``, the scores that Bob will ask for are ``X' w' = X' (u + v) + X' X^T r'``, and all of it is one
product with a vector that he has already::

    [ X^T    0       0  ]   [ r'     ]   [ xi    ]      G = X' X^T = G_low + 2^h G_high
    [ G_low  G_high  X' ] . [ 2^h r' ] + [ X' u  ]
                            [ v      ]

G is cut into two digits because the noise of an answer grows with the entries of the matrix, and
what drowns it is as large as it is (``docs/encryption.md``): the digits are hardly larger than
features. Everything is exact modulo t, so that weights are those of two exchanges, bit by bit.

Whether it pays is a public matter (``Turns.of``): both sides compute it from the sizes of the
tables and the scheme. The block matrix grows with the square of a batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import Scheme, Wrapping
from taciturn.protocol.scales import Scales
from taciturn.protocol.terms import Terms


@dataclass(frozen=True, slots=True)
class Turns:
    """How a training's products are asked for, alike on both sides.

    Args:
        ring: The sizes of the products.
        low_bits: h, the bits of G's low digit; 0 where an iteration has two exchanges.
    """

    ring: Wrapping
    low_bits: int = 0

    @classmethod
    def of(
        cls, terms: Terms, scales: Scales, rows: int, columns: int, magnitude_bits: int
    ) -> Turns:
        """One exchange where the scheme has no more work with it than with two.

        Args:
            terms: The agreement in use.
            scales: Its scales.
            rows: Those of either table.
            columns: Alice's.
            magnitude_bits: No value of hers exceeds 2^magnitude_bits.
        """
        batch = min(terms.longest_batch, rows)
        if not _pays(terms.scheme, batch, columns):
            return cls(scales.ring(magnitude_bits, max(columns, batch)))
        # G modulo t has no more bits than t has.
        widest = 2 * (scales.feature_bits + magnitude_bits) + (columns - 1).bit_length()
        digit = min(widest, scales.modulus_bits - 1) // 2
        bits = max(digit, scales.feature_bits + magnitude_bits)
        return cls(Wrapping.of(scales.modulus_bits, bits, 2 * batch + columns), digit + 1)

    @property
    def ahead(self) -> bool:
        """Whether a step brings the next scores with it."""
        return self.low_bits > 0

    def matrix(self, rows: IntArray | FloatArray, following: IntArray | FloatArray) -> IntArray:
        """Alice's matrix: the step of these rows, and the scores of those that follow.

        >>> turns = Turns(Wrapping.of(modulus_bits=20, matrix_bits=4, terms=4), low_bits=3)
        >>> turns.matrix(np.array([[3.0, -4.0]]), np.array([[5.0, 1.0]]))
        array([[ 3,  0,  0,  0],
               [-4,  0,  0,  0],
               [ 3,  1,  5,  1]])
        """
        batch, columns = rows.shape
        low, high = self._digits(following.astype(np.int64) @ rows.astype(np.int64).T)
        whole = np.zeros((columns + len(following), 2 * batch + columns), dtype=np.int64)
        whole[:columns, :batch] = rows.T
        whole[columns:, :batch] = low
        whole[columns:, batch : 2 * batch] = high
        whole[columns:, 2 * batch :] = following
        return whole

    def _digits(self, products: IntArray) -> tuple[IntArray, IntArray]:
        """The low digit, centred around zero, and the rest."""
        # 64-bit sums wrap modulo 2^64, of which t is a divisor.
        reduced = self.ring.centred(products)
        high = (reduced + (1 << (self.low_bits - 1))) >> self.low_bits
        return reduced - (high << self.low_bits), high

    def vector(self, step: IntArray, share: IntArray) -> IntArray:
        """Bob's vector where he asks for the next scores: the step twice, and his share."""
        return np.concatenate([step, self.ring.centred(step << self.low_bits), share])


def _pays(scheme: Scheme, batch: int, columns: int) -> bool:
    """Whether one product is no more work than two; a tie saves a round trip."""
    one = scheme.effort(columns + batch, 2 * batch + columns)
    return one <= scheme.effort(batch, columns) + scheme.effort(columns, batch)
