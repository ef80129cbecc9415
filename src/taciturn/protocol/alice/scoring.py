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
      SharedVector         <u_B>                ->   (where he has columns)
                                                <-   SharedProduct       <X_B u_B + zeta>
                                                <-   SharedVector        <v_A>
      SharedProduct        <X_A (u_A + v_A)     ->   takes zeta off, and adds X_B v_B
                            + X_B u_B + zeta + e>

The noise e is that of ``score_noise``. Where all weights are shared, Bob ends with whole scores: he
has neither her part of one nor his own.

``report`` tells Bob her scores of held-out rows while a training by batches runs. The chart stands
in ``taciturn.protocol.outcome``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import EncryptedVector, PublicKey, TableSize, Wrapping
from taciturn.data.tables import FeatureTable
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.logistic import row_products
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.opening import agree_seed
from taciturn.protocol.alice.score_noise import ScoreNoise
from taciturn.protocol.alice.sealed import Keys, own_scores, receive_weights
from taciturn.protocol.batches import key_seed
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.keyrings import OwnKeys, PeerKeys, own_keys, peer_keys
from taciturn.protocol.messages import EpochVerdict, Hello, SealedScores
from taciturn.protocol.mutual import MaskedMatrix, VectorRequest, exchange
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.party_group import NO_MASKS, ZeroSum
from taciturn.protocol.prediction import (
    SEALED_CHUNK_ROWS,
    ScoringSide,
    chunks,
    require_columns,
    shared_terms,
)
from taciturn.protocol.scores import scores_message
from taciturn.protocol.steps import Program, emit, receive, require_turn, send
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


class SealedResponder(ScoreResponder):
    """Scores from Alice's share of her weights."""

    answers_add_up = True
    own_share: WeightShare

    def __init__(
        self, share: WeightShare, noise_key: bytes, terms: Terms, entropy: Entropy
    ) -> None:
        self.own_share, self._terms, self._entropy = share, terms, entropy
        self.stated = shared_terms(terms, share.scales, "predict-sealed")
        self._noise = ScoreNoise(noise_key, share.values)
        self._keys: Keys
        # Bob's vector, by the size of a block.
        self._vectors: dict[int, tuple[PublicKey, EncryptedVector]] = {}

    def require_hidden(self, size: int, rows: int, answers: int) -> None:
        """Refuse rows of which this many answers would reveal more than their scores."""
        columns = len(self.own_share.values)
        ring = self.own_share.scales.ring(size, columns)
        # The models of one search score the same rows.
        products = answers * self._terms.agreement.models
        self._terms.scheme.check_tables(ring, TableSize(rows, columns), products)

    def open(self, hello: Hello, size: int) -> Program[None]:
        """Agree on the seed of Bob's keys."""
        ring = self.own_share.scales.ring(size, len(self.own_share.values))
        self._keys = Keys(self._terms, ring, (yield from agree_seed(self._entropy)))

    def answer(self, due: DueRows) -> Program[None]:
        """Send ``<X_A v + X_A u + e>``, filled up with random entries to the size of the block."""
        scales, ring, rows = self.own_share.scales, self._keys.ring, len(due.values)
        key, vector = yield from self._vector(due)
        entropy = self._entropy.fork(f"scores {due.number}")
        whole = scales.feature_grid.rounded(due.values)
        noise = self._noise.draw(due.ids, whole, scales.score_unit)
        if due.block is not None:
            whole = np.pad(whole, ((0, due.block - rows), (0, 0)))
            noise = np.pad(noise, (0, due.block - rows))
        partial_scores = own_scores(ring, whole, self.own_share.values, due.masks, noise)
        # A vector of Bob's choice brings the rows into the entries of others, also of those that
        # only fill up: these say nothing.
        partial_scores[rows:] = ring.draw(len(partial_scores) - rows, entropy.fork("padding"))
        table = key.table(whole, 0)
        try:
            for part in self._terms.scheme.row_parts(table.size):
                product = table.product(vector, partial_scores[part], entropy, part)
                # Sent one by one, so that Bob works on one while she makes the next.
                yield from send(SealedScores(due.number, product))
        finally:
            table.close()

    def _vector(self, due: DueRows) -> Program[tuple[PublicKey, EncryptedVector]]:
        if due.block in self._vectors:
            return self._vectors[due.block]
        key = yield from self._keys.receive()
        vector = yield from receive_weights(due.number, len(self.own_share.values))
        if due.block is not None:
            self._vectors[due.block] = key, vector
        return key, vector


