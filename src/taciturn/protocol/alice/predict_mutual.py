"""Alice's side of a joint prediction from shares of all weights: only Bob learns the scores.

::

    Alice                                            Bob
      Hello                                    <->   Hello
      the joint seed, of the keys' uniform halves
                                                <-   KeyOffer
      KeyOffer                                  ->   (where he has columns)
      for each chunk of rows:
      SharedVector         <u_B>                ->   (where he has columns)
                                                <-   SharedProduct       <X_B u_B + zeta>
                                                <-   SharedVector        <v_A>
      SharedProduct        <X_A (u_A + v_A)     ->   takes zeta off, and adds X_B v_B
                            + X_B u_B + zeta + e>

Bob ends with whole scores and the noise e (``score_noise``): he has neither her part of one nor
his own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import Wrapping
from taciturn.data.tables import FeatureTable
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.protocol.alice.batch_seed import agree_seed
from taciturn.protocol.alice.score_noise import ScoreNoise
from taciturn.protocol.batch_seed import key_seed
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.keyrings import OwnKeys, PeerKeys, own_keys, peer_keys
from taciturn.protocol.messages import Hello
from taciturn.protocol.mutual import Matrix, Question, exchange
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.prediction import SEALED_CHUNK_ROWS, chunks, shared_terms, whitened_rows
from taciturn.protocol.steps import Program, emit
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


def predict(
    features: FeatureTable,
    own: WeightShare,
    bobs: WeightShare,
    noise_key: bytes,
    terms: Terms,
    entropy: Entropy,
) -> Program[None]:
    """Answers for every row, some at a time.

    ``own`` is Alice's share of her weights, and ``bobs`` her share of Bob's. The size that she
    states is at least ``own.magnitude_bits``.
    """
    scales, features = own.scales, whitened_rows(features, own.whitening)
    size = max(own.magnitude_bits, magnitude_bits(features.largest))
    stated = shared_terms(terms, scales, "predict-mutual")
    hello = yield from shake_hands(greeting("alice", stated, features, size))
    if hello.columns != len(bobs.values):
        raise RemoteProtocolError(
            f"the peer's table has {hello.columns} columns, and {len(bobs.values)} weights are "
            "shared"
        )
    answers = yield from MutualAnswers.open(own, bobs, noise_key, terms, entropy, size, hello)
    for number, rows in chunks(features.rows, SEALED_CHUNK_ROWS):
        ids = features.ids.series[rows].to_list()
        yield from answers.answer(number, ids, features.values[rows])
        yield from emit(RowsScored(rows.stop, features.rows))


@dataclass(frozen=True, slots=True)
class MutualAnswers:
    """Her side once the keys' seed is agreed on: answers for some rows at a time.

    ``own`` is her share of her weights, and ``bobs`` her share of Bob's. ``ring`` is that of
    products with her columns. ``hers`` is her key; None where he has no columns.
    """

    own: WeightShare
    bobs: WeightShare
    noise: ScoreNoise
    ring: Wrapping
    theirs: PeerKeys
    hers: OwnKeys | None
    entropy: Entropy

    @classmethod
    def open(
        cls,
        own: WeightShare,
        bobs: WeightShare,
        noise_key: bytes,
        terms: Terms,
        entropy: Entropy,
        size: int,
        hello: Hello,
    ) -> Program[MutualAnswers]:
        """Agrees on the seed of the keys; no value of hers exceeds ``2^size``."""
        scales = own.scales
        ring = scales.ring(size, len(own.values))
        seed = yield from agree_seed(entropy)
        theirs = peer_keys(terms, ring, key_seed(seed, "bob"))
        hers: OwnKeys | None = None
        if hello.columns:
            other = scales.ring(hello.magnitude_bits, hello.columns)
            hers = own_keys(terms, other, key_seed(seed, "alice"))
        noise = ScoreNoise(noise_key, own.values, bobs.values)
        return cls(own, bobs, noise, ring, theirs, hers, entropy)

    def answer(self, number: int, ids: Sequence[str], values: FloatArray) -> Program[None]:
        """Answers for these rows, which nobody has asked for under this number before."""
        scales = self.own.scales
        whole = scales.feature_grid.nearest(values)
        noise = self.noise.draw(ids, whole.astype(np.int64), scales.score_unit)
        coins = self.entropy.fork(f"scores {number}")
        masked = yield from _ask_masked(self.hers, self.bobs.values, len(whole), number, coins)
        # Within the mask: no plaintext that Bob decrypts is without it.
        mask = self.ring.centred(self.ring.product(whole, self.own.values) + masked + noise)
        matrix = Matrix((yield from self.theirs.receive()), whole, mask)
        yield from exchange(2 * number + 1, None, matrix, coins.fork("own"))


def _ask_masked(
    keys: OwnKeys | None, share: IntArray, rows: int, number: int, coins: Entropy
) -> Program[IntArray | int]:
    """What her share of Bob's weights adds to the scores, under a mask of his."""
    if keys is None:
        return 0
    question = Question((yield from keys.offer(coins)), share, rows)
    return (yield from exchange(2 * number, question, None, coins.fork("his")))
