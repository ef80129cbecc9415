"""Bob's part of joint scores: only he learns them.

The charts of messages stand in Alice's file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.row_products import row_products
from taciturn.protocol.bob.partners import receive_all_scores
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.messages import Hello
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.prediction import (
    Scored,
    ScoringSide,
    chunks,
)
from taciturn.protocol.steps import ONLY, Program, emit, gather
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy

# Of one Alice's scores, which travel as they are.
_UNMASKED = FixedPoint(0)


class ScoreRequester(ScoringSide, ABC):
    """Bob's part of the scores of one model; ``names`` are the Alices'."""

    names: Sequence[str] = (ONLY,)

    def open(self, hellos: Mapping[str, Hello], size: int) -> Program[None]:
        """Agree on keys, after the greetings; no value of his exceeds ``2^size``."""
        yield from ()

    @abstractmethod
    def ask(self, number: int, values: FloatArray, block: int | None = None) -> Program[Scored]:
        """The log-odds of these rows, which were not asked for under this number before.

        ``values`` are in the coordinates of his weights. ``block`` is the number of rows to which
        an answer of some rows is filled up, None for a table of which every row is scored once.
        """


class RevealedRequester(ScoreRequester):
    """Scores from weights that each side has in clear.

    ``grid`` is the scale of several Alices' scores, which come under masks.
    """

    def __init__(
        self, weights: FloatArray, names: Sequence[str] = (ONLY,), grid: FixedPoint = _UNMASKED
    ) -> None:
        self._weights, self.names, self._grid = weights, names, grid

    def ask(self, number: int, values: FloatArray, block: int | None = None) -> Program[Scored]:
        """Add the Alices' partial scores to his."""
        bob_scores = row_products(values, self._weights)
        alice_scores = yield from receive_all_scores(
            self.names, number, len(bob_scores), self._grid
        )
        return Scored(alice_scores + bob_scores)


def score_requester(
    weights: FloatArray,
    share: WeightShare | None,
    bob_share: WeightShare | None,
    terms: Terms,
    entropy: Entropy,
    names: Sequence[str] = (ONLY,),
    widths: Sequence[int] = (),
) -> ScoreRequester:
    """Bob's part of the scores of a model: weights in clear, or shares of Alice's, or of all.

    ``widths`` are the columns of each of several Alices.
    """
    if share is None:
        return RevealedRequester(weights, names, terms.score_grid)
    # Each form of a model loads its own file.
    if bob_share is None:
        from taciturn.protocol.bob.partners import Partners
        from taciturn.protocol.bob.scoring_sealed import SealedRequester

        partners = Partners.from_widths(names, widths or (len(share.values),))
        return SealedRequester(weights, share, terms, entropy, partners)
    from taciturn.protocol.bob.scoring_mutual import MutualRequester

    return MutualRequester(share, bob_share, terms, entropy)


def ask_rows(requester: ScoreRequester, features: FeatureTable) -> Program[Scored]:
    """The log-odds of every row of a table, and how many may have wrapped."""
    table = requester.whitened(features)
    size = requester.size_of(table)
    hello = greeting("bob", requester.stated, table, size)
    hellos = yield from gather({name: shake_hands(hello) for name in requester.names})
    yield from requester.open(hellos, size)
    scores, suspected_wraps = np.empty(table.rows), 0
    for number, rows in chunks(table.rows, requester.chunk_rows):
        part = yield from requester.ask(number, table.values[rows])
        scores[rows] = part.scores
        suspected_wraps += part.suspected_wraps
        yield from emit(RowsScored(rows.stop, table.rows))
    return Scored(scores, suspected_wraps)
