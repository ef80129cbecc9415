"""Sums over all rows that a ``mutual`` training opens at its end: both parties' part.

**The opened sums.** A training on ``OPENING_ROWS`` rows or more opens two sums over all rows: by
how much the loss fell between the points where the steps of the last two passes start, and how
many scores of the last pass may lie out of range. Both parties hold shares of both losses and of
the count modulo p; the shares of the losses are subtracted. After the last pass Alice sends her
shares of the change and the count (``OpenedSums``), and Bob adds his. With fewer rows nothing is
opened and none of these messages is sent.

**The loss** of a row is ``g(z) - h z``, with g even and h the residue of a score of zero: half the
weight of the row's class, with the label's sign. Its even part is a sum of waves: a second table of
Alice's for the sigmoid's ciphertexts (``LossShares``). The other part is linear,

    sum of h z / n = y^T (X~^T h / n) = y^T W_1

where W_1 is the result of the first pass, which starts at zero. Shares of y and W_1 have carries,
so each party scales its own down. The product of two shared vectors needs the cross products of the
parties' shares. In digits of 30 bits these are products number by number:

    a b = a_0 b_0 + 2^30 (a_0 b_1 + a_1 b_0) + 2^60 a_1 b_1         modulo p

with four slots for each number, each under its own mask.

**The count** is that of ``numerics.shared_fraction``: the sum of Bob's marks times Alice's table.

**Noise.** Alice adds a uniform number to each share that she sends. ``privacy.openings.row_noise``
has the width in rows: one row or more of the change, 16 of the count. After noise of M values an
opened number modulo p carries at most ``log2(p / M)`` bits of information, whatever Bob sent in
place of his numbers (``SumsPlan.bits``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from taciturn.arrays import BoolArray, IntArray, WordArray
from taciturn.crypto.bfv.modular import Multiplier as ModularMultiplier
from taciturn.crypto.bfv.modular import block_sums, products
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.periodic_sigmoid import SharedSigmoid
from taciturn.numerics.shared_fraction import Carried, SharedFraction
from taciturn.numerics.shared_range import RangeCount
from taciturn.privacy.row_noise import (
    SUM_ROWS,
    SumKind,
    opens_sums,
    row_noise,
)
from taciturn.protocol.messages import OpenedSums, ShareNumbers
from taciturn.protocol.mutual import (
    Numbers,
    shares_modulo_prime,
)
from taciturn.protocol.scales import Scales
from taciturn.protocol.steps import Program, receive, send
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy

LOSSES = 2
"""Number of last passes whose losses make the opened change."""

OPENED_BITS = 2
"""Additional digits of Bob's numbers in these passes.

