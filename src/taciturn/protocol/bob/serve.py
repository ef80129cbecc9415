"""Bob's side of scores on demand. The chart stands in ``taciturn.protocol.serving``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from taciturn.arrays import FloatArray, IndexArray, IntArray
from taciturn.crypto.base import SecretKey, TableSize
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.logistic import row_products
from taciturn.protocol.bob.batch_seed import agree_seed
from taciturn.protocol.bob.partners import Partner, Partners, receive_all_scores
from taciturn.protocol.bob.predict_mutual import MutualQuestions
from taciturn.protocol.bob.predict_sealed import whole_scores
from taciturn.protocol.bob.sealed import Keys, sized
from taciturn.protocol.messages import (
    Hello,
    RowNumbers,
    RowsAsked,
    RowsDue,
    RowsHeld,
    SealedScores,
    SealedWeights,
)
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.prediction import Scored
from taciturn.protocol.serving import Verdict, block_of, write_ids
from taciturn.protocol.steps import ONLY, Program, receive, require_turn, send
from taciturn.protocol.terms import Terms
from taciturn.protocol.together import together
from taciturn.rng import Entropy


class Questions(Protocol):
    """How the scores of a round are had with one kind of model."""

    def open(self, hellos: Mapping[str, Hello]) -> Program[None]:
        """Makes ready, after the greetings."""
        ...

    def ask(self, number: int, values: FloatArray, asked: int) -> Program[Scored]:
        """The log-odds of the rows that are due.

        ``values`` are his columns of them, prepared and, where his weights are, whitened. ``asked``
        counts the rows he asked for.
        """
        ...


@dataclass(frozen=True, slots=True)
class RevealedQuestions:
    """Questions about weights that each side has in clear."""

    weights: FloatArray = field(repr=False)
    names: Sequence[str]
    grid: FixedPoint

    def open(self, hellos: Mapping[str, Hello]) -> Program[None]:
        """Nothing is to be made ready."""
        yield from ()

    def ask(self, number: int, values: FloatArray, asked: int) -> Program[Scored]:
        """Adds the Alices' partial scores to his."""
        theirs = yield from receive_all_scores(self.names, number, len(values), self.grid)
        return Scored(theirs + row_products(values, self.weights))


class SealedQuestions:
    """Questions about shares of the Alices' weights; ``share`` has theirs one after the other."""

    def __init__(
        self,
        weights: FloatArray,
        share: WeightShare,
        terms: Terms,
        entropy: Entropy,
        partners: Partners,
    ) -> None:
        self._weights, self._share, self._terms = weights, share, terms
        self._entropy, self._partners = entropy, partners
        self._keys: dict[str, Keys] = {}
        # The key of each vector that is with an Alice, by her name and the size of a round.
        self._sent: dict[tuple[str, int], SecretKey] = {}

    def open(self, hellos: Mapping[str, Hello]) -> Program[None]:
        """Agrees on the seeds of his keys."""
        yield from self._partners.ask(lambda partner: self._open(partner, hellos[partner.name]))

    def _open(self, partner: Partner, hello: Hello) -> Program[None]:
        if hello.columns != partner.columns:
            raise RemoteProtocolError(
                f"the peer's table has {hello.columns} columns, and {partner.columns} weights are "
                "shared"
            )
        ring = self._share.scales.ring(hello.magnitude_bits, partner.columns)
        seed = yield from agree_seed(partner.coins(self._entropy))
        self._keys[partner.name] = Keys(self._terms, ring, seed)

    def ask(self, number: int, values: FloatArray, asked: int) -> Program[Scored]:
        """Decrypts the Alices' part of the scores, and adds his."""
        answers = yield from self._partners.ask(
            lambda partner: self._ask(partner, number, len(values), asked)
        )
        return whole_scores(values, self._weights, answers, self._share.scales)

    def _ask(self, partner: Partner, number: int, due: int, asked: int) -> Program[IntArray]:
        scheme, share = self._terms.scheme, self._share.values[partner.place]
        block = block_of(asked)
        key = yield from self._key(partner, block, number, share)
        size = TableSize(block, len(share))
        theirs: IntArray = np.empty(block, dtype=np.int64)
        for part in scheme.row_parts(size):
            message = yield from receive(SealedScores)
            require_turn("SealedScores", message.iteration, number)
            answer = sized(message.answer, part.stop - part.start)
            theirs[part] = key.decrypt_rows(answer, size, part)
        return theirs[:due]

    def _key(
        self, partner: Partner, block: int, number: int, share: IntArray
    ) -> Program[SecretKey]:
        name = partner.name, block
        if name in self._sent:
            return self._sent[name]
        coins = partner.coins(self._entropy).fork(f"vector {block}")
        key = yield from self._keys[partner.name].offer(coins)
        vector = key.encrypt_columns(share, TableSize(block, len(share)), coins)
        yield from send(SealedWeights(number, vector))
        self._sent[name] = key
        return key


