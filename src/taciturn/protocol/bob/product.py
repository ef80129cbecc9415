"""Bob's half of ``X_A^T r`` under his key: encrypt, wait, decrypt, release."""

from __future__ import annotations

from taciturn.arrays import IndexArray, IntArray
from taciturn.crypto.base import EncryptedAnswer, SecretKey
from taciturn.errors import RemoteProtocolError
from taciturn.privacy.base import GradientMechanism
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.messages import EncryptedResidues, MaskedGradient, RevealedGradient
from taciturn.protocol.steps import Program, receive, require_turn, send


def released_product(
    inputs: BobInputs[GradientMechanism],
    key: SecretKey,
    encoded: IntArray,
    rows: IndexArray,
    columns: int,
    iteration: int,
) -> Program[None]:
    """One encrypted round trip; what Bob decrypts is charged, released and sent.

    Args:
        inputs: What the training is run with.
        key: His key.
        encoded: The residues on their grid.
        rows: The rows whose labels the product depends on.
        columns: How many entries Alice's answer must have.
        iteration: The iteration that is due.
    """
    coins = inputs.entropy.fork(f"encryption {iteration}")
    yield from send(EncryptedResidues(iteration, key.encrypt(encoded, columns, coins)))
    # Before waiting, not after: Alice is at work on her product meanwhile.
    key.stock(columns, len(encoded), coins)
    masked = key.decrypt((yield from masked_answer(iteration, columns)), len(encoded))
    released = inputs.mechanism.release(masked, inputs.entropy.fork(f"noise {iteration}"))
    # Exactly what leaves is what is charged, and before it leaves.
    inputs.ledger.charge(released.event, rows)
    yield from send(RevealedGradient(iteration, released))


def masked_answer(iteration: int, columns: int) -> Program[EncryptedAnswer]:
    """Waits for Alice's masked product.

    Raises:
        RemoteProtocolError: It has another number of entries.
    """
    message = yield from receive(MaskedGradient)
    require_turn("MaskedGradient", message.iteration, iteration)
    if message.answer.length != columns:
        raise RemoteProtocolError(
            f"the peer answers with {message.answer.length} entries for {columns} columns"
        )
    return message.answer
