"""Little conversations for the runners' tests."""

from __future__ import annotations

import numpy as np

from taciturn.crypto.base import EncryptedVector
from taciturn.protocol.events import Progress
from taciturn.protocol.messages import EncryptedResidues, PartialScores
from taciturn.protocol.steps import Program, emit, receive, send
from taciturn.rng import Entropy

TURNS = 3


def scores(turn: int, *values: float) -> PartialScores:
    return PartialScores(turn, np.array(values))


def residues(turn: int, data: bytes = b"") -> EncryptedResidues:
    return EncryptedResidues(turn, EncryptedVector(data, len(data)))


def alice(coins: Entropy, turns: int = TURNS) -> Program[float]:
    """Sends a random number each turn, and sums them with what she hears."""
    total = 0.0
    for turn in range(turns):
        drawn = float(coins.uniform((1,))[0])
        yield from send(scores(turn, drawn))
        heard = yield from receive(EncryptedResidues)
        total += drawn + heard.residues.length
        yield from emit(Progress(turn + 1, turns))
    return total


def bob(turns: int = TURNS) -> Program[int]:
    """Answers each turn with a longer text; returns how many numbers he heard."""
    heard = 0
    for turn in range(turns):
        message = yield from receive(PartialScores)
        heard += len(message.scores)
        yield from send(residues(turn, b"x" * turn))
    return heard
