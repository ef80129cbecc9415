"""Training with the revealed gradient: what Alice sees, what is charged, malformed ciphertexts.

What every conversation promises is in ``test_conversations.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from taciturn.crypto import ClearScheme, EncryptedVector, PaillierScheme, Scheme
from taciturn.crypto.bfv import BfvScheme
from taciturn.errors import CryptoError, PrivacyError
from taciturn.numerics import FixedPoint, residue
from taciturn.privacy import MaskedProduct, PrivacyEvent, Released, Unprotected
from taciturn.protocol import (
    EncryptedResidues,
    GradientSeen,
    Hello,
    KeyOffer,
    MaskedGradient,
    Message,
    PublicBytes,
    RevealedGradient,
    Role,
    kind_of,
)
from taciturn.rng import Entropy
from tests.expected import refused
from tests.protocol.parties import ByHand, Tables, agreement, plan_of
from tests.protocol.stars import Star, converse

TABLES = Tables.make(alice=3, bob=2)
SCHEMES: dict[str, Scheme] = {
    "clear": ClearScheme(),
    "paillier": PaillierScheme(key_bits=(512,)),
    "bfv": BfvScheme(),
}


def test_alice_sees_the_exact_integer_gradient_of_every_batch_and_bob_its_masked_form():
    star = Star.of(TABLES, agreement(), 1)
    talk, plan = converse(star), list(plan_of(TABLES, star.terms.agreement))
    seen = talk.seen(GradientSeen)
    assert [(one.iteration, one.epoch, one.rows.tolist()) for one in seen] == [
        (batch.iteration, batch.epoch, batch.rows.tolist()) for batch in plan
    ]
    rows = plan[0].rows
    features = FixedPoint(16).encode(TABLES.alice.values[rows], 1)
    left = FixedPoint(20).encode(residue(np.zeros(len(rows)), TABLES.labels.values[rows]), 0)
    assert seen[0].weights.tolist() == [0.0, 0.0, 0.0]
    assert seen[0].gradient.tolist() == (features.T @ left).tolist()
    returned = [message for message in talk.said_by("bob") if isinstance(message, RevealedGradient)]
    masks = [
        (one - other) % 2**64
        for masked, plain in zip(returned, seen, strict=True)
        for one, other in zip(masked.gradient.value, plain.gradient.tolist(), strict=True)
    ]
    # None is zero, and none is used twice.
    assert len({0, *masks}) == len(masks) + 1


@dataclass(frozen=True, slots=True)
class Unpriced(PrivacyEvent):
    name = "unpriced"


class UnpricedMechanism(Unprotected):
    """A mechanism whose price nobody knows."""

    def release(self, secret: MaskedProduct, entropy: Entropy) -> Released[MaskedProduct]:
        return Released(secret, Unpriced())


def test_a_release_without_a_price_is_never_sent():
    kinds: list[type[Message]] = []

    def listen(link: str, sender: Role, frame: bytes) -> None:
        kinds.append(kind_of(frame))

    with refused(PrivacyError, names="Unpriced"):
        converse(Star.of(TABLES, agreement(), 1), tap=listen, mechanism=UnpricedMechanism())
    assert MaskedGradient in kinds
    assert RevealedGradient not in kinds


# --- keys and ciphertexts that are none -----------------------------------------------------------


def alice_before(kind: type[Message], scheme: str = "clear") -> tuple[ByHand[Any], Any]:
    """Alice, as she waits for a message of Bob's, and that message."""
    chosen = SCHEMES[scheme]
    facts = {} if scheme == "clear" else {"scheme": chosen.name, "key_bits": chosen.key_bits[0]}
    star = Star.of(TABLES, agreement(epochs=1, **facts), 1, chosen)
    side, heard = ByHand("alice", star.alice_program()), converse(star).said_by("bob")
    while not isinstance(heard[0], kind):
        side.feed(heard.pop(0))
    return side, heard[0]


PAILLIER_KEYS = [b"", bytes(64), b"\xff" * 63, b"\x80" + bytes(63), b"\x80" + bytes(62) + b"\x03"]


@pytest.mark.parametrize(
    ("scheme", "key"),
    [
        ("clear", b"key"),
        # Empty, zero, short, even, with a small factor or prime.
        *(("paillier", key) for key in PAILLIER_KEYS),
        *(("bfv", key) for key in (b"", bytes(100), b"\xff" * (2 * 8192 * 24))),
    ],
)
def test_alice_refuses_a_key_that_is_none(scheme, key):
    side, _ = alice_before(KeyOffer, scheme)
    with refused(CryptoError):
        side.feed(KeyOffer(PublicBytes(key)))


@pytest.mark.parametrize("change", ["empty", "zeros", "cut", "longer", "beyond the modulus"])
@pytest.mark.parametrize("scheme", ["paillier", "bfv"])
def test_alice_refuses_ciphertexts_that_are_none(scheme, change):
    if (scheme, change) == ("bfv", "zeros"):
        return  # polynomials of zeros are a ciphertext
    side, due = alice_before(EncryptedResidues, scheme)
    data, length = due.residues.data, due.residues.length
    changed = {
        "empty": b"",
        "zeros": bytes(len(data)),
        "cut": data[:-1],
        "longer": data + b"\0",
        "beyond the modulus": b"\xff" * len(data),
    }
    with refused(CryptoError):
        side.feed(EncryptedResidues(0, EncryptedVector(changed[change], length)))


@pytest.mark.parametrize("largest", [2**20 + 1, -(2**63)])
def test_alice_refuses_residues_beyond_one(largest):
    side, due = alice_before(EncryptedResidues)
    values = np.frombuffer(due.residues.data, dtype="<i8").copy()
    values[-1] = largest
    with refused(CryptoError):
        side.feed(EncryptedResidues(0, EncryptedVector(values.tobytes(), len(values))))


@pytest.mark.parametrize(
    "change",
    [
        lambda values: tuple((v + 2**50) % 2**64 for v in values),
        lambda values: tuple((v - 2**50) % 2**64 for v in values),
        lambda values: (2**64, *values[1:]),
        lambda values: (2**4000, *values[1:]),
    ],
    ids=["above", "below", "modulus", "far-beyond"],
)
def test_alice_refuses_a_gradient_outside_the_capacity(change):
    side, due = alice_before(RevealedGradient)
    with refused(CryptoError):
        side.feed(RevealedGradient(0, Released.unprotected(change(due.gradient.value))))


def test_bob_refuses_features_too_large_for_any_product():
    star = Star.of(TABLES, agreement(), 1)
    hello = converse(star).said_by("alice")[0]
    assert isinstance(hello, Hello)
    with refused(CryptoError):
        ByHand("bob", star.bob_program()).feed(replace(hello, magnitude_bits=40))
