"""Alice's side of scores on demand. The chart stands in ``taciturn.protocol.serving``.

A round is three programs, so that whoever drives them can look rows up and count them in between:
``asked`` gives the ids, ``held`` says what she has, ``give`` sends the scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from taciturn.arrays import FloatArray, IndexArray, IntArray
from taciturn.crypto.base import EncryptedVector, PublicKey, TableSize
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.logistic import row_products
from taciturn.protocol.alice.batch_seed import agree_seed
from taciturn.protocol.alice.predict_mutual import MutualAnswers
from taciturn.protocol.alice.score_noise import ScoreNoise
from taciturn.protocol.alice.sealed import Keys, own_scores
from taciturn.protocol.circle import NO_MASKS, ZeroSum
from taciturn.protocol.messages import (
    Hello,
    PublicBytes,
    RowsAsked,
    RowsDue,
    RowsHeld,
    SealedScores,
    SealedWeights,
)
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.scores import scores_message
from taciturn.protocol.serving import (
    MOST_ASKED,
    ROW_ANSWERS,
    Verdict,
    block_of,
    list_name,
    read_ids,
)
from taciturn.protocol.steps import Program, receive, require_turn, send
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


class Answers(Protocol):
    """How the scores of a round are given with one kind of model."""

    def open(self, hello: Hello) -> Program[None]:
        """Makes ready, after the greetings."""
        ...

    def give(
        self, number: int, ids: Sequence[str], values: FloatArray, asked: int, masks: ZeroSum
    ) -> Program[None]:
        """Sends the scores of the rows that are due.

        ``values`` are her columns of these rows, prepared and, where weights are, whitened.
        ``asked`` counts the rows Bob asked for. ``masks`` are those of one of several Alices, for
        this list alone.
        """
        ...


@dataclass(frozen=True, slots=True)
class RevealedAnswers:
    """Answers from weights that Alice has in clear."""

    weights: FloatArray = field(repr=False)
    noise_key: bytes = field(repr=False)
    grid: FixedPoint

    def open(self, hello: Hello) -> Program[None]:
        """Nothing is to be made ready."""
        yield from ()

    def give(
        self, number: int, ids: Sequence[str], values: FloatArray, asked: int, masks: ZeroSum
    ) -> Program[None]:
        """Sends ``X_A w_A`` and noise."""
        noise = ScoreNoise(self.noise_key, self.weights)
        scores = row_products(values, self.weights) + noise.reals(ids, values, self.grid)
        yield from send(scores_message(number, scores, self.grid, masks))


class SealedAnswers:
    """Answers from shares of Alice's weights; no value of a row exceeds ``2^size``."""

    def __init__(
        self, share: WeightShare, noise_key: bytes, terms: Terms, size: int, entropy: Entropy
    ) -> None:
        self._noise = ScoreNoise(noise_key, share.values)
        self._share, self._terms, self._size, self._entropy = share, terms, size, entropy
        self._ring = share.scales.ring(size, len(share.values))
        self._keys: Keys | None = None
        # Bob's vector, by the size of a round.
        self._vectors: dict[int, tuple[PublicKey, EncryptedVector]] = {}

    def open(self, hello: Hello) -> Program[None]:
        """Agrees on the seed of Bob's keys."""
        seed = yield from agree_seed(self._entropy)
        self._keys = Keys(self._terms, self._ring, seed)

    def give(
        self, number: int, ids: Sequence[str], values: FloatArray, asked: int, masks: ZeroSum
    ) -> Program[None]:
        """Sends ``<X_A v + X_A u + e>``, filled up with random entries to the size of the round."""
        scales, block = self._share.scales, block_of(asked)
        key, vector = yield from self._vector(block, number)
        coins = self._entropy.fork(f"scores {number}")
        whole = scales.feature_grid.rounded(values)
        noise = self._noise.draw(ids, whole, scales.score_unit)
        rounded: IntArray = np.zeros((block, values.shape[1]), dtype=np.int64)
        rounded[: len(values)] = whole
        noise = np.pad(noise, (0, block - len(values)))
        own = own_scores(self._ring, rounded, self._share.values, masks, noise)
        # A vector of Bob's choice brings the rows into the entries of others, also of those that
        # only fill up: these say nothing.
        own[len(values) :] = self._ring.draw(block - len(values), coins.fork("padding"))
        table = key.table(rounded, 0)
        try:
            for part in self._terms.scheme.row_parts(table.size):
                product = table.product(vector, own[part], coins, part)
                yield from send(SealedScores(number, product))
        finally:
            table.close()

    def _vector(self, block: int, number: int) -> Program[tuple[PublicKey, EncryptedVector]]:
        if block in self._vectors:
            return self._vectors[block]
        if self._keys is None:
            raise RemoteProtocolError("the peer asks before keys are agreed on")
        key = yield from self._keys.receive()
        sent = yield from receive(SealedWeights)
        require_turn("SealedWeights", sent.iteration, number)
        if sent.weights.length != len(self._share.values):
            raise RemoteProtocolError(
                f"the peer's weight share has {sent.weights.length} entries for "
                f"{len(self._share.values)} columns"
            )
        self._vectors[block] = key, sent.weights
        return key, sent.weights


