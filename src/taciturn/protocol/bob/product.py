"""Bob's half of ``X_A^T r`` under his key: encrypt, wait, decrypt, release."""

from __future__ import annotations

from taciturn.arrays import IndexArray, IntArray
from taciturn.crypto.base import EncryptedAnswer, SecretKey
from taciturn.errors import RemoteProtocolError
from taciturn.privacy.base import GradientRelease
from taciturn.privacy.ledger import Ledger
from taciturn.protocol.messages import (
    EncryptedResidues,
    Hello,
    KeyOffer,
    MaskedGradient,
    PublicBytes,
    RevealedGradient,
)
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, keep, receive, require_turn, send
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


def offer_key(terms: Terms, hello: Hello, entropy: Entropy) -> Program[SecretKey]:
    """A fresh key for products with Alice's table, and its public half on its way to her."""
    key = terms.scheme.generate(
        terms.agreement.key_bits,
        terms.capacity(hello.magnitude_bits, hello.rows),
        entropy.fork("key"),
    )
    # The lattice library draws keys from the operating system, not from his coins.
    kept = yield from keep(key.to_bytes())
    if kept != key.to_bytes():
        key = terms.scheme.read_secret(kept, terms.agreement.key_bits, key.public.capacity)
    yield from send(KeyOffer(PublicBytes(key.public.to_bytes())))
    return key


def kept_key(terms: Terms, state: TrainingState, rows: int) -> SecretKey:
    """The key of a training that goes on.

    Raises:
        CryptoError: The state holds no such key.
    """
    return terms.scheme.read_secret(
        state.key, terms.agreement.key_bits, terms.capacity(state.magnitude_bits, rows)
    )


def released_product(
    key: SecretKey,
    encoded: IntArray,
    rows: IndexArray,
    columns: int,
    iteration: int,
    mechanism: GradientRelease,
    ledger: Ledger,
    entropy: Entropy,
) -> Program[None]:
    """One encrypted round trip; what Bob decrypts is charged, released and sent.

    Args:
        key: His key.
        encoded: The residues on their grid.
        rows: The rows whose labels the product depends on.
        columns: How many entries Alice's answer must have.
        iteration: The iteration that is due.
        mechanism: What is done to a gradient before it is returned.
        ledger: Charged before the release.
        entropy: His coins.
    """
    coins = entropy.fork(f"encryption {iteration}")
    yield from send(EncryptedResidues(iteration, key.encrypt(encoded, columns, coins)))
    # Before waiting, not after: Alice is at work on her product meanwhile.
    key.stock(columns, len(encoded), coins)
    masked = key.decrypt((yield from _answer(iteration, columns)), len(encoded))
    released = mechanism.release(masked, entropy.fork(f"noise {iteration}"))
    # Exactly what leaves is what is charged, and before it leaves.
    ledger.charge(released.event, rows)
    yield from send(RevealedGradient(iteration, released))


def _answer(iteration: int, columns: int) -> Program[EncryptedAnswer]:
    message = yield from receive(MaskedGradient)
    require_turn("MaskedGradient", message.iteration, iteration)
    if message.answer.length != columns:
        raise RemoteProtocolError(
            f"the peer answers with {message.answer.length} entries for {columns} columns"
        )
    return message.answer
