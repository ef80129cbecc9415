"""Alice's part of joint scores from shares of all weights."""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import Wrapping
from taciturn.protocol.alice.score_noise import ScoreNoise
from taciturn.protocol.alice.scoring import DueRows, ScoreResponder
from taciturn.protocol.joint_seed import agree_as_alice, key_seed
from taciturn.protocol.keyrings import OwnKeys, PeerKeys
from taciturn.protocol.messages import Hello
from taciturn.protocol.mutual import answer_product, ask_product
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.prediction import (
    SEALED_CHUNK_ROWS,
    require_columns,
    shared_terms,
)
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


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
        seed = yield from agree_as_alice(self._entropy)
        scheme, bits = self._terms.scheme, self._terms.agreement.key_bits
        self._theirs = PeerKeys(scheme, bits, self._ring, key_seed(seed, "bob"))
        if hello.columns:
            other = scales.ring(hello.magnitude_bits, hello.columns)
            half = key_seed(seed, "alice")
            self._hers = OwnKeys(scheme, bits, other, half, single_use=self._single_use)

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
        key = yield from self._theirs.receive()
        yield from answer_product(2 * number + 1, key, whole, mask, entropy.fork("own"))

    def _ask_masked(self, rows: int, number: int, entropy: Entropy) -> Program[IntArray | int]:
        """Contribution of her share of Bob's weights to the scores, under his mask."""
        if self._hers is None:
            return 0
        key, stream = (yield from self._hers.offer(entropy)), entropy.fork("his")
        return (yield from ask_product(2 * number, key, self._bobs.values, rows, stream))
