"""Alice's part of joint scores: only Bob learns them.

One conversation is behind held-out rows, ``taciturn predict`` and ``taciturn serve``: it is opened
once, and answers for some rows at a time. What is said depends on who has the weights.

Each side has its own in clear (``RevealedResponder``)::

    Alice                                            Bob
      PartialScores        X_A w_A + e          ->   (MaskedScores of several Alices)

Alice's are shared (``SealedResponder``)::

      the joint seed, of the key's uniform half
                                                <-   KeyOffer
                                                <-   SealedWeights       <v>
      SealedScores         <X_A v + X_A u + e>  ->

All are shared (``MutualResponder``)::

      the joint seed, of the keys' uniform halves
                                                <-   KeyOffer
      KeyOffer                                  ->   (where he has columns)
      SharedVector         [u_B]                ->   (where he has columns)
                                                <-   SharedProduct       [X_B u_B + zeta]
                                                <-   SharedVector        <v_A>
      SharedProduct        <X_A (u_A + v_A)     ->   takes zeta off, and adds X_B v_B
                            + X_B u_B + zeta + e>

The noise e is that of ``score_noise``. Where all weights are shared, Bob ends with whole scores: he
has neither her part of one nor his own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.row_products import row_products
from taciturn.protocol.alice.score_noise import ScoreNoise
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.masks import NO_MASKS, ZeroSum
from taciturn.protocol.messages import Hello
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.prediction import (
    ScoringSide,
    chunks,
)
from taciturn.protocol.scores import scores_message
from taciturn.protocol.steps import Program, emit, send
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


@dataclass(frozen=True, slots=True)
class DueRows:
    """Rows whose scores are due, under a number that no others had.

    ``values`` are in the coordinates of her weights. ``masks`` are those of one of several Alices,
    for this answer alone. ``block`` is the number of rows to which an answer of some rows is filled
    up, None for a table of which every row is scored once.
    """

    number: int
    ids: Sequence[str] = field(repr=False)
    values: FloatArray = field(repr=False)
    masks: ZeroSum = NO_MASKS
    block: int | None = None


class ScoreResponder(ScoringSide, ABC):
    """Alice's part of the scores of one model.

    ``answers_add_up``: the answers that hold a row tell, together, more of it than its scores.
    """

    answers_add_up = False

    def require_hidden(self, size: int, rows: int, answers: int) -> None:
        """Refuse rows of which this many answers would reveal more than their scores."""

    def open(self, hello: Hello, size: int) -> Program[None]:
        """Agree on keys, after the greetings; no value of hers exceeds ``2^size``."""
        yield from ()

    @abstractmethod
    def answer(self, due: DueRows) -> Program[None]:
        """Send the scores of these rows."""


class RevealedResponder(ScoreResponder):
    """Scores from weights that Alice has in clear.

    ``offset`` is what centring her columns adds to every score.
    """

    def __init__(
        self, weights: FloatArray, noise_key: bytes, grid: FixedPoint, offset: float = 0.0
    ) -> None:
        self._weights, self._grid, self._offset = weights, grid, offset
        self._noise = ScoreNoise(noise_key, weights)

    def answer(self, due: DueRows) -> Program[None]:
        """Send ``X_A w_A`` and noise, at their public scale."""
        noise = self._noise.reals(due.ids, due.values, self._grid)
        scores = row_products(due.values, self._weights) + self._offset + noise
        yield from send(scores_message(due.number, scores, self._grid, due.masks))


def score_responder(
    weights: FloatArray,
    share: WeightShare | None,
    bobs: WeightShare | None,
    noise_key: bytes,
    terms: Terms,
    entropy: Entropy,
    offset: float,
) -> ScoreResponder:
    """Alice's part of the scores of a model: weights in clear, or shares of hers, or of all.

    ``offset`` is what centring adds to scores of weights in clear; shares know their coordinates.
    """
    if share is None:
        return RevealedResponder(weights, noise_key, terms.score_grid, offset)
    # Each form of a model loads its own file.
    if bobs is None:
        from taciturn.protocol.alice.scoring_sealed import SealedResponder

        return SealedResponder(share, noise_key, terms, entropy)
    from taciturn.protocol.alice.scoring_mutual import MutualResponder

    return MutualResponder(share, bobs, noise_key, terms, entropy)


def answer_rows(
    responder: ScoreResponder, features: FeatureTable, masks: ZeroSum | None = None
) -> Program[None]:
    """Give Bob the scores of every row of a table, some at a time.

    Bob hears the size of the largest value: at least that of the training, which he knows and which
    tells him nothing of a few rows. ``masks`` are those of one of several Alices, for this table
    alone.
    """
    table = responder.whitened(features)
    size, rows = responder.size_of(table), min(responder.chunk_rows, table.rows)
    hello = yield from shake_hands(greeting("alice", responder.stated, table, size))
    yield from responder.open(hello, size)
    pieces = [*chunks(table.rows, responder.chunk_rows)]
    responder.require_hidden(size, rows, len(pieces))
    for number, piece in pieces:
        ids = table.ids.series[piece].to_list()
        forked = NO_MASKS if masks is None else masks.fork(str(number))
        due = DueRows(number, ids, table.values[piece], forked)
        yield from responder.answer(due)
        yield from emit(RowsScored(piece.stop, table.rows))
