"""Several trainings in one session, one after the other: a study.

::

    Alice                                            Bob
      Hello (the study)                         <->  Hello
      each model:
        the training, from its first word to its last (taciturn.protocol.party)

Which models there are, and in which order, both sides know before: nothing that Bob says depends on
how good one of them is. With several Alices Bob greets all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from taciturn.data.tables import FeatureTable
from taciturn.protocol.events import Event
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.messages import Role
from taciturn.protocol.party import PartyResult
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import ONLY, Program, emit
from taciturn.protocol.together import together

Train: TypeAlias = Callable[[TrainingState | None], Program[PartyResult]]
"""Makes the program of one model, from its beginning or from a state."""


@dataclass(frozen=True, slots=True)
class ModelBegun(Event):
    """The training of a model of the study begins; they are counted from 0."""

    number: int


@dataclass(frozen=True, slots=True)
class ModelTrained(Event):
    """A model of the study is trained."""

    number: int
    result: PartyResult = field(repr=False)


@dataclass(frozen=True, slots=True)
class Resumption:
    """The model at which a study is resumed; ``state`` is None where it had yet to begin."""

    number: int = 0
    state: TrainingState | None = None


def compare_studies(
    role: Role, study: str, rows: FeatureTable, peers: Sequence[str] = (ONLY,)
) -> Program[None]:
    """Both sides say which study they mean, on which rows.

    ``study`` is its canonical text, and ``rows`` are the training rows, folds included.
    """
    yield from together({peer: shake_hands(greeting(role, study, rows)) for peer in peers})


def study_program(
    opening: Program[None], models: Sequence[Train], resume: Resumption | None = None
) -> Program[None]:
    """One side's part in a study; each model is handed out when it is trained."""
    if resume is None:
        yield from opening
    at = resume or Resumption()
    for number in range(at.number, len(models)):
        yield from emit(ModelBegun(number))
        state = at.state if number == at.number else None
        result = yield from models[number](state)
        yield from emit(ModelTrained(number, result))
