"""Bob's half of a sealed score: the part that training, held-out rows and prediction share."""

from __future__ import annotations

import numpy as np

from taciturn.arrays import EVERY_ROW, IntArray
from taciturn.crypto.base import SecretKey, TableSize, Wrapping
from taciturn.privacy.base import EncryptedMechanism, Released
from taciturn.privacy.model_release import ModelRelease
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.partners import Partners
from taciturn.protocol.joint_seed import key_seed
from taciturn.protocol.keyrings import OwnKeys
from taciturn.protocol.messages import (
    RevealedShare,
    SealedScores,
    SealedWeights,
)
from taciturn.protocol.steps import (
    ONLY,
    Program,
    StepProgress,
    receive_at,
    require_entries,
    send,
    with_peer,
)
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


class Keys(OwnKeys):
    """Bob's key: one for the training, or a fresh one for each of his vectors.

    The uniform half of each key is from ``seed``, the joint seed; None in a conversation that
    agrees on none. ``saved_key`` is the key of a resumed training.
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


def ask_table_scores(
    keys: Keys, share: IntArray, size: TableSize, turn: StepProgress, entropy: Entropy
) -> Program[IntArray]:
    """Alice's part of the scores of all rows of a table, which she sends part by part.

    They are values modulo t that Bob alone knows.

    ``share`` is his share of her weights, and ``entropy`` is for this product alone.
    """
    key = yield from keys.offer(entropy)
    yield from send(SealedWeights(turn.number, key.encrypt_columns(share, size, entropy)))
    return (yield from receive_table_scores(keys, key, size, turn))


def receive_table_scores(
    keys: Keys, key: SecretKey, size: TableSize, turn: StepProgress
) -> Program[IntArray]:
    """The scores that Alice sends part by part, decrypted with ``key``."""
    values: IntArray = np.empty(size.rows, dtype=np.int64)
    parts = keys.scheme.row_parts(size)
    for done, part in enumerate(parts, 1):
        answer = (yield from receive_at(SealedScores, turn.number)).answer
        require_entries("answer", answer.length, part.stop - part.start)
        values[part] = key.decrypt_rows(answer, size, part)
        yield from turn.report(1, done, len(parts))
    return values


def release_share(
    inputs: BobInputs[EncryptedMechanism], share: IntArray, partners: Partners | None = None
) -> Program[None]:
    """Reveals his share of Alice's weights, to each of several hers; charged before it is sent."""
    price = inputs.mechanism.share_event
    inputs.ledger.charge(price, EVERY_ROW)
    shares = {ONLY: share}
    if partners is not None:
        shares = {partner.name: share[partner.place] for partner in partners.all}
    for name, numbers in shares.items():
        yield from with_peer(name, send(RevealedShare(Released(numbers, price))))


def release_noisy_share(
    inputs: BobInputs[EncryptedMechanism],
    share: IntArray,
    release: ModelRelease,
    modulus_bits: int,
) -> Program[IntArray]:
    """Reveals his share of Alice's weights with noise; charged before it is sent.

    What he revealed is his share from here on: the model is the released one.
    """
    # The same entropy gives the same noise: a resumed training releases the same model again.
    revealed = release.release(share, modulus_bits, inputs.entropy.fork("model noise"))
    inputs.ledger.charge(revealed.event, EVERY_ROW)
    yield from send(RevealedShare(revealed))
    return revealed.value