class MutualResponder(ScoreResponder):
    """Scores from Alice's shares: ``share`` of her own weights, ``bobs`` of Bob's."""

    chunk_rows = SEALED_CHUNK_ROWS
    own_share: WeightShare

    def __init__(
        self,
        share: WeightShare,
        bobs: WeightShare,
        noise_key: bytes,
        terms: Terms,
        entropy: Entropy,
        *,
        single_use: bool = False,
    ) -> None:
        self.own_share, self._bobs, self._terms, self._entropy = share, bobs, terms, entropy
        self.stated = shared_terms(terms, share.scales, "predict-mutual")
        # Whether each vector of hers has a key of its own, as in a training.
        self._single_use = single_use
        self._noise = ScoreNoise(noise_key, share.values, bobs.values)
        # The ring of products with her columns; his keys, and hers where he has columns.
        self._ring: Wrapping
        self._theirs: PeerKeys
        self._hers: OwnKeys | None = None

    def open(self, hello: Hello, size: int) -> Program[None]:
        """Agree on the seed of the keys."""
        require_columns(hello, len(self._bobs.values))
        scales = self.own_share.scales
        self._ring = scales.ring(size, len(self.own_share.values))
        seed = yield from agree_seed(self._entropy)
        self._theirs = peer_keys(self._terms, self._ring, key_seed(seed, "bob"))
        if hello.columns:
            other = scales.ring(hello.magnitude_bits, hello.columns)
            half = key_seed(seed, "alice")
            self._hers = own_keys(self._terms, other, half, single_use=self._single_use)

    def answer(self, due: DueRows) -> Program[None]:
        """Send her part of the scores, her share of his weights and noise, under his mask."""
        scales, number = self.own_share.scales, due.number
        whole = scales.feature_grid.nearest(due.values)
        noise = self._noise.draw(due.ids, whole.astype(np.int64), scales.score_unit)
        entropy = self._entropy.fork(f"scores {number}")
        masked = yield from self._ask_masked(len(whole), number, entropy)
        # Within the mask: no plaintext that Bob decrypts is without it.
        mask = self._ring.centred(self._ring.product(whole, self.own_share.values) + masked + noise)
        yield from self._answer_under(mask, whole, number, entropy)

    def shares(self, number: int, values: FloatArray) -> Program[IntArray]:
        """Her shares of the scores of these rows, of which Bob has the others."""
        whole = self.own_share.scales.feature_grid.nearest(values)
        entropy = self._entropy.fork(f"shares {number}")
        masked = yield from self._ask_masked(len(whole), number, entropy)
        masks = self._ring.draw(len(whole), entropy.fork("masks"))
        yield from self._answer_under(masks, whole, number, entropy)
        own = self._ring.product(whole, self.own_share.values)
        return self._ring.centred(own + masked - masks)

    def _answer_under(
        self, mask: IntArray, whole: FloatArray, number: int, entropy: Entropy
    ) -> Program[None]:
        """Multiply Bob's share of her weights by her columns, under a mask."""
        matrix = MaskedMatrix((yield from self._theirs.receive()), whole, mask)
        yield from exchange(2 * number + 1, None, matrix, entropy.fork("own"))

    def _ask_masked(self, rows: int, number: int, entropy: Entropy) -> Program[IntArray | int]:
        """Contribution of her share of Bob's weights to the scores, under his mask."""
        if self._hers is None:
            return 0
        question = VectorRequest((yield from self._hers.offer(entropy)), self._bobs.values, rows)
        return (yield from exchange(2 * number, question, None, entropy.fork("his")))


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
    if bobs is None:
        return SealedResponder(share, noise_key, terms, entropy)
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


def report(
    inputs: AliceInputs, weights: FloatArray, iteration: int, masks: ZeroSum = NO_MASKS
) -> Program[bool]:
    """Sends her noisy scores at the end of an epoch, where that is agreed; True where Bob stops."""
    held_out = inputs.scored_each_epoch
    if held_out is None:
        return False
    grid, message_masks = inputs.terms.score_grid, masks.fork(f"held out {iteration}")
    noise = ScoreNoise.for_pass(inputs.noise_key, iteration)
    scores = held_out.values @ weights + noise.reals(held_out.ids, held_out.values, grid)
    yield from send(scores_message(iteration, scores, grid, message_masks))
    if inputs.terms.agreement.patience is None:
        return False
    verdict = yield from receive(EpochVerdict)
    require_turn("EpochVerdict", verdict.iteration, iteration)
    if verdict.stop.value.tolist() not in ([0], [1]):
        raise RemoteProtocolError("the peer's verdict is neither to stop nor to continue")
    return bool(verdict.stop.value[0])
