"""A training in which nobody sees a score: what both parties do alike.

Weights of both sides, scores and residues are shared modulo ``t = 2^k``; ``w_A = u_A + v_A`` and
``w_B = u_B + v_B``, u at Alice and v at Bob. Bob's intercept, where he has one, is a column of his.

::

    Alice                                            Bob
      the joint seed (taciturn.protocol.batch_seed), of batches and of the keys' uniform halves
                                                <-   KeyOffer            his key
                                                <-   KeyOffer            his key for the sigmoid
      KeyOffer             her key              ->   (where he has columns)
      each iteration, X its rows and X' those of the next:
                                                <-   Phases              <waves of z_B>
      ResidueShares        <r' - r'_A>          ->   r'_B
      SharedVector         <r'_A, u_B>          ->   (where he has columns)
                                                <-   SharedVector        <r'_B, v_A>
                                                <-   SharedProduct       <X_B^T r'_A + xi, X'_B ...>
      SharedProduct        <X_A^T r'_B + xi,    ->
                            X'_A (v_A + X_A^T r'_B) + eta>

The two products are one and the same program, mirrored: who owns the key *asks*, who owns the
columns *holds* them. The asker has a share v of the weights and r of the residues, the holder u and
s. With xi and eta uniform modulo t, drawn by the holder:

    asker    v := v + (X^T r + xi)               its part of the scores  X' (v + X^T r) + eta
    holder   u := u + X^T s - xi                 its part of the scores  X' (u + X^T s) - eta

With ``fresh_keys`` there is no KeyOffer at the start, but one before Phases and one before each
SharedVector. So shares add up to ``w + X^T (r + s)`` and ``X' w``. Where looking ahead does not pay
(``taciturn.protocol.look_ahead``) the scores have an exchange of their own after the step.

**The sigmoid.** ``numerics.periodic_sigmoid``: Bob's numbers of his share, under a key of his for
products number by number, times Alice's of hers. She masks every product, and returns it; a residue
is the sum of a row's products, so that her share of it is minus the sum of the masks; the label,
times the step, is Bob's to add.

Those sums are modulo a prime p, and shares live modulo ``2^k``, of which p is ``delta`` less
(``SlotScheme.modulus``). With her share s taken from 0 to p and his likewise, ``s + s'`` is
``r' + p``, but for a chance of ``|r'| / p``, when it is ``r'`` or ``r' + 2 p``: she takes p off,
and what is left modulo ``2^k`` is r', or off by delta, a small part of a residue. That happens to
one of 2^35 residues, and needs no correction.

**What is told.** Each side receives ciphertexts of the other's key, and decrypts numbers that the
other's fresh mask makes uniform. Both do the same work for all values, and nothing that either
decrypts changes what it does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from taciturn.arrays import FloatArray, IntArray, WordArray
from taciturn.crypto.base import (
    EncryptedAnswer,
    EncryptedVector,
    PublicKey,
    Scheme,
    SecretKey,
    SlotScheme,
    Wrapping,
)
from taciturn.errors import ConfigError, RemoteProtocolError
from taciturn.faces import Hint
from taciturn.numerics.periodic_sigmoid import PeriodicSigmoid, SharedSigmoid
from taciturn.privacy.base import given
from taciturn.protocol.keyrings import OwnKeys, PeerKeys, own_keys, peer_keys
from taciturn.protocol.look_ahead import Turns
from taciturn.protocol.messages import SharedProduct, SharedVector
from taciturn.protocol.scales import Scales
from taciturn.protocol.steps import Program, receive, require_turn, send
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy

LEAST_LEAK_BITS = 40
"""What all answers of a training together may tell of a table, as 2^-bits."""
MOST_WAVES = 128
_EMPTY = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Columns:
    """What both sides know of one side's table.

    Args:
        count: How many columns it has.
        bits: No value in it exceeds two to this.
    """

    count: int
    bits: int


@dataclass(frozen=True, slots=True)
class Sigmoids:
    """The sigmoids of a training's batches: an L2 penalty narrows the ring from step to step.

    Args:
        terms: The agreement in use.
        scales: The scales of shares.
        waves: How many waves each has.
    """

    terms: Terms
    scales: Scales
    waves: int

    @classmethod
    def of(cls, terms: Terms, rows: int) -> Sigmoids:
        """Those of a training on so many rows; as many waves as its widest ring needs.

        Raises:
            ConfigError: There is no room for them.
        """
        scales = Scales.of_shared_scores(terms.agreement, rows)
        widest = _half_range(scales, 0)
        error = given(terms.agreement, "sigmoid_error")
        waves = PeriodicSigmoid.of(min(widest, 1e5), error).waves
        if waves > MOST_WAVES:
            raise ConfigError(
                f"the sigmoid would need {waves:,} waves, and {MOST_WAVES} are the most: the range "
                f"of scores is {widest:,.0f} at first, for an L2 penalty that narrows it",
                setting="l2",
                hint=Hint("lower {l2} or {score_range}, or allow a larger {sigmoid_error}"),
            )
        return cls(terms, scales, waves)

    @property
    def entries(self) -> int:
        """How many numbers a row has."""
        return 2 * self.waves

    @property
    def error_bound(self) -> float:
        """The most by which they are off within the agreed range, roundings aside."""
        widest = PeriodicSigmoid(_half_range(self.scales, 0), self.waves)
        narrow = PeriodicSigmoid(self.scales.score_bound, self.waves)
        reach = given(self.terms.agreement, "score_range")
        return widest.tail + narrow.bound(reach) - narrow.tail

    def unit(self, iteration: int, rows: int) -> float:
        """What a residue of 1 is in a batch of so many rows, on the grid of steps."""
        scales = self.scales
        rate = self.terms.rate.at(iteration) / rows
        return rate / float(scales.decay[iteration + 1]) * 2.0**scales.residue_bits

    def at(self, iteration: int, rows: int) -> SharedSigmoid:
        """That of a batch of so many rows."""
        function = PeriodicSigmoid(_half_range(self.scales, iteration), self.waves)
        return SharedSigmoid(function, self.scales.modulus_bits, self.unit(iteration, rows))


def _half_range(scales: Scales, iteration: int) -> float:
    """H of an iteration."""
    power = 2.0 ** (scales.modulus_bits - 1 - scales.score_bits)
    return float(scales.decay[iteration]) * power


@dataclass(frozen=True, slots=True)
class Plan:
    """How a training's numbers lie, alike on both sides.

    Args:
        sigmoids: The sigmoids of its batches.
        rows: Those of either table.
        alice: Products with Alice's columns.
        bob: Products with Bob's.
        alice_columns: How many there are.
        bob_columns: How many there are; without any there are no products with them.
    """

    sigmoids: Sigmoids
    rows: int
    alice: Turns
    bob: Turns
    alice_columns: int
    bob_columns: int

    @classmethod
    def of(cls, terms: Terms, rows: int, alice: Columns, bob: Columns) -> Plan:
        """The plan of a training.

        Raises:
            ConfigError: There is no room for it, or it would tell too much of a table.
        """
        sigmoids = Sigmoids.of(terms, rows)
        scales = sigmoids.scales
        hers = Turns.of(terms, scales, rows, alice.count, alice.bits)
        his = Turns.of(terms, scales, rows, max(bob.count, 1), bob.bits)
        plan = cls(sigmoids, rows, hers, his, alice.count, bob.count)
        plan.require_hidden()
        return plan

    @property
    def scales(self) -> Scales:
        """The scales of shares."""
        return self.sigmoids.scales

    @property
    def scheme(self) -> Scheme:
        """The encryption."""
        return self.sigmoids.terms.scheme

    @property
    def slots(self) -> SlotScheme:
        """Its products number by number."""
        return slots_of(self.scheme)

    @property
    def batch(self) -> int:
        """The rows of the longest batch."""
        return min(self.sigmoids.terms.longest_batch, self.rows)

    def require_hidden(self) -> None:
        """Refuses a training whose answers would tell too much of either table.

        Raises:
            ConfigError: Their distances add up to more than 2^-LEAST_LEAK_BITS.
        """
        iterations = len(self.scales.decay) - 1
        bits = -math.log2(max(self.alice_leak, self.bob_leak, 1e-300))
        if bits < LEAST_LEAK_BITS:
            raise ConfigError(
                f"{iterations:,} iterations would hide the tables to within 2^{-bits:.0f} only, "
                f"where 2^-{LEAST_LEAK_BITS} is the least",
                setting="mechanism",
                value="mutual",
                hint=Hint("lower {feature_bits}, clip the features ({clip}), or use fewer epochs"),
            )

    @property
    def alice_leak(self) -> float:
        """What all answers tell of her columns, and of her shares of scores: a distance."""
        iterations = len(self.scales.decay) - 1
        answers = len(list(cut(self.slots, self.batch, self.sigmoids.entries)))
        numbers = min(self.batch * self.sigmoids.entries, self.slots.slots)
        waves = 2.0 ** -self.slots.leak_bits(iterations * answers, numbers)
        return float(waves + iterations * self._step_leak(self.alice, self.alice_columns))

    @property
    def bob_leak(self) -> float:
        """What all answers tell of his columns."""
        iterations = len(self.scales.decay) - 1
        return iterations * self._step_leak(self.bob, self.bob_columns)

    def _step_leak(self, turns: Turns, columns: int) -> float:
        batch = self.batch
        if not columns:
            return 0.0
        if turns.ahead:
            return self._leak(turns, columns + batch, 2 * batch + columns)
        return self._leak(turns, columns, batch) + self._leak(turns, batch, columns)

    def _leak(self, turns: Turns, rows: int, length: int) -> float:
        return float(2.0 ** -self.scheme.leak_bits(turns.ring, rows, length))


def slots_of(scheme: Scheme) -> SlotScheme:
    """The scheme's products number by number.

    Raises:
        ConfigError: It has none.
    """
    slots = scheme.number_by_number
    if slots is None:
        raise ConfigError(
            f"{scheme.name} has no products number by number, which the sigmoid needs",
            setting="scheme",
            hint=Hint("use {scheme}", scheme="bfv"),
        )
    return slots


def cut(slots: SlotScheme, rows: int, entries: int) -> Iterator[slice]:
    """The rows of which a ciphertext each holds the numbers, ``entries`` a row.

    >>> from taciturn.crypto.bfv.slots import BfvSlots
    >>> [(part.start, part.stop) for part in cut(BfvSlots(), 600, 28)]
    [(0, 292), (292, 584), (584, 600)]
    """
    size = slots.slots // entries
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def shares_modulo_power(sums: WordArray, modulus: int, ring: Wrapping, *, less: bool) -> IntArray:
    """Shares modulo a prime just below ``2^k``, as shares modulo ``2^k``; see the file's text.

    Args:
        sums: Numbers from 0 to the prime.
        modulus: The prime.
        ring: Where shares live.
        less: Whether this side takes the prime off: one of the two does.
    """
    return ring.centred(sums.view(np.int64) - np.int64(modulus if less else 0))


def offer_key(terms: Terms, ring: Wrapping, entropy: Entropy, seed: bytes) -> Program[SecretKey]:
    """A new key, with its public half on its way to the peer.

    Args:
        terms: The agreement in use.
        ring: What the key must serve.
        entropy: The owner's coins.
        seed: Of its uniform half: ``batch_seed.key_seed`` of the joint seed and the owner's role.
    """
    return (yield from own_keys(terms, ring, seed).offer(entropy))


def receive_key(terms: Terms, ring: Wrapping, seed: bytes) -> Program[PublicKey]:
    """The peer's public key, whose uniform half must be that of the seed.

    Raises:
        CryptoError: It is no such key.
    """
    return (yield from peer_keys(terms, ring, seed).receive())


@dataclass(frozen=True, slots=True)
class Shares:
    """What a party has between two iterations.

    Args:
        own: Its share of the weights of its own columns.
        other: Its share of those of the peer's.
        scores: Its share of the scores of the batch that is next.
    """

    own: IntArray
    other: IntArray
    scores: IntArray


class Asks(Protocol):
    """What one side of an exchange asks: a vector under its own key."""

    @property
    def entries(self) -> int:
        """How many entries the answer has."""

    def encrypted(self, coins: Entropy) -> EncryptedVector:
        """The vector for the peer."""

    def decrypted(self, answer: EncryptedAnswer) -> IntArray:
        """What the answer holds, modulo t."""


class Multiplies(Protocol):
    """What the other side multiplies it with."""

    @property
    def length(self) -> int:
        """How many entries the vector has."""

    def ready(self, coins: Entropy) -> Callable[[EncryptedVector], EncryptedAnswer]:
        """The product, with all done that can be done before the vector is there."""


@dataclass(frozen=True, slots=True)
class Question:
    """A vector under its owner's key.

    Args:
        key: Its owner's.
        vector: What is encrypted.
        entries: How many entries the answer has.
    """

    key: SecretKey
    vector: IntArray
    entries: int

    def encrypted(self, coins: Entropy) -> EncryptedVector:
        """The vector for the peer."""
        return self.key.encrypt(self.vector, self.entries, coins)

    def decrypted(self, answer: EncryptedAnswer) -> IntArray:
        """What the answer holds, modulo t."""
        return self.key.decrypt_shares(answer, len(self.vector))


@dataclass(frozen=True, slots=True)
class Matrix:
    """What a question of the peer's is multiplied with.

    Args:
        key: The peer's.
        values: Whole numbers.
        masks: One for each entry of the answer; uniform modulo t, and used once.
    """

    key: PublicKey
    values: IntArray | FloatArray
    masks: IntArray

    @property
    def length(self) -> int:
        """How many entries the vector has."""
        return len(self.values[0])

    def ready(self, coins: Entropy) -> Callable[[EncryptedVector], EncryptedAnswer]:
        """The product; covers are made ahead."""
        prepared = self.key.prepare(self.values)
        mask = self.key.mask_of(self.masks, coins.fork("multiples"))
        self.key.stock(prepared, mask, coins)
        return lambda vector: self.key.masked_product(prepared, vector, mask, coins)


def exchange(
    turn: int, question: Asks | None, matrix: Multiplies | None, coins: Entropy
) -> Program[IntArray]:
    """Asks the peer, answers it, or both: the same program on both sides.

    Args:
        turn: Which exchange it is.
        question: What this side asks; None where it does not.
        matrix: What it answers with; None where the peer does not ask.
        coins: For this exchange alone.

    Returns:
        The answer to its question; nothing where it asked none.

    Raises:
        RemoteProtocolError: A message has another size or turn than is due.
    """
    if question is not None:
        yield from send(SharedVector(turn, question.encrypted(coins.fork("vector"))))
    if matrix is not None:
        yield from _answer(turn, matrix, coins.fork("answer"))
    if question is None:
        return _EMPTY
    message = yield from receive(SharedProduct)
    require_turn("SharedProduct", message.turn, turn)
    return question.decrypted(sized_answer(message.answer, question.entries))


def _answer(turn: int, matrix: Multiplies, coins: Entropy) -> Program[None]:
    # Before waiting, not after: the peer is at work meanwhile.
    product = matrix.ready(coins)
    message = yield from receive(SharedVector)
    require_turn("SharedVector", message.turn, turn)
    answer = product(sized_vector(message.vector, matrix.length))
    yield from send(SharedProduct(turn, answer))


def sized_vector(vector: EncryptedVector, length: int) -> EncryptedVector:
    """The vector, if it has as many entries as are due.

    Raises:
        RemoteProtocolError: It has not; a matter of structure, not of what is inside.
    """
    if vector.length != length:
        raise RemoteProtocolError(
            f"the peer's vector has {vector.length} entries where {length} are expected"
        )
    return vector


def sized_answer(answer: EncryptedAnswer, entries: int) -> EncryptedAnswer:
    """The answer, if it has as many entries as are due.

    Raises:
        RemoteProtocolError: It has not; a matter of structure, not of what is inside.
    """
    if answer.length != entries:
        raise RemoteProtocolError(
            f"the peer answers with {answer.length} entries where {entries} are expected"
        )
    return answer


@dataclass(frozen=True, slots=True)
class Asking:
    """One side of the products with a table: it owns the keys, and none of the columns."""

    keys: OwnKeys[SecretKey]
    turns: Turns

    def step(
        self, residues: IntArray, share: IntArray, after: int, coins: Entropy
    ) -> Program[Question]:
        """What it asks for a step; ``after`` is how many rows the next batch has."""
        key = yield from self.keys.offer(coins)
        if self.turns.ahead and after:
            return Question(key, self.turns.vector(residues, share), len(share) + after)
        return Question(key, residues, len(share))


@dataclass(frozen=True, slots=True)
class Holding:
    """The other side: it owns the columns, and computes under the peer's keys."""

    keys: PeerKeys[PublicKey]
    turns: Turns

    def step(
        self, rows: FloatArray, following: FloatArray | None, masks: Entropy
    ) -> Program[Matrix]:
        """What it answers a step with."""
        key = yield from self.keys.receive()
        values: IntArray | FloatArray = rows.T
        if self.turns.ahead and following is not None:
            values = self.turns.matrix(rows, following)
        return Matrix(key, values, self.turns.ring.draw(len(values), masks))


