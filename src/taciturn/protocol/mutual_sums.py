"""What newton with shared scores opens in the end: sums over all rows, and no row's number.

The loss of the last two passes, at the points from which their steps start, and how many scores of
the last one may lie beyond their range. Both sides hold shares of these sums modulo the slots'
prime p; after the last pass Alice sends hers (``OpenedSums``), and Bob adds.

**The loss** of a row is ``g(z) - h z``, g even and h the residue of a score of zero, which is half
the weight of its class with the label's sign. Its even part is a sum of waves: another table of
Alice's for the ciphertexts of the sigmoid (``LossShares``). The other part is linear,

    sum of h z / n = y^T (X~^T h / n) = y^T W_1

and W_1 is what the first pass ends with, since its points are zero. Shares of both y and W_1 have
carries, so that each side scales its own down; the product of two shared vectors needs what one
side's shares make of the other's. In digits of 30 bits these are products number by number:

    a b = a_0 b_0 + 2^30 (a_0 b_1 + a_1 b_0) + 2^60 a_1 b_1         modulo p

four slots for each number, each under a mask of its own; the sums are each side's to take, alone.

**The count** is that of ``numerics.shared_range``: Bob's marks times Alice's table, a sum over all.

**Noise.** Alice adds a uniform number to each share that she sends: 2^-16 of a loss in all, and
less than one of the count. A uniform number of M values leaves an opened number modulo p at most
``log2(p / M)`` bits of information, whatever Bob has sent in place of his numbers (``bits``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, IntArray, WordArray
from taciturn.crypto.bfv.modular import Multiplier, block_sums, products
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.periodic_sigmoid import SharedSigmoid
from taciturn.numerics.shared_fraction import Carried, SharedFraction
from taciturn.numerics.shared_range import RangeCount
from taciturn.protocol.messages import OpenedSums, ShareNumbers
from taciturn.protocol.mutual import Numbers, shares_modulo_prime
from taciturn.protocol.scales import Scales
from taciturn.protocol.steps import Program, receive, send
from taciturn.rng import Entropy

LOSSES = 2
"""The passes whose loss is opened: the last ones."""
NOISE_BITS = 16
_DIGIT_BITS = 30
_DIGIT = np.uint64((1 << _DIGIT_BITS) - 1)
_DIGITS = 4
CROSSED = 2 * _DIGITS
"""Products number by number for each weight: its slope's and its point's."""
# What is left of the modulus for the sign and for roundings.
_SPARE_BITS = 2
_ENTRY_BITS = 30

Exchange: TypeAlias = Callable[[str, int, tuple[int, ...], Numbers], Program[WordArray]]
"""``shared_products`` of either side."""


class OpenedFigures(NamedTuple):
    """What Bob reads: mean losses of the last passes, and how many scores may not fit."""

    losses: tuple[float, ...]
    beyond: int


@dataclass(frozen=True, slots=True)
class SumsPlan:
    """How the sums of a training lie, alike on both sides.

    ``modulus`` is the slots' prime, ``heaviest`` the largest weight of a class.
    """

    sigmoid: SharedSigmoid
    scales: Scales
    rows: int
    passes: int
    score_range: float
    heaviest: float
    modulus: int

    def opens(self, number: int) -> bool:
        """Whether the loss of a pass is opened."""
        return number >= self.passes - LOSSES

    @property
    def numbers(self) -> int:
        """How many numbers are opened."""
        return min(self.passes, LOSSES) + 1

    @property
    def range_count(self) -> RangeCount:
        """How scores beyond the range are counted."""
        half_range = self.sigmoid.sigmoid.half_range
        return RangeCount(self.scales.modulus_bits, half_range, self.score_range)

    @property
    def point_shift(self) -> int:
        """The digits by which a point is scaled down."""
        return max(0, math.floor(math.log2(self._point_unit)) - self._digits)

    @property
    def slope_shift(self) -> int:
        """The digits by which the first pass's products are."""
        return self.point_shift + self.scales.shared_shift

    @property
    def loss_unit(self) -> float:
        """A mean loss of 1."""
        return (self._point_unit * 2.0**-self.point_shift) ** 2

    @property
    def loss_noise(self) -> int:
        """How many values the noise of a loss takes."""
        return max(1, int(self.loss_unit * 2.0**-NOISE_BITS))

    @property
    def mark(self) -> int:
        """A mark of Bob's, as a number."""
        left = self.scales.modulus_bits - _SPARE_BITS - _ENTRY_BITS - self.rows.bit_length()
        return 1 << max(0, min(left, _ENTRY_BITS))

    @property
    def count_unit(self) -> int:
        """A score that is counted, and how many values the noise of the count takes."""
        return self.mark << _ENTRY_BITS

    @property
    def bits(self) -> float:
        """What all opened numbers can tell at most, in bits."""
        noise = [self.loss_noise] * (self.numbers - 1) + [self.count_unit]
        return sum(math.log2(self.modulus / values) for values in noise)

    @property
    def _point_unit(self) -> float:
        return 2.0**self.scales.weight_bits / self.scales.factor

    @property
    def _digits(self) -> int:
        """Binary digits of weights: the sum must fit the modulus, and Alice's numbers a slot."""
        whole = self.scales.modulus_bits - _SPARE_BITS
        whole -= math.ceil(math.log2(self.scales.score_bound * max(1.0, self.heaviest)))
        largest = math.ceil(math.log2(float(self.sigmoid.sigmoid.loss_coefficients[0])))
        entries = (
            _ENTRY_BITS - max(0, largest) + self.sigmoid.bits + math.floor(math.log2(self.rows))
        )
        return min(whole, entries) // 2 - 1


