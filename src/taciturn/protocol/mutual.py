"""Products of shared vectors with one party's columns: what both parties do alike.

Shares live modulo ``t = 2^k``. Who owns the key asks (``VectorRequest``), who owns the columns
answers (``MaskedMatrix``) and draws the masks; the two halves of an exchange are one program,
mirrored.

**The sigmoid.** ``numerics.periodic_sigmoid``: Bob's numbers of his share, under a key of his for
products number by number, times Alice's of hers. A residue is the sum of a row's products. Number j
of a block of rows stands in ciphertext j, so that she sums the products, masks the sum, and answers
once; her share is minus the mask. Of few rows a ciphertext holds several numbers each
(``SlotBlock``), and each side sums what is left. The label, times the step, is Bob's to add.

In most passes those sums are modulo a small prime, and shares are brought to ``2^k`` by their
carries (``numerics.shared_fraction.Widening``). Carries, and residues where a loss is opened, are
modulo a prime p, and shares live modulo ``2^k``, of which p is ``delta`` less
(``SlotScheme.modulus``). With her share s taken from 0 to p and his likewise, ``s + s'`` is
``r' + p``, but for a chance of ``|r'| / p``, when it is ``r'`` or ``r' + 2 p``: she takes p off,
and what is left modulo ``2^k`` is r', or off by delta, at most two residues with 120,000 rows. That
happens to one of 2^35 residues, of 2^40 with many rows, and needs no correction.

**What is told.** Each side receives ciphertexts of the other's key, and decrypts numbers that the
other's fresh mask makes uniform. Both do the same work for all values, and nothing that either
decrypts changes what it does.

What newton with shared scores opens in the end: sums over all rows, and no row's number.

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

**The count** is that of ``numerics.shared_fraction``: Bob's marks times Alice's table, all summed.

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
from taciturn.numerics.shared_fraction import Carried, RangeCount, SharedFraction
from taciturn.protocol.messages import OpenedSums, SharedProduct, SharedVector, ShareNumbers
from taciturn.protocol.scales import Scales
from taciturn.protocol.steps import Program, receive, require_turn, send
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint

LEAST_LEAK_BITS = 40
"""What all answers of a training together may tell of a table, as 2^-bits."""
MOST_WAVES = 128
Numbers: TypeAlias = Callable[[slice], IntArray]
"""The numbers of some rows that one side multiplies, a row of them for each."""
_EMPTY = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Columns:
    """What both sides know of one side's table: no value in it exceeds ``2^bits``."""

    count: int
    bits: int


def slots_of(scheme: Scheme) -> SlotScheme:
    """The scheme's products number by number."""
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
    """Rows whose numbers stand in the same slots of some ciphertexts.

    A ciphertext holds ``groups`` numbers of each row, number after number, so that products of
    several ciphertexts are summed slot by slot, and one answer serves them all.
    """

    rows: slice
    groups: int
    ciphertexts: int

    @property
    def length(self) -> int:
        """How many numbers a ciphertext holds."""
        start, stop = self.rows.start, self.rows.stop
        return self.groups * int(stop - start)

    def vectors(self, numbers: IntArray) -> IntArray:
        """The numbers of each row, in the slots of each ciphertext; what is left is zero."""
        rows, entries = numbers.shape
        slots = np.zeros((self.ciphertexts * self.groups, rows), dtype=np.int64)
        slots[:entries] = numbers.T
        return slots.reshape(self.ciphertexts, self.length)

    def sums(self, slots: WordArray, modulus: int) -> WordArray:
        """The sum of each row's slots, modulo a prime."""
        return block_sums(slots.reshape(self.groups, -1).T, modulus)


