"""Products of shared vectors with a private table, and of shared numbers: both parties' part.

Shares are integers modulo ``t = 2^k``. The owner of the key sends an encrypted vector
(``VectorRequest``), the owner of the table answers under fresh masks (``MaskedMatrix``); one
program serves both directions.

**The sigmoid** (``numerics.periodic_sigmoid``). Bob encrypts sines and cosines of his share of a
score, Alice multiplies them slot by slot with those of her share. A residue is the sum of a row's
products. Number j of a block of rows is in ciphertext j, so Alice sums the products, masks the sum
and answers once; her share is minus the mask. With few rows a ciphertext holds several numbers of
each row (``SlotBlock``), and each party adds up its part of the sum. Bob adds the labels.

In most passes these sums are modulo a small prime, and a carry brings the shares to ``2^k``
(``numerics.shared_fraction.Widening``). Carries, and residues where a loss is opened, are modulo a
prime p that is ``delta`` below ``2^k`` (``SlotScheme.modulus``). If Alice's share s and Bob's s'
lie between 0 and p, then ``s + s'`` is ``r' + p``, except with probability ``|r'| / p``, when it is
``r'`` or ``r' + 2 p``. Alice subtracts p; modulo ``2^k`` the result is r', or off by delta, which
is at most two residues with 120,000 rows. That happens to one residue in 2^35 (2^40 with many
rows), and is not corrected.

**Data independence.** Each party receives ciphertexts under the other's key and decrypts numbers
that the other's fresh mask makes uniform. Both do the same work for all values, and nothing that
either decrypts changes what it does.

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

from taciturn.arrays import BoolArray, FloatArray, IntArray, WordArray
from taciturn.crypto.base import (
    EncryptedAnswer,
    EncryptedVector,
    PublicKey,
    Scheme,
    SecretKey,
    SlotScheme,
    Wrapping,
)
from taciturn.crypto.bfv.modular import Multiplier as ModularMultiplier
from taciturn.crypto.bfv.modular import block_sums, lowered, products
from taciturn.errors import ConfigError, RemoteProtocolError
from taciturn.numerics.periodic_sigmoid import SharedSigmoid
from taciturn.numerics.shared_fraction import Carried, SharedFraction
from taciturn.numerics.shared_range import RangeCount
from taciturn.privacy.openings import SUM_ROWS, row_noise
from taciturn.protocol.messages import OpenedSums, SharedProduct, SharedVector, ShareNumbers
from taciturn.protocol.scales import Scales
from taciturn.protocol.steps import Program, receive, require_turn, send
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint

LEAST_LEAK_BITS = 40
"""Bound on what all answers of a training reveal of Alice's shares, as 2^-bits."""
MOST_WAVES = 128
Numbers: TypeAlias = Callable[[slice], IntArray]
"""Function from rows to the numbers that one side multiplies, one row of them each."""
_EMPTY = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Columns:
    """Public size of one side's table; no value in it exceeds ``2^bits``."""

    count: int
    bits: int


def slots_of(scheme: Scheme) -> SlotScheme:
    """The scheme of products number by number; refuse a scheme without one."""
    slots = scheme.number_by_number
    if slots is None:
        raise ConfigError(
            f"{scheme.name} has no products number by number, which the sigmoid needs",
            setting="scheme",
            hint=Hint("use {scheme}", scheme="bfv"),
        )
    return slots


@dataclass(frozen=True, slots=True)
class SlotBlock:
    """Rows whose numbers share the slots of some ciphertexts.

    A ciphertext holds ``groups`` numbers of each row, one group after the other, so that the
    products of several ciphertexts are summed slot by slot and answered once.
    """

    rows: slice
    groups: int
    ciphertexts: int

    @property
    def length(self) -> int:
        """Numbers in a ciphertext."""
        start, stop = self.rows.start, self.rows.stop
        return self.groups * int(stop - start)

    def vectors(self, numbers: IntArray) -> IntArray:
        """The numbers of each row in the slots of each ciphertext, padded with zeros."""
        rows, entries = numbers.shape
        slots = np.zeros((self.ciphertexts * self.groups, rows), dtype=np.int64)
        slots[:entries] = numbers.T
        return slots.reshape(self.ciphertexts, self.length)

    def sums(self, slots: WordArray, modulus: int) -> WordArray:
        """The sum of each row's slots, modulo a prime."""
        return block_sums(slots.reshape(self.groups, -1).T, modulus)