class SharedQuestions:
    """Questions about shares of all weights; no value of his exceeds ``2^size``."""

    def __init__(
        self, alices: WeightShare, own: WeightShare, terms: Terms, size: int, entropy: Entropy
    ) -> None:
        self._alices, self._own, self._terms, self._size = alices, own, terms, size
        self._entropy = entropy
        self._questions: MutualQuestions | None = None

    def open(self, hellos: Mapping[str, Hello]) -> Program[None]:
        """Agrees on the seed of the keys."""
        hello = hellos[ONLY]
        if hello.columns != len(self._alices.values):
            raise RemoteProtocolError(
                f"the peer's table has {hello.columns} columns, and {len(self._alices.values)} "
                "weights are shared"
            )
        self._questions = yield from MutualQuestions.open(
            self._alices, self._own, self._terms, self._entropy, self._size, hello
        )

    def ask(self, number: int, values: FloatArray, asked: int) -> Program[Scored]:
        """Asks for these rows."""
        if self._questions is None:
            raise RemoteProtocolError("rows are asked for before keys are agreed on")
        return (yield from self._questions.ask(number, values))


@dataclass(frozen=True, slots=True)
class Round:
    """What a round gave.

    ``verdicts`` has the first objection to each row asked for. ``due`` are the places of the rows
    that were scored, in the order of the scores.
    """

    verdicts: tuple[Verdict, ...]
    due: IndexArray = field(repr=False)
    scored: Scored


@dataclass(slots=True)
class Requester:
    """Bob in a meeting that stays."""

    questions: Questions
    names: Sequence[str] = (ONLY,)
    rounds: int = 0

    def ask(self, ids: Sequence[str], values: FloatArray) -> Program[Round]:
        """One round: the verdicts and scores of at most ``serving.MOST_ASKED`` distinct rows.

        No ids ask whether the Alices are there. ``values`` are his columns of the rows, prepared
        and, where his weights are, whitened.
        """
        number = self.rounds
        self.rounds += 1
        text = write_ids(ids)
        # Each has the question before any answer is waited for.
        answers = yield from together(
            {name: _verdicts(RowsAsked(number, text), len(ids)) for name in self.names}
        )
        verdicts = tuple(
            next((one for one in said if one != Verdict.HELD), Verdict.HELD)
            for said in zip(*answers.values(), strict=True)
        )
        due = np.flatnonzero(np.array(verdicts, dtype=np.int64) == Verdict.HELD).astype(np.int64)
        if [*self.names] != [ONLY]:
            message = RowsDue(number, RowNumbers(due))
            yield from together({name: send(message) for name in self.names})
        if not len(due):
            return Round(verdicts, due, Scored(np.empty(0)))
        scored = yield from self.questions.ask(number, values[due], len(ids))
        return _without_doubtful(Round(verdicts, due, scored))


def _without_doubtful(result: Round) -> Round:
    """Scores that may have wrapped are none: he says so to the caller, and to nobody else."""
    doubtful = result.scored.doubtful
    if doubtful is None or not doubtful.any():
        return result
    verdicts = [*result.verdicts]
    for place in result.due[doubtful].tolist():
        verdicts[place] = Verdict.UNFIT
    scores = result.scored.scores[~doubtful]
    return Round(tuple(verdicts), result.due[~doubtful], Scored(scores))


def _verdicts(question: RowsAsked, rows: int) -> Program[tuple[Verdict, ...]]:
    yield from send(question)
    message = yield from receive(RowsHeld)
    require_turn("RowsHeld", message.number, question.number)
    if len(message.verdicts) != rows:
        raise RemoteProtocolError(
            f"the peer judges {len(message.verdicts)} rows where {rows} are asked for"
        )
    try:
        return tuple(Verdict(one) for one in message.verdicts)
    except ValueError:
        raise RemoteProtocolError("the peer judges a row by a word that is none") from None