def require_hidden(share: WeightShare, terms: Terms, size: int) -> None:
    """Refuses a model of which the answers would tell more of a row than its scores.

    No value of a row exceeds ``2^size``.
    """
    ring = share.scales.ring(size, len(share.values))
    terms.scheme.check_tables(ring, TableSize(MOST_ASKED, len(share.values)), ROW_ANSWERS)


class SharedAnswers:
    """Answers from shares of all weights; no value of a row exceeds ``2^size``."""

    def __init__(
        self,
        own: WeightShare,
        bobs: WeightShare,
        noise_key: bytes,
        terms: Terms,
        size: int,
        entropy: Entropy,
    ) -> None:
        self._own, self._bobs, self._terms, self._size = own, bobs, terms, size
        self._noise_key = noise_key
        self._entropy = entropy
        self._answers: MutualAnswers | None = None

    def open(self, hello: Hello) -> Program[None]:
        """Agrees on the seed of the keys."""
        if hello.columns != len(self._bobs.values):
            raise RemoteProtocolError(
                f"the peer's table has {hello.columns} columns, and {len(self._bobs.values)} "
                "weights are shared"
            )
        self._answers = yield from MutualAnswers.open(
            self._own, self._bobs, self._noise_key, self._terms, self._entropy, self._size, hello
        )

    def give(
        self, number: int, ids: Sequence[str], values: FloatArray, asked: int, masks: ZeroSum
    ) -> Program[None]:
        """Answers for these rows."""
        if self._answers is None:
            raise RemoteProtocolError("the peer asks before keys are agreed on")
        yield from self._answers.answer(number, ids, values)


@dataclass(frozen=True, slots=True)
class Asked:
    """What Bob asks for in a round."""

    number: int
    ids: tuple[str, ...] = field(repr=False)


@dataclass(slots=True)
class Responder:
    """Alice in a meeting that stays."""

    answers: Answers
    masks: ZeroSum = NO_MASKS
    rounds: int = 0

    def asked(self) -> Program[Asked]:
        """Waits for the next round."""
        message = yield from receive(RowsAsked)
        require_turn("RowsAsked", message.number, self.rounds)
        self.rounds += 1
        return Asked(message.number, read_ids(message.ids))

    def held(self, asked: Asked, verdicts: Sequence[Verdict]) -> Program[IndexArray]:
        """Tells Bob which rows she has, and returns the places of the rows that are due."""
        yield from send(RowsHeld(asked.number, PublicBytes(bytes(verdicts))))
        own = np.flatnonzero(np.array(verdicts) == Verdict.HELD).astype(np.int64)
        if not self.masks:
            return own
        message = yield from receive(RowsDue)
        require_turn("RowsDue", message.number, asked.number)
        if not np.isin(message.places, own).all():
            raise RemoteProtocolError("the peer wants rows that this side does not have")
        return message.places

    def give(self, asked: Asked, due: IndexArray, values: FloatArray) -> Program[None]:
        """Gives the scores of the rows that are due, of which there is one at least."""
        ids = [asked.ids[place] for place in due.tolist()]
        masks = self.masks.fork(list_name(asked.number, ids)) if self.masks else NO_MASKS
        yield from self.answers.give(asked.number, ids, values, len(asked.ids), masks)