@dataclass(frozen=True, slots=True)
class SharedSums:
    """One side's shares of the sums; ``exchange`` is its ``shared_products``."""

    plan: SumsPlan
    fraction: SharedFraction
    exchange: Exchange

    @property
    def raises(self) -> bool:
        """Whether this is Alice's side."""
        return self.fraction.raises

    def slope(self, products: IntArray, carries: IntArray) -> IntArray:
        """This side's share of W_1, modulo p."""
        return self._scaled(products, carries, self.plan.slope_shift).view(np.int64)

    def shared_loss(
        self, number: int, slope: IntArray, point: IntArray, carries: IntArray, even: WordArray
    ) -> Program[int]:
        """This side's share of the loss of a pass, from its shares of the rows' even parts."""
        modulus = self.plan.modulus
        slopes = slope.view(np.uint64)
        points = self._scaled(point, carries, self.plan.point_shift)
        # Alice's points meet Bob's slopes, and her slopes his points.
        pair = np.concatenate([points, slopes] if self.raises else [slopes, points])
        digits = self._digits(pair)
        shape, turn = (len(digits), 1), self.plan.passes + number
        crossed = yield from self.exchange("digits", turn, shape, lambda rows: digits[rows])
        parts = crossed.reshape(-1, _DIGITS)
        powers = (0, _DIGIT_BITS, _DIGIT_BITS, 2 * _DIGIT_BITS)
        scaled = [
            Multiplier((1 << power) % modulus, modulus)(part)
            for power, part in zip(powers, parts.T, strict=True)
        ]
        linear = _total(np.concatenate([*scaled, products(slopes, points, modulus)]), modulus)
        return (_total(even, modulus) - linear) % modulus

    def shared_count(self, scores: IntArray) -> Program[int]:
        """This side's share of the count."""
        count, plan = self.plan.range_count, self.plan

        def numbers(rows: slice) -> IntArray:
            parts = self.fraction.parts(scores[rows])
            marked: BoolArray = count.table(parts) if self.raises else count.marks(parts)
            return marked * np.int64((1 << _ENTRY_BITS) if self.raises else plan.mark)

        shape = len(scores), count.segments
        shares = yield from self.exchange("range", 2 * plan.passes, shape, numbers)
        return _total(shares, plan.modulus)

    def open_sums(self, sums: IntArray, entropy: Entropy) -> Program[None]:
        """Alice sends her shares, with noise."""
        plan = self.plan
        losses = entropy.fork("losses").integers(plan.loss_noise, plan.numbers - 1)
        counts = entropy.fork("count").integers(plan.count_unit, 1)
        noise = [int(drawn) - plan.loss_noise // 2 for drawn in losses] + [int(counts[0])]
        given = [(int(one) + more) % plan.modulus for one, more in zip(sums, noise, strict=True)]
        yield from send(OpenedSums(ShareNumbers(np.array(given, dtype=np.int64))))

    def read_sums(self, sums: IntArray, halves: FloatArray) -> Program[OpenedFigures]:
        """Bob adds his; ``halves`` are the rows' residues of scores of zero."""
        plan = self.plan
        given = (yield from receive(OpenedSums)).shares
        if len(given) != len(sums):
            raise RemoteProtocolError(
                f"the peer opens {len(given)} sums where {len(sums)} are expected"
            )
        pairs = zip(sums.tolist(), given.tolist(), strict=True)
        *losses, beyond = [(own + hers) % plan.modulus for own, hers in pairs]
        # What the waves of the loss swing around.
        mean = plan.sigmoid.sigmoid.half_range / 4 * 2.0 * float(np.mean(np.abs(halves)))
        half = plan.modulus // 2
        centred = ((loss + half) % plan.modulus - half for loss in losses)
        means = tuple(mean + loss / plan.loss_unit for loss in centred)
        return OpenedFigures(means, beyond // plan.count_unit)

    def _scaled(self, shares: IntArray, carries: IntArray, shift: int) -> WordArray:
        fraction = replace(self.fraction, shift=shift)
        scaled = fraction.scaled_down(Carried(fraction.parts(shares), carries))
        bits = fraction.modulus_bits
        return shares_modulo_prime(scaled, self.plan.modulus, bits, less=self.raises)

    def _digits(self, values: WordArray) -> IntArray:
        """Four numbers of each, in an order such that both sides' products are all four."""
        low, high = values & _DIGIT, values >> np.uint64(_DIGIT_BITS)
        four = [low, high, low, high] if self.raises else [low, low, high, high]
        return np.stack(four, axis=1).reshape(-1, 1).view(np.int64)


def _total(values: WordArray, modulus: int) -> int:
    return int(block_sums(values[np.newaxis], modulus)[0])
