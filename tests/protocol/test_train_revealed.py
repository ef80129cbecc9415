"""Training with the revealed gradient: what Alice sees, what is charged, malformed ciphertexts.

What every conversation promises is in ``test_conversations.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from taciturn.crypto.base import EncryptedVector
from taciturn.errors import CryptoError, PrivacyError
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.logistic import residue
from taciturn.privacy.base import MaskedProduct, Released
from taciturn.privacy.events import PrivacyEvent
from taciturn.privacy.unprotected import Unprotected
from taciturn.protocol.codec import kind_of
from taciturn.protocol.messages import (
    EncryptedResidues,
    Hello,
    MaskedGradient,
    Message,
    RevealedGradient,
    Role,
)
from taciturn.protocol.observations import GradientSeen
from taciturn.rng import Entropy
from tests.expected import refused
from tests.protocol.parties import ByHand, Tables, agreement, plan_of
from tests.protocol.stars import Star, converse

TABLES = Tables.make(alice=3, bob=2)


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


def alice_before(kind: type[Message]) -> tuple[ByHand[Any], Any]:
    """Alice, as she waits for a message of Bob's, and that message."""
    star = Star.of(TABLES, agreement(epochs=1), 1)
    side, heard = ByHand("alice", star.alice_program()), converse(star).said_by("bob")
    while not isinstance(heard[0], kind):
        side.feed(heard.pop(0))
    return side, heard[0]


@pytest.mark.parametrize("largest", [2**20 + 1, -(2**63)])
def test_alice_refuses_residues_beyond_one(largest):
    side, due = alice_before(EncryptedResidues)
    values = np.frombuffer(due.residues.data, dtype="<i8").copy()
    values[-1] = largest
    with refused(CryptoError):
        side.feed(EncryptedResidues(0, EncryptedVector(values.tobytes(), len(values))))


def test_bob_refuses_features_too_large_for_any_product():
    star = Star.of(TABLES, agreement(), 1)
    hello = converse(star).said_by("alice")[0]
    assert isinstance(hello, Hello)
    with refused(CryptoError):
        ByHand("bob", star.bob_program()).feed(replace(hello, magnitude_bits=40))
