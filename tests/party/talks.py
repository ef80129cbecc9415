"""Little conversations for the runners' tests."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from taciturn.crypto.base import EncryptedVector
from taciturn.protocol.events import Boundary, Progress
from taciturn.protocol.messages import EncryptedResidues, PartialScores
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, emit, receive, send
from taciturn.protocol.steps import gather as together
from taciturn.rng import Entropy

TURNS = 3


def scores(turn: int, *values: float) -> PartialScores:
    return PartialScores(turn, np.array(values))


def residues(turn: int, data: bytes = b"") -> EncryptedResidues:
    return EncryptedResidues(turn, EncryptedVector(data, len(data)))


def alice(entropy: Entropy, turns: int = TURNS) -> Program[float]:
    """Sends a random number each turn, and sums them with what she hears."""
    total = 0.0
    for turn in range(turns):
        drawn = float(entropy.uniform((1,))[0])
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


# --- several Alices ------------------------------------------------------------------------------


def spoke(
    entropy: Entropy, resume: TrainingState | None = None, turns: int = TURNS
) -> Program[list[float]]:
    """An Alice of several: sends a random number each turn; returns the sums that she hears."""
    sums = [] if resume is None else resume.weights.tolist()
    for turn in range(len(sums), turns):
        yield from emit(Boundary(TrainingState(turn, np.array(sums))))
        yield from send(scores(turn, float(entropy.fork(f"turn {turn}").uniform((1,))[0])))
        heard = yield from receive(EncryptedResidues)
        sums.append(struct.unpack("<d", heard.residues.data[:8])[0])
    return sums


def centre(
    entropy: Entropy, peers: Sequence[str], resume: TrainingState | None = None, turns: int = TURNS
) -> Program[list[float]]:
    """Bob: adds up what all send and tells each of them, with some random bytes of his own."""
    sums = [] if resume is None else resume.weights.tolist()
    for turn in range(len(sums), turns):
        yield from emit(Boundary(TrainingState(turn, np.array(sums))))
        numbers = yield from together({peer: _hear(turn) for peer in peers})
        sums.append(sum(numbers.values()))
        fork = entropy.fork(f"turn {turn}")
        answers = {peer: struct.pack("<d", sums[-1]) + fork.token(8) for peer in peers}
        yield from together({peer: send(residues(turn, data)) for peer, data in answers.items()})
    return sums


def _hear(turn: int) -> Program[float]:
    message = yield from receive(PartialScores)
    return float(message.scores[0])
