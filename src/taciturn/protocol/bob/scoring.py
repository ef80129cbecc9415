"""Bob's part of joint scores: only he learns them.

The charts of messages stand in Alice's file.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import SecretKey, TableSize, Wrapping
from taciturn.data.tables import FeatureTable
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.logistic import row_products
from taciturn.protocol.batches import key_seed
from taciturn.protocol.bob.opening import agree_seed
from taciturn.protocol.bob.partners import Partner, Partners, receive_all_scores
from taciturn.protocol.bob.sealed import Keys, receive_table_scores
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.keyrings import OwnKeys, PeerKeys, own_keys, peer_keys
from taciturn.protocol.messages import Hello, SealedWeights
from taciturn.protocol.mutual import MaskedMatrix, VectorRequest, exchange
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.prediction import (
    SEALED_CHUNK_ROWS,
    Scored,
    ScoringSide,
    chunks,
    require_columns,
    shared_terms,
)
from taciturn.protocol.steps import ONLY, Program, StepProgress, emit, gather, send
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


class SealedRequester(ScoreRequester):
    """Scores from shares of the Alices' weights; ``share`` has theirs one after the other."""

    def __init__(
        self,
        weights: FloatArray,
        share: WeightShare,
        terms: Terms,
        entropy: Entropy,
        partners: Partners,
    ) -> None:
        self._weights, self._share, self._terms = weights, share, terms
        self._partners, self.names = partners, partners.names
        self._entropy = {partner.name: partner.entropy(entropy) for partner in partners.all}
        self.stated = shared_terms(terms, share.scales, "predict-sealed")
        self._keys: dict[str, Keys] = {}
        # The key of each vector that is with an Alice, by her name and the size of a block.
        self._sent: dict[tuple[str, int | None], SecretKey] = {}

    def open(self, hellos: Mapping[str, Hello], size: int) -> Program[None]:
        """Agree on the seeds of his keys."""
        yield from self._partners.ask(lambda partner: self._open(partner, hellos[partner.name]))

    def _open(self, partner: Partner, hello: Hello) -> Program[None]:
        require_columns(hello, partner.columns)
        ring = self._share.scales.ring(hello.magnitude_bits, partner.columns)
        seed = yield from agree_seed(self._entropy[partner.name])
        self._keys[partner.name] = Keys(self._terms, ring, seed)

    def ask(self, number: int, values: FloatArray, block: int | None = None) -> Program[Scored]:
        """Decrypt the Alices' part of the scores, and add his."""
        answers = yield from self._partners.ask(
            lambda partner: self._ask(partner, number, len(values), block)
        )
        scales = self._share.scales
        # Modulo t, where the masks of several Alices cancel.
        alice_scores = scales.ring(1, 1).centred(reduce(operator.add, answers))
        scores = row_products(values, self._weights) + scales.scores(alice_scores)
        # Whatever the numbers are, he continues: an end here would tell that they are none.
        return Scored(
            np.nan_to_num(scores), scales.suspected(alice_scores), scales.doubtful(alice_scores)
        )

    def _ask(
        self, partner: Partner, number: int, rows: int, block: int | None
    ) -> Program[IntArray]:
        size = TableSize(rows if block is None else block, partner.columns)
        key = yield from self._key(partner, size, number, block)
        keys = self._keys[partner.name]
        return (yield from receive_table_scores(keys, key, size, StepProgress(number)))[:rows]

    def _key(
        self, partner: Partner, size: TableSize, number: int, block: int | None
    ) -> Program[SecretKey]:
        if (partner.name, block) in self._sent:
            return self._sent[partner.name, block]
        use = f"scores {number}" if block is None else f"vector {block}"
        entropy = self._entropy[partner.name].fork(use)
        key = yield from self._keys[partner.name].offer(entropy)
        vector = key.encrypt_columns(self._share.values[partner.place], size, entropy)
        yield from send(SealedWeights(number, vector))
        if block is not None:
            self._sent[partner.name, block] = key
        return key


class MutualRequester(ScoreRequester):
    """Scores from Bob's shares: of Alice's weights, and of his own."""

    chunk_rows = SEALED_CHUNK_ROWS
    own_share: WeightShare

    def __init__(
        self,
        alices: WeightShare,
        bob_share: WeightShare,
        terms: Terms,
        entropy: Entropy,
        *,
        single_use: bool = False,
    ) -> None:
        # Whether each vector of Alice's has a key of its own, as in a training.
        self._single_use = single_use
        self._alices, self.own_share, self._terms, self._entropy = alices, bob_share, terms, entropy
        self.stated = shared_terms(terms, alices.scales, "predict-mutual")
        # The ring of products with her columns; his keys, and hers where he has columns.
        self._ring: Wrapping
        self._his: OwnKeys
        self._hers: PeerKeys | None = None

    def open(self, hellos: Mapping[str, Hello], size: int) -> Program[None]:
        """Agree on the seed of the keys."""
        hello, scales, columns = hellos[ONLY], self._alices.scales, len(self.own_share.values)
        require_columns(hello, len(self._alices.values))
        self._ring = scales.ring(hello.magnitude_bits, len(self._alices.values))
        seed = yield from agree_seed(self._entropy)
        self._his = own_keys(self._terms, self._ring, key_seed(seed, "bob"))
        if columns:
            other = scales.ring(size, columns)
            half = key_seed(seed, "alice")
            self._hers = peer_keys(self._terms, other, half, single_use=self._single_use)

    def ask(self, number: int, values: FloatArray, block: int | None = None) -> Program[Scored]:
        """Decrypt whole scores under his mask, and take it off."""
        scales = self._alices.scales
        total = yield from self._unmasked(number, values, "scores")
        return Scored(scales.scores(total), scales.suspected(total), scales.doubtful(total))

    def shares(self, number: int, values: FloatArray) -> Program[IntArray]:
        """His shares of the scores of these rows, of which Alice has the others."""
        return (yield from self._unmasked(number, values, "shares"))

    def _unmasked(self, number: int, values: FloatArray, purpose: str) -> Program[IntArray]:
        """What Alice answers, without his masks, and his own part of the scores."""
        ring, whole = self._ring, self._alices.scales.feature_grid.nearest(values)
        entropy = self._entropy.fork(f"{purpose} {number}")
        masks = yield from self._answer_masked(whole, number, entropy)
        question = VectorRequest(
            (yield from self._his.offer(entropy)), self._alices.values, len(whole)
        )
        masked_scores = yield from exchange(2 * number + 1, question, None, entropy.fork("hers"))
        return ring.centred(masked_scores - masks + ring.product(whole, self.own_share.values))

    def _answer_masked(self, whole: FloatArray, number: int, entropy: Entropy) -> Program[IntArray]:
        """Answer for Alice's share of his weights, under his masks; returns the masks."""
        if self._hers is None:
            return np.zeros(len(whole), dtype=np.int64)
        masks = self._ring.draw(len(whole), entropy.fork("masks"))
        matrix = MaskedMatrix((yield from self._hers.receive()), whole, masks)
        yield from exchange(2 * number, None, matrix, entropy.fork("own"))
        return masks


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
    if bob_share is None:
        partners = Partners.from_widths(names, widths or (len(share.values),))
        return SealedRequester(weights, share, terms, entropy, partners)
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
