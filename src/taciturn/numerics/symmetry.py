"""Whether the scores of all passes come from one table: a test of exact symmetry.

In whole-table training a direction ``a`` is answered with ``z = K a``, where ``K = T T^T`` for
Alice's rounded table T, or a sum of such matrices for several Alices. With the directions and the
scores of all passes as columns of A and Z, ``A^T Z = A^T K A`` is symmetric. Answers from another
table in one pass, or from a matrix that is not symmetric, make it so only by chance.

**Guarantee.** Exact: 0 for honest answers, and one unit in one score of one row in one pass shows,
unless that row's number is zero (modulo t) in every other direction. An error of ``2^m`` units
shows modulo ``2^(k-m)`` only: one of t/2 is missed where that row's number is even in all other
directions, one time in ``2^(p-1)`` of p passes.

Scores are known modulo t alone, since one that is too large wraps. So the products are taken modulo
t as well: 64-bit integers wrap modulo 2^64, of which ``t = 2^k`` is a divisor, and the identity
holds between residue classes. A score that wrapped raises no alarm, and nothing is rounded.

**Does not show** an Alice who used the same other table in every pass: that is symmetric too.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from taciturn.arrays import FloatArray, IntArray
from taciturn.memmap import over_blocks


@dataclass(frozen=True, slots=True)
class Symmetry:
    """Largest difference between mirrored entries, in units of ``A^T Z``; 0 passes."""

    largest: int
    passed: bool


@dataclass(frozen=True, slots=True, repr=False)
class OpenedPasses:
    """Directions and the exact scores that answered them, one array of each for a pass.

    A direction has whole multiples of ``2^-direction_bits``; scores are integers modulo
    ``2^modulus_bits``.
    """

    directions: Sequence[FloatArray]
    scores: Sequence[IntArray]
    direction_bits: int
    modulus_bits: int

    def symmetry(self) -> Symmetry:
        """Compare every pair of passes, in one walk over the rows."""
        unit = 2.0**self.direction_bits

        def product(place: slice) -> NDArray[np.uint64]:
            asked = np.stack(
                [np.rint(direction[place] * unit).astype(np.int64) for direction in self.directions]
            )
            answered = np.stack([scores[place] for scores in self.scores])
            # Unsigned: arithmetic that wraps is defined for it.
            total: NDArray[np.uint64] = asked.view(np.uint64) @ answered.view(np.uint64).T
            return total

        walked = (*self.directions, *self.scores)
        blocks = over_blocks(product, len(self.scores[0]), *walked)
        products = reduce(operator.add, blocks)
        # In arrays alone: a test while the peer is connected takes the same time for all numbers.
        below = np.uint64((1 << self.modulus_bits) - 1)
        differences = (products - products.T) & below
        largest = int(np.minimum(differences, -differences & below).max())
        return Symmetry(largest, largest == 0)
