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
                            + X_B u_B + zeta>

Bob ends with whole scores: he has neither her part of one nor his own.
"""

from __future__ import annotations

from taciturn.arrays import IntArray
from taciturn.crypto.base import SecretKey
from taciturn.data.tables import FeatureTable
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.protocol.alice.batch_seed import agree_seed
from taciturn.protocol.batch_seed import key_seed
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.keyrings import OwnKeys, own_keys, peer_keys
from taciturn.protocol.mutual import Matrix, Question, exchange
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.prediction import SEALED_CHUNK_ROWS, chunks, shared_terms, whitened_rows
from taciturn.protocol.steps import Program, emit
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


def predict(
    features: FeatureTable, own: WeightShare, bobs: WeightShare, terms: Terms, entropy: Entropy
) -> Program[None]:
    """Answers for every row, some at a time.

    Args:
        features: Her columns of the rows to score.
        own: Her share of her weights; says the size to state for smaller values too.
        bobs: Her share of Bob's.
        terms: The agreement of the training.
        entropy: Her coins.

    Raises:
        RemoteProtocolError: Bob's table has another number of columns than the share.
    """
    scales, share, features = own.scales, own.values, whitened_rows(features, own.whitening)
    size = max(own.magnitude_bits, magnitude_bits(features.largest))
    stated = shared_terms(terms, scales, "predict-mutual")
    hello = yield from shake_hands(greeting("alice", stated, features, size))
    if hello.columns != len(bobs.values):
        raise RemoteProtocolError(
            f"the peer's table has {hello.columns} columns, and {len(bobs.values)} weights are "
            "shared"
        )
    ring = scales.ring(size, len(share))
    seed = yield from agree_seed(entropy)
    theirs = peer_keys(terms, ring, key_seed(seed, "bob"))
    hers: OwnKeys[SecretKey] | None = None
    if hello.columns:
        other = scales.ring(hello.magnitude_bits, hello.columns)
        hers = own_keys(terms, other, key_seed(seed, "alice"))
    for number, rows in chunks(features.rows, SEALED_CHUNK_ROWS):
        whole = scales.feature_grid.nearest(features.values[rows])
        coins = entropy.fork(f"scores {number}")
        masked = yield from _ask_masked(hers, bobs.values, len(whole), number, coins)
        mask = ring.centred(ring.product(whole, share) + masked)
        matrix = Matrix((yield from theirs.receive()), whole, mask)
        yield from exchange(2 * number + 1, None, matrix, coins.fork("own"))
        yield from emit(RowsScored(rows.stop, features.rows))


def _ask_masked(
    keys: OwnKeys[SecretKey] | None, share: IntArray, rows: int, number: int, coins: Entropy
) -> Program[IntArray | int]:
    """What her share of Bob's weights adds to the scores, under a mask of his."""
    if keys is None:
        return 0
    question = Question((yield from keys.offer(coins)), share, rows)
    return (yield from exchange(2 * number, question, None, coins.fork("his")))
