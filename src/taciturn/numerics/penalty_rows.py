"""The L2 penalty of several Alices as rows of a table, of which Bob sees sums only.

In newton Bob needs ``l2 |w|^2`` of the weights that he tries. Of one Alice it follows from her
scores (``taciturn.numerics.whitening``); of several he sees only the sum of their scores, from
which it does not follow. So each Alice p has, below her n rows, D more, as many as all Alices have
columns. With her whitened coordinates ``w~_p = L_p^T w_p`` they are::

    P_p = 2^gain sqrt(l2) Q_p R_p L_p^-T        sum of P_p w~_p = 2^gain sqrt(l2) Q [R_p w_p]

Q is an orthogonal matrix that all Alices know and Bob does not, Q_p its columns at the place of
hers; R_p is an orthogonal matrix that she alone knows. Bob is given the sum over all Alices, under
masks as all scores are. Its square is ``4^gain l2 |w|^2`` of all weights together, and a direction
that has a number for each of these rows too can be the steepest descent of the penalised loss.

**What it tells.** Bob learns the products in pairs of the joint weights of his directions, and no
more: Q is uniform among all rotations. An Alice who tells him Q gives him those of each single
Alice, because R_p stays hers. Both but for the rounding of the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.numerics.whitening import Whitening
from taciturn.rng import Entropy


def gain_bits(rows: int, magnitude_bits: int) -> int:
    """By how much these rows are enlarged, so that they have as many digits as others.

    No entry exceeds ``2^gain``. Beyond ``sqrt(4n)`` they would be longer than columns are.

    Args:
        rows: n.
        magnitude_bits: No other entry of the table exceeds two to this.

    >>> gain_bits(455, 3), gain_bits(455, 9)
    (3, 5)
    """
    return min(magnitude_bits, math.floor(math.log2(4 * rows) / 2))


def rotation(size: int, entropy: Entropy) -> FloatArray:
    """An orthogonal matrix, uniform among all of them.

    >>> from taciturn.rng import KeyedEntropy
    >>> matrix = rotation(3, KeyedEntropy.from_seed(1))
    >>> np.allclose(matrix @ matrix.T, np.eye(3))
    True
    """
    orthogonal, upper = np.linalg.qr(_normals(size, entropy))
    # Without it the result would depend on how the library chooses signs [Mezzadri07, Sec. 5].
    result: FloatArray = orthogonal * np.where(np.diagonal(upper) < 0.0, -1.0, 1.0)
    return result


def penalty_rows(
    whitening: Whitening, l2: float, common: FloatArray, own: FloatArray, gain: int
) -> FloatArray:
    """One Alice's rows, as many as all Alices have columns.

    Args:
        whitening: Hers.
        l2: The factor of half the sum of squared weights.
        common: Her columns of the rotation that all Alices have.
        own: The rotation that she alone has.
        gain: ``gain_bits``.

    >>> from taciturn.rng import KeyedEntropy
    >>> values, own = np.array([[2.0], [-1.0]]), np.eye(1)
    >>> whitening = Whitening.of(values, 0.5)
    >>> rows = penalty_rows(whitening, 0.5, np.array([[0.6], [0.8]]), own, 0)
    >>> weights = np.array([3.0])
    >>> float(np.sum((rows @ whitening.whitened(weights)) ** 2)).__round__(9)
    4.5
    """
    inverse = np.linalg.inv(whitening.factor).T
    rows: FloatArray = math.ldexp(math.sqrt(l2), gain) * (common @ (own @ inverse))
    return rows


@dataclass(frozen=True, slots=True)
class MeasuredPenalty:
    """What Bob has of these rows: one array a pass.

    Numbers and scores are those of rows that are enlarged to ``sqrt(4n)``: with them the columns of
    the whole table, rows and these, have the length ``sqrt(4n)``.

    Args:
        count: How many rows there are.
        rows: n, those of the table.
        gain: ``gain_bits``.
        numbers: Those of each direction that was sent.
        scores: What came of each.
    """

    count: int
    rows: int
    gain: int
    numbers: FloatArray = field(repr=False)
    scores: FloatArray = field(repr=False)

    @classmethod
    def empty(cls, count: int, rows: int, gain: int) -> MeasuredPenalty:
        """Before the first pass."""
        return cls(count, rows, gain, np.empty((0, count)), np.empty((0, count)))

    @property
    def factor(self) -> float:
        """What is between the rows as they are and as they count here."""
        return math.sqrt(4.0 * self.rows) / 2.0**self.gain

    def with_pass(self, numbers: FloatArray, scores: FloatArray) -> MeasuredPenalty:
        """One pass later; both as they were sent."""
        return MeasuredPenalty(
            self.count,
            self.rows,
            self.gain,
            np.vstack([self.numbers, numbers / self.factor]),
            np.vstack([self.scores, scores * self.factor]),
        )

    def with_passes(self, numbers: FloatArray, scores: FloatArray) -> MeasuredPenalty:
        """After so many passes as a state had kept."""
        shape = -1, self.count
        return MeasuredPenalty(
            self.count, self.rows, self.gain, numbers.reshape(shape), scores.reshape(shape)
        )

    def sent(self, numbers: FloatArray) -> FloatArray:
        """Numbers of these rows as they are sent."""
        return numbers * self.factor


def _normals(size: int, entropy: Entropy) -> FloatArray:
    """Independent standard normal numbers, a square of them [BoxMuller58]."""
    pairs = entropy.uniform((2, (size * size + 1) // 2))
    # Of 1 - u, which is never zero.
    radius, angle = np.sqrt(-2.0 * np.log1p(-pairs[0])), 2.0 * math.pi * pairs[1]
    normals = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
    return normals[: size * size].reshape(size, size)
