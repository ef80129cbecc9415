"""Alice's part of joint scores from shares of her weights."""

from __future__ import annotations

import numpy as np

from taciturn.crypto.base import EncryptedVector, PublicKey, TableSize
from taciturn.protocol.alice.score_noise import ScoreNoise
from taciturn.protocol.alice.scoring import DueRows, ScoreResponder
from taciturn.protocol.alice.sealed import Keys, own_scores, receive_weights
from taciturn.protocol.joint_seed import agree_as_alice
from taciturn.protocol.messages import Hello, SealedScores
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.prediction import (
    shared_terms,
)
from taciturn.protocol.steps import Program, send
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


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
        self._keys = Keys(self._terms, ring, (yield from agree_as_alice(self._entropy)))

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
