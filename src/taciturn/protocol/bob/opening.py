"""How Bob's trainings open: greetings, his key, the seed of the batches.

Each conversation takes of it what it needs, in this order. Where a training is resumed nothing of
it is said again: the state has it all.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taciturn.crypto.base import SecretKey
from taciturn.privacy.base import Mechanism
from taciturn.protocol.bob.batch_seed import agree_seed
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.handshake import open_training
from taciturn.protocol.messages import KeyOffer, PublicBytes
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, keep, send


def greet(inputs: BobInputs[Mechanism]) -> Program[TrainingState]:
    """The state before the first iteration; it has neither key nor seed yet.

    Raises:
        AgreementError: The two sides do not fit.
    """
    hello = yield from open_training("bob", inputs.terms, inputs.features, peer=inputs.peer)
    weights = np.zeros(len(inputs.features.columns))
    return TrainingState(0, weights, columns=hello.columns, magnitude_bits=hello.magnitude_bits)


def with_key(
    inputs: BobInputs[Mechanism], state: TrainingState
) -> Program[tuple[TrainingState, SecretKey]]:
    """The state with a key for products with Alice's table; a fresh one is on its way to her.

    Raises:
        CryptoError: A resumed state holds no such key.
    """
    scheme, bits = inputs.terms.scheme, inputs.terms.agreement.key_bits
    capacity = inputs.terms.capacity(state.magnitude_bits, inputs.features.rows)
    if inputs.resume is not None:
        return state, scheme.read_secret(state.key, bits, capacity)
    key = scheme.generate(bits, capacity, inputs.entropy.fork("key"))
    # Whatever a scheme draws its keys from: after a stop it is this one.
    kept = yield from keep(key.to_bytes())
    if kept != key.to_bytes():
        key = scheme.read_secret(kept, bits, capacity)
    yield from send(KeyOffer(PublicBytes(key.public.to_bytes())))
    return replace(state, key=key.to_bytes()), key


def with_seed(inputs: BobInputs[Mechanism], state: TrainingState) -> Program[TrainingState]:
    """The state with the seed of the batches."""
    if inputs.resume is not None:
        return state
    return replace(state, seed=(yield from agree_seed(inputs.entropy)))