def slot_blocks(slots: SlotScheme, rows: int, entries: int) -> list[SlotBlock]:
    """How the numbers of all rows, ``entries`` a row, lie in ciphertexts.

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
    """Sizes of blocks: one for all rows, or a smaller one that leaves no slot empty, and the rest.

    Whichever has fewer ciphertexts, the answers included.
    """

    def cost(sizes: list[int]) -> int:
        return sum(_ciphertexts(size, entries, most) + 1 for size in sizes)

    groups = most // rows
    if groups >= entries:
        return [rows]
    first = most // (groups + 1)
    return min([rows], [first, *_few_ciphertexts(rows - first, entries, most)], key=cost)


def shares_modulo_power(sums: WordArray, modulus: int, ring: Wrapping, *, less: bool) -> IntArray:
    """Shares modulo a prime just below ``2^k``, as shares modulo ``2^k``; see the file's text.

    ``less`` says whether this side takes the prime off: one of the two does.
    """
    return ring.centred(sums.view(np.int64) - np.int64(modulus if less else 0))


def shares_modulo_prime(
    shares: IntArray, modulus: int, modulus_bits: int, *, less: bool
) -> WordArray:
    """The other way: shares modulo ``2^k`` of a number x, as shares modulo a prime just below.

    ``less`` says whether this side takes ``2^k`` off. That is right but for a chance of ``|x| /
    2^k``, when the sum is off by the distance of the prime from ``2^k``.
    """
    prime, whole = np.uint64(modulus), 1 << modulus_bits
    parts = lowered(np.bitwise_and(shares, np.int64(whole - 1)).view(np.uint64), prime)
    return lowered(parts + np.uint64(-whole % modulus if less else 0), prime)


@dataclass(frozen=True, slots=True)
class VectorRequest:
    """A vector under its owner's key, for an answer of ``entries`` entries."""

    key: SecretKey
    vector: IntArray
    entries: int

    def encrypted(self, entropy: Entropy) -> EncryptedVector:
        """The vector for the peer."""
        return self.key.encrypt(self.vector, self.entries, entropy)

    def decrypted(self, answer: EncryptedAnswer) -> IntArray:
        """What the answer holds, modulo t."""
        return self.key.decrypt_shares(answer, len(self.vector))


@dataclass(frozen=True, slots=True)
class MaskedMatrix:
    """What a question of the peer's is multiplied with.

    ``masks`` has one for each entry of the answer; uniform modulo t, and used once.
    """

    key: PublicKey
    values: IntArray | FloatArray
    masks: IntArray

    @property
    def length(self) -> int:
        """How many entries the vector has."""
        return len(self.values[0])

    def ready(self, entropy: Entropy) -> Callable[[EncryptedVector], EncryptedAnswer]:
        """The product; covers are made ahead."""
        prepared = self.key.prepare(self.values)
        mask = self.key.mask_of(self.masks, entropy.fork("multiples"))
        self.key.stock(prepared, mask, entropy)
        return lambda vector: self.key.masked_product(prepared, vector, mask, entropy)


def exchange(
    turn: int, question: VectorRequest | None, matrix: MaskedMatrix | None, entropy: Entropy
) -> Program[IntArray]:
    """Asks the peer, answers it, or both; returns the answer to this side's question.

    ``question`` is None where this side does not ask, ``matrix`` where the peer does not.
    ``entropy`` is for this exchange alone.
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
    """The vector, if it has as many entries as are due: a matter of structure, not of content."""
    if vector.length != length:
        raise RemoteProtocolError(
            f"the peer's vector has {vector.length} entries where {length} are expected"
        )
    return vector


def sized_answer(answer: EncryptedAnswer, entries: int) -> EncryptedAnswer:
    """The answer, if it has as many entries as are due: a matter of structure, not of content."""
    if answer.length != entries:
        raise RemoteProtocolError(
            f"the peer answers with {answer.length} entries where {entries} are expected"
        )
    return answer


LOSSES = 2
"""The passes whose loss is opened: the last ones."""
OPENED_BITS = 2
"""Further digits of Bob's numbers in these passes.

A mean loss is then off by about 2e-5, where the tolerance of convergence is 1e-4 or more. Alice's
roundings weigh four times as much in a residue, at random: that hardly moves two steps.
"""
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

    ``modulus`` is the slots' prime, ``heaviest`` the largest weight of a class, and ``losses`` how
    many of the last passes open theirs.
    """

    sigmoid: SharedSigmoid
    scales: Scales
    rows: int
    passes: int
    score_range: float
    heaviest: float
    modulus: int
    losses: int = LOSSES

    def opens(self, number: int) -> bool:
        """Whether the loss of a pass is opened."""
        return number >= self.passes - self.losses

    @property
    def numbers(self) -> int:
        """How many numbers are opened."""
        return min(self.passes, self.losses) + 1

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


def ring_words(shares: IntArray, bits: int) -> WordArray:
    """Shares modulo ``2^bits`` as numbers from 0 on."""
    words: WordArray = np.bitwise_and(shares, np.int64((1 << bits) - 1)).view(np.uint64)
    return words


def _total(values: WordArray, modulus: int) -> int:
    return int(block_sums(values[np.newaxis], modulus)[0])