A mean loss is then off by about 2e-5, where the tolerance of convergence is 1e-4 or more. Alice's
roundings weigh four times as much in a residue, at random: that hardly moves two steps.
"""

_DIGIT_BITS = 30
_DIGIT = np.uint64((1 << _DIGIT_BITS) - 1)
_DIGITS = 4
CROSSED = 2 * _DIGITS
"""Products number by number for each weight: digits of its slope and of its point."""
# Bits of the modulus for the sign and for roundings.
_SPARE_BITS = 2
_ENTRY_BITS = 30
Exchange: TypeAlias = Callable[[str, int, tuple[int, ...], Numbers], Program[WordArray]]
"""Type of ``shared_products`` of either side."""


@dataclass(frozen=True, slots=True)
class OpenedFigures:
    """The opened sums as Bob reads them, each with noise; None if a sum is not opened.

    ``change`` is the decrease of the mean loss between the last two passes. ``count`` is the number
    of scores that may be out of range, with noise of whole numbers from ``-SUM_ROWS / 2`` on.
    """

    change: float | None = None
    count: int | None = None

    @property
    def beyond(self) -> int | None:
        """Lower bound on the number of scores that may be out of range."""
        return None if self.count is None else max(0, self.count - SUM_ROWS // 2 + 1)


@dataclass(frozen=True, slots=True)
class SumsPlan:
    """Scales and sizes of the opened sums, equal on both sides.

    ``modulus`` is the slots' prime, ``heaviest`` the largest class weight, and ``losses`` the
    number of last passes whose losses make the opened change: 0 or ``LOSSES``. Nothing is opened
    where ``counts`` is false.
    """

    sigmoid: SharedSigmoid
    scales: Scales
    rows: int
    passes: int
    score_range: float
    heaviest: float
    modulus: int
    losses: int = LOSSES
    counts: bool = True

    def sums_loss(self, number: int) -> bool:
        """Return whether the loss of a pass is summed for the opened change."""
        return number >= self.passes - self.losses

    @property
    def numbers(self) -> int:
        """Number of opened sums."""
        return (self.losses > 0) + self.counts

    @property
    def range_count(self) -> RangeCount:
        """Count of scores out of range."""
        half_range = self.sigmoid.sigmoid.half_range
        return RangeCount(self.scales.modulus_bits, half_range, self.score_range)

    @property
    def point_shift(self) -> int:
        """Binary digits by which a point is scaled down."""
        return max(0, math.floor(math.log2(self._point_unit)) - self._digits)

    @property
    def slope_shift(self) -> int:
        """Binary digits by which the products of the first pass are scaled down."""
        return self.point_shift + self.scales.shared_shift

    @property
    def loss_unit(self) -> float:
        """Integer that stands for a mean loss of 1."""
        return (self._point_unit * 2.0**-self.point_shift) ** 2

    @property
    def change_noise(self) -> int:
        """Number of values of the noise on the change."""
        width = row_noise("change of the loss", self.rows).width
        return round(self.loss_unit / self.rows * width)

    @property
    def mark(self) -> int:
        """Integer of a mark of Bob's."""
        left = self.scales.modulus_bits - _SPARE_BITS - _ENTRY_BITS - self.rows.bit_length()
        return 1 << max(0, min(left, _ENTRY_BITS))

    @property
    def count_unit(self) -> int:
        """Integer of one counted score."""
        return self.mark << _ENTRY_BITS

    @property
    def count_noise(self) -> int:
        """Number of values of the noise on the count."""
        return self.count_unit * round(row_noise("count of scores", self.rows).width)

    @property
    def noise(self) -> list[int]:
        """Number of values of the noise on each opened sum."""
        change = [self.change_noise] if self.losses else []
        return change + ([self.count_noise] if self.counts else [])

    @property
    def bits(self) -> float:
        """Upper bound in bits on what all opened numbers reveal."""
        return sum(math.log2(self.modulus / values) for values in self.noise)

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
    """One side's computation of its shares of the sums; ``exchange`` is its ``shared_products``."""

    plan: SumsPlan
    fraction: SharedFraction
    exchange: Exchange

    @property
    def raises(self) -> bool:
        """True on Alice's side."""
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
            ModularMultiplier((1 << power) % modulus, modulus)(part)
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
        """Send Alice's shares, with noise; nothing where no sum is opened."""
        plan = self.plan
        if not plan.numbers:
            return
        drawn = [
            int(entropy.fork(f"noise {at}").integers(values, 1)[0]) - values // 2
            for at, values in enumerate(plan.noise)
        ]
        opened = zip(self._opened_shares(sums), drawn, strict=True)
        given = [(share + more) % plan.modulus for share, more in opened]
        yield from send(OpenedSums(ShareNumbers(np.array(given, dtype=np.int64))))

    def read_sums(self, sums: IntArray) -> Program[OpenedFigures]:
        """Receive Alice's shares and add Bob's; nothing where no sum is opened."""
        plan, own = self.plan, self._opened_shares(sums)
        if not plan.numbers:
            return OpenedFigures()
        given = (yield from receive(OpenedSums)).shares
        if len(given) != len(own):
            raise RemoteProtocolError(
                f"the peer opens {len(given)} sums where {len(own)} are expected"
            )
        half, pairs = plan.modulus // 2, zip(own, given.tolist(), strict=True)
        opened = [(his + hers + half) % plan.modulus - half for his, hers in pairs]
        return OpenedFigures(
            opened[0] / plan.loss_unit if plan.losses else None,
            opened[-1] // plan.count_unit if plan.counts else None,
        )

    def _opened_shares(self, sums: IntArray) -> list[int]:
        """This side's shares of the sums that are opened, from those of the losses and the count.

        The mean around which the waves of a loss swing cancels in the change.
        """
        losses, rest = sums.tolist()[: self.plan.losses], sums.tolist()[self.plan.losses :]
        return [losses[0] - losses[1], *rest] if losses else rest

    def _scaled(self, shares: IntArray, carries: IntArray, shift: int) -> WordArray:
        fraction = replace(self.fraction, shift=shift)
        scaled = fraction.scaled_down(Carried(fraction.parts(shares), carries))
        bits = fraction.modulus_bits
        return shares_modulo_prime(scaled, self.plan.modulus, bits, negate=self.raises)

    def _digits(self, values: WordArray) -> IntArray:
        """Four digits of each number, ordered so that slots multiply all four pairs of digits."""
        low, high = values & _DIGIT, values >> np.uint64(_DIGIT_BITS)
        four = [low, high, low, high] if self.raises else [low, low, high, high]
        return np.stack(four, axis=1).reshape(-1, 1).view(np.int64)


def _total(values: WordArray, modulus: int) -> int:
    return int(block_sums(values[np.newaxis], modulus)[0])


def opened_sums(terms: Terms, rows: int) -> tuple[SumKind, ...]:
    """Return the sums over all rows that a ``mutual`` training opens at its end, in their order.

    The training of a fold opens none where a study judges by sums.
    """
    agreed = terms.agreement
    if not opens_sums(rows) or (terms.summed is not None and terms.summed.fold):
        return ()
    # A squared loss is no sum of the sigmoid's waves, and one pass changes no loss.
    if not agreed.kind.has_classes or agreed.rounds < 2:
        return ("count of scores",)
    return ("change of the loss", "count of scores")


def summed_losses(terms: Terms, rows: int) -> int:
    """Number of last passes whose losses make the opened change; 0 if none is opened."""
    return LOSSES if "change of the loss" in opened_sums(terms, rows) else 0
