"""Alice's half of a sealed score: the part that training, held-out rows and prediction share.

::

    Alice                                            Bob
                                                <-   SealedWeights       <v>
      SealedScores         <X_A v + X_A u>      ->
"""

from __future__ import annotations

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import EncryptedAnswer, EncryptedVector, Table, Wrapping
from taciturn.protocol.encoded_table import EncodedTable
from taciturn.protocol.joint_seed import key_seed
from taciturn.protocol.keyrings import PeerKeys
from taciturn.protocol.masks import NO_MASKS, ZeroSum
from taciturn.protocol.messages import (
    EncryptedResidues,
    RevealedShare,
    SealedResidues,
    SealedScores,
    SealedWeights,
)
from taciturn.protocol.steps import (
    Program,
    StepProgress,
    receive,
    receive_at,
    require_entries,
    send,
)
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


class Keys(PeerKeys):
    """Bob's public key: one for the training, or a fresh one for each of his vectors.

    The uniform half of every key of his must come from ``seed``, the joint seed; None in a
    conversation that agrees on none. ``saved_key`` is the key of a resumed training.
    """

    def __init__(
        self, terms: Terms, ring: Wrapping, seed: bytes | None, saved_key: bytes = b""
    ) -> None:
        super().__init__(
            terms.scheme,
            terms.agreement.key_bits,
            ring,
            None if seed is None else key_seed(seed, "bob"),
            single_use=bool(terms.agreement.fresh_keys),
            saved_key=saved_key or None,
        )


def answer_sum(
    table: Table,
    parts: list[slice],
    due: type[SealedResidues] | type[EncryptedResidues],
    turn: StepProgress,
    mask: IntArray,
    entropy: Entropy,
) -> Program[EncryptedAnswer]:
    """A table's product over all rows with the vector that Bob sends part by part, and a mask."""
    total = table.sum_over_rows(mask, entropy)
    for done, part in enumerate(parts, 1):
        residues = (yield from receive_at(due, turn.number)).residues
        require_entries("vector", residues.length, part.stop - part.start)
        total.add(residues, part)
        yield from turn.report(0, done, len(parts))
    return total.result()


def answer_table_scores(
    keys: Keys,
    prepared: EncodedTable,
    share: IntArray,
    turn: StepProgress,
    entropy: Entropy,
    masks: ZeroSum = NO_MASKS,
    noise: IntArray | None = None,
) -> Program[None]:
    """Alice's part of the scores of all rows of a table, part by part.

    What Bob decrypts is ``X_A (u + v)``, plus ``noise`` except in training, modulo t, and nothing
    else of X_A: the answer is re-randomised, and holds only the slots of these rows. Of several
    Alices it is that under ``masks``. ``entropy`` and ``masks`` are for this call alone.
    """
    key = yield from keys.receive()
    table = prepared.under(key)
    partial_scores = own_scores(keys.ring, prepared.whole, share, masks, noise)
    weights = yield from receive_weights(turn.number, len(share))
    parts = keys.scheme.row_parts(table.size)
    for done, part in enumerate(parts, 1):
        answer = table.product(weights, partial_scores[part], entropy, part)
        # Sent one by one, so that Bob works on one while she makes the next.
        yield from send(SealedScores(turn.number, answer))
        yield from turn.report(1, done, len(parts))


def receive_weights(number: int, columns: int) -> Program[EncryptedVector]:
    """Bob's share of her weights, under his key."""
    weights = (yield from receive_at(SealedWeights, number)).weights
    require_entries("weight share", weights.length, columns)
    return weights


def own_scores(
    ring: Wrapping,
    rows: IntArray | FloatArray,
    share: IntArray,
    masks: ZeroSum = NO_MASKS,
    noise: IntArray | None = None,
) -> IntArray:
    """Contribution of Alice's share to the scores of some rows, with noise and masks."""
    scores = ring.product(rows, share)
    if noise is not None:
        scores = ring.centred(scores + noise)
    return ring.centred(masks.over(scores)) if masks else scores


def revealed_share(ring: Wrapping, share: IntArray) -> Program[IntArray]:
    """Alice's weights in exact integers: Bob's share, which he reveals, and hers."""
    bob_share = (yield from receive(RevealedShare)).share.value
    require_entries("weight share", len(bob_share), len(share))
    return ring.centred(share + bob_share)
