"""Bob's half of ``X_A^T r`` under his key: encrypt, wait, decrypt, release."""

from __future__ import annotations

from collections.abc import Sequence

from taciturn.arrays import IndexArray, IntArray
from taciturn.crypto.base import EncryptedAnswer, SecretKey
from taciturn.privacy.base import GradientMechanism, MaskedProduct
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.partners import Partner, Partners
from taciturn.protocol.messages import (
    EncryptedResidues,
    MaskedGradient,
    RevealedGradient,
)
from taciturn.protocol.steps import (
    Program,
    receive_at,
    require_entries,
    send,
    with_peer,
)


def released_product(
    inputs: BobInputs[GradientMechanism],
    partners: Partners,
    key: SecretKey,
    encoded: IntArray,
    rows: IndexArray,
    iteration: int,
) -> Program[None]:
    """One encrypted round trip; what Bob decrypts is charged, released and sent.

    ``encoded`` are the residues on their grid, and ``rows`` those whose labels the product depends
    on.
    """
    entropy = inputs.entropy.fork(f"encryption {iteration}")

    def ask_product(partner: Partner) -> Program[MaskedProduct]:
        partner_entropy = partner.entropy(entropy)
        vector = key.encrypt(encoded, partner.columns, partner_entropy)
        yield from send(EncryptedResidues(iteration, vector))
        # Before waiting, not after: Alice is at work on her product meanwhile.
        key.stock(partner.columns, len(encoded), partner_entropy)
        answer = yield from masked_answer(iteration, partner.columns)
        return key.decrypt(answer, len(encoded))

    products = yield from partners.ask(ask_product)
    yield from release_products(inputs, partners, products, rows, iteration)


def release_products(
    inputs: BobInputs[GradientMechanism],
    partners: Partners,
    products: Sequence[MaskedProduct],
    rows: IndexArray | slice,
    iteration: int,
) -> Program[None]:
    """Returns to each Alice what is hers, as one release."""
    noise = inputs.entropy.fork(f"noise {iteration}")
    released = [
        inputs.mechanism.release(masked, partner.entropy(noise))
        for partner, masked in zip(partners.all, products, strict=True)
    ]
    # Exactly what leaves is what is charged, and before it leaves: together they tell of each row
    # what one product of all columns would.
    inputs.ledger.charge(released[0].event, rows)
    for partner, gradient in zip(partners.all, released, strict=True):
        yield from with_peer(partner.name, send(RevealedGradient(iteration, gradient)))


def masked_answer(iteration: int, columns: int) -> Program[EncryptedAnswer]:
    """Waits for Alice's masked product."""
    answer = (yield from receive_at(MaskedGradient, iteration)).answer
    require_entries("answer", answer.length, columns)
    return answer
