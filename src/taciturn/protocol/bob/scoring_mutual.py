"""Bob's part of joint scores from shares of all weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import Wrapping
from taciturn.protocol.bob.scoring import ScoreRequester
from taciturn.protocol.joint_seed import agree_as_bob, key_seed
from taciturn.protocol.keyrings import OwnKeys, PeerKeys
from taciturn.protocol.messages import Hello
from taciturn.protocol.mutual import answer_product, ask_product
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.prediction import (
    SEALED_CHUNK_ROWS,
    Scored,
    require_columns,
    shared_terms,
)
from taciturn.protocol.steps import ONLY, Program
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


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
        seed = yield from agree_as_bob(self._entropy)
        scheme, bits = self._terms.scheme, self._terms.agreement.key_bits
        self._his = OwnKeys(scheme, bits, self._ring, key_seed(seed, "bob"))
        if columns:
            other = scales.ring(size, columns)
            half = key_seed(seed, "alice")
            self._hers = PeerKeys(scheme, bits, other, half, single_use=self._single_use)

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
        key, turn = (yield from self._his.offer(entropy)), 2 * number + 1
        stream = entropy.fork("hers")
        masked_scores = yield from ask_product(turn, key, self._alices.values, len(whole), stream)
        return ring.centred(masked_scores - masks + ring.product(whole, self.own_share.values))

    def _answer_masked(self, whole: FloatArray, number: int, entropy: Entropy) -> Program[IntArray]:
        """Answer for Alice's share of his weights, under his masks; returns the masks."""
        if self._hers is None:
            return np.zeros(len(whole), dtype=np.int64)
        masks = self._ring.draw(len(whole), entropy.fork("masks"))
        key = yield from self._hers.receive()
        yield from answer_product(2 * number, key, whole, masks, entropy.fork("own"))
        return masks