def slot_blocks(slots: SlotScheme, rows: int, entries: int) -> list[SlotBlock]:
    """Split rows with ``entries`` numbers each into blocks of ciphertexts.

    >>> from taciturn.crypto.bfv.slots import BfvSlots
    >>> for block in slot_blocks(BfvSlots(), 9000, 42):
    ...     print(block.rows.start, block.rows.stop, block.groups, block.ciphertexts)
    0 8192 1 42
    8192 9000 9 5
    """
    most, blocks = slots.slots, []
    rest = _few_ciphertexts(rows % most, entries, most) if rows % most else []
    start = 0
    for count in [most] * (rows // most) + rest:
        ciphertexts = _ciphertexts(count, entries, most)
        place = slice(start, start + count)
        blocks.append(SlotBlock(place, -(-entries // ciphertexts), ciphertexts))
        start += count
    return blocks


def _ciphertexts(rows: int, entries: int, most: int) -> int:
    return -(-entries // min(most // rows, entries))


def _few_ciphertexts(rows: int, entries: int, most: int) -> list[int]:
    """Block sizes with the fewest ciphertexts, answers included.

    Either one block for all rows, or one that fills its slots and further blocks for the rest.
    """

    def cost(sizes: list[int]) -> int:
        return sum(_ciphertexts(size, entries, most) + 1 for size in sizes)

    groups = most // rows
    if groups >= entries:
        return [rows]
    first = most // (groups + 1)
    return min([rows], [first, *_few_ciphertexts(rows - first, entries, most)], key=cost)


def shares_modulo_power(sums: WordArray, modulus: int, ring: Wrapping, *, less: bool) -> IntArray:
    """Convert shares modulo a prime just below ``2^k`` to shares modulo ``2^k``.

    The module's docstring has the error. ``less`` is true on the one side that subtracts the prime.
    """
    return ring.centred(sums.view(np.int64) - np.int64(modulus if less else 0))


def shares_modulo_prime(
    shares: IntArray, modulus: int, modulus_bits: int, *, less: bool
) -> WordArray:
    """Convert shares modulo ``2^k`` of a number x to shares modulo a prime just below.

    ``less`` is true on the one side that subtracts ``2^k``. With probability ``|x| / 2^k`` the sum
    is off by the distance of the prime from ``2^k``.
    """
    prime, whole = np.uint64(modulus), 1 << modulus_bits
    parts = lowered(np.bitwise_and(shares, np.int64(whole - 1)).view(np.uint64), prime)
    return lowered(parts + np.uint64(-whole % modulus if less else 0), prime)


@dataclass(frozen=True, slots=True)
class VectorRequest:
    """Key owner's part of an exchange: a vector, and the length of the answer."""

    key: SecretKey
    vector: IntArray
    entries: int

    def encrypted(self, entropy: Entropy) -> EncryptedVector:
        """Encrypt the vector."""
        return self.key.encrypt(self.vector, self.entries, entropy)

    def decrypted(self, answer: EncryptedAnswer) -> IntArray:
        """Decrypt the answer, modulo t."""
        return self.key.decrypt_shares(answer, len(self.vector))


@dataclass(frozen=True, slots=True)
class MaskedMatrix:
    """Table owner's part of an exchange: the factors, and one mask for each entry of the answer.

    ``masks`` are uniform modulo t and used once.
    """

    key: PublicKey
    values: IntArray | FloatArray
    masks: IntArray

    @property
    def length(self) -> int:
        """Entries of the vector."""
        return len(self.values[0])

    def ready(self, entropy: Entropy) -> Callable[[EncryptedVector], EncryptedAnswer]:
        """Prepare the table and its covers; return the function from a vector to its answer."""
        prepared = self.key.prepare(self.values)
        mask = self.key.mask_of(self.masks, entropy.fork("multiples"))
        self.key.stock(prepared, mask, entropy)
        return lambda vector: self.key.masked_product(prepared, vector, mask, entropy)


def exchange(
    turn: int, question: VectorRequest | None, matrix: MaskedMatrix | None, entropy: Entropy
) -> Program[IntArray]:
    """Run one exchange in one direction or both; return the answer to this side's vector.

    ``question`` is None where this side sends no vector, ``matrix`` where the peer sends none.
    ``entropy`` serves this exchange alone.
    """
    if question is not None:
        yield from send(SharedVector(turn, question.encrypted(entropy.fork("vector"))))
    if matrix is not None:
        yield from _answer(turn, matrix, entropy.fork("answer"))
    if question is None:
        return _EMPTY
    message = yield from receive(SharedProduct)
    require_turn("SharedProduct", message.turn, turn)
    return question.decrypted(sized_answer(message.answer, question.entries))


def _answer(turn: int, matrix: MaskedMatrix, entropy: Entropy) -> Program[None]:
    # Before waiting, not after: the peer is at work meanwhile.
    product = matrix.ready(entropy)
    message = yield from receive(SharedVector)
    require_turn("SharedVector", message.turn, turn)
    answer = product(sized_vector(message.vector, matrix.length))
    yield from send(SharedProduct(turn, answer))


def sized_vector(vector: EncryptedVector, length: int) -> EncryptedVector:
    """Return the vector; refuse another length, which depends on public sizes alone."""
    if vector.length != length:
        raise RemoteProtocolError(
            f"the peer's vector has {vector.length} entries where {length} are expected"
        )
    return vector


def sized_answer(answer: EncryptedAnswer, entries: int) -> EncryptedAnswer:
    """Return the answer; refuse another length, which depends on public sizes alone."""
    if answer.length != entries:
        raise RemoteProtocolError(
            f"the peer answers with {answer.length} entries where {entries} are expected"
        )
    return answer


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
        return shares_modulo_prime(scaled, self.plan.modulus, bits, less=self.raises)

    def _digits(self, values: WordArray) -> IntArray:
        """Four digits of each number, ordered so that slots multiply all four pairs of digits."""
        low, high = values & _DIGIT, values >> np.uint64(_DIGIT_BITS)
        four = [low, high, low, high] if self.raises else [low, low, high, high]
        return np.stack(four, axis=1).reshape(-1, 1).view(np.int64)


def ring_words(shares: IntArray, bits: int) -> WordArray:
    """Represent shares modulo ``2^bits`` as non-negative words."""
    words: WordArray = np.bitwise_and(shares, np.int64((1 << bits) - 1)).view(np.uint64)
    return words


def _total(values: WordArray, modulus: int) -> int:
    return int(block_sums(values[np.newaxis], modulus)[0])