@dataclass(frozen=True, slots=True)
class Step:
    """A party's part in one step, and in the scores that follow it.

    Args:
        number: The iteration.
        ring: Where shares live.
        asking: Its part in products with the peer's columns; None where the peer has none.
        holding: Its part in those with its own; None where it has none.
        rows: Its rows of the batch, as whole numbers.
        following: Its rows of the next batch; None at the end.
        entropy: Its coins.
    """

    number: int
    ring: Wrapping
    asking: Asking | None
    holding: Holding | None
    rows: FloatArray
    following: FloatArray | None
    entropy: Entropy

    def advance(self, shares: Shares, residues: IntArray) -> Program[Shares]:
        """The step with this side's share of the residues, and the scores of the next batch."""
        ring, after = self.ring, 0 if self.following is None else len(self.following)
        own, other, scores = shares.own, shares.other, np.zeros(after, dtype=np.int64)
        coins = self.entropy.fork(f"step {self.number}")
        masks = self.entropy.fork(f"masks {self.number}")
        question = matrix = None
        if self.asking is not None:
            question = yield from self.asking.step(residues, other, after, coins)
        if self.holding is not None:
            matrix = yield from self.holding.step(self.rows, self.following, masks)
        answer = yield from exchange(2 * self.number, question, matrix, coins)
        if question is not None:
            scores = scores + _rest(answer, len(other), after)
            other = ring.centred(other + answer[: len(other)])
        if matrix is not None:
            moved = ring.centred(own + ring.product(self.rows.T, residues))
            own = ring.centred(moved - matrix.masks[: len(moved)])
            if len(matrix.masks) > len(moved) and self.following is not None:
                scores = scores + ring.product(self.following, moved) - matrix.masks[len(moved) :]
        if after:
            scores = ring.centred(scores) + (yield from self._late_scores(own, other))
        return Shares(own, other, ring.centred(scores))

    def _late_scores(self, own: IntArray, other: IntArray) -> Program[IntArray]:
        """The scores of tables for which looking ahead does not pay, after the step."""
        asks = self.asking is not None and not self.asking.turns.ahead
        holds = self.holding is not None and not self.holding.turns.ahead
        question, matrix, following = None, None, self.following
        if following is None or not (asks or holds):
            return np.zeros(1, dtype=np.int64)
        total = np.zeros(len(following), dtype=np.int64)
        coins = self.entropy.fork(f"late scores {self.number}")
        if self.asking is not None and asks:
            key = yield from self.asking.keys.offer(coins)
            question = Question(key, other, len(following))
        if self.holding is not None and holds:
            masks = self.ring.draw(len(following), self.entropy.fork(f"late masks {self.number}"))
            matrix = Matrix((yield from self.holding.keys.receive()), following, masks)
            total = self.ring.product(following, own) - masks
        answer = yield from exchange(2 * self.number + 1, question, matrix, coins)
        return total + answer if asks else total


def _rest(answer: IntArray, columns: int, after: int) -> IntArray:
    """The scores in an answer; zeros where they come later."""
    return answer[columns:] if len(answer) > columns else np.zeros(after, dtype=np.int64)
