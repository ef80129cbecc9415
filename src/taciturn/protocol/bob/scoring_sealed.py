"""Bob's part of joint scores from shares of the Alices' weights."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import reduce

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import SecretKey, TableSize
from taciturn.numerics.row_products import row_products
from taciturn.protocol.bob.partners import Partner, Partners
from taciturn.protocol.bob.scoring import ScoreRequester
from taciturn.protocol.bob.sealed import Keys, receive_table_scores
from taciturn.protocol.joint_seed import agree_as_bob
from taciturn.protocol.messages import Hello, SealedWeights
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.prediction import (
    Scored,
    require_columns,
    shared_terms,
)
from taciturn.protocol.steps import Program, StepProgress, send
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


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
        seed = yield from agree_as_bob(self._entropy[partner.name])
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
