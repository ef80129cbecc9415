"""What an attack is: a guess at every label, from Alice's view alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from taciturn.arrays import BoolArray, FloatArray
from taciturn.engine.callbacks import ReportProgress, quietly
from taciturn.parallel import one_thread
from taciturn.protocol.observations import Signal
from taciturn.view.alice_view import AliceView


@dataclass(frozen=True, slots=True)
class LabelGuess:
    """A guess for each row.

    A higher score makes label 1 more likely; above 0 the guess is 1. Rows without ``signal`` take a
    control's guess. ``limited``: a limit on work ended the attack. ``work`` is counted in units of
    about a millisecond, never timed, so that a busy machine comes to the same guess.
    """

    scores: FloatArray = field(repr=False)
    signal: BoolArray = field(repr=False)
    certain: BoolArray = field(repr=False)
    remark: str = ""
    limited: bool = False
    work: float = 0.0

    def covers(self, rows: int) -> bool:
        """Whether every row has a finite score, a signal and a certainty."""
        return (
            self.scores.shape == self.signal.shape == self.certain.shape == (rows,)
            and self.signal.dtype == self.certain.dtype == np.bool_
            and bool(np.isfinite(self.scores).all())
        )

    def completed(self, fallback: LabelGuess) -> LabelGuess:
        """This guess, with ``fallback``'s where it has no signal."""
        scores = np.where(self.signal, self.scores, fallback.scores)
        return replace(self, scores=scores)


class LabelAttack(Protocol):
    """An attack on the labels, as an audit runs it."""

    @property
    def name(self) -> str:
        """The name in tables and JSON."""
        ...

    @property
    def reference(self) -> str:
        """The publication or method that it implements."""
        ...

    @property
    def needs(self) -> frozenset[Signal]:
        """The signals that the view must hold."""
        ...

    def obstacle(self, view: AliceView) -> str:
        """Why it does not apply to a view that holds its signals; empty where it does."""
        ...

    def infer(self, view: AliceView, progress: ReportProgress = quietly) -> LabelGuess:
        """A guess at every label."""
        ...


class Attack(ABC):
    """Base class of attacks, with no obstacle by default."""

    name: str
    reference: str
    needs: frozenset[Signal]

    def obstacle(self, view: AliceView) -> str:
        """Empty: the attack applies."""
        return ""

    def infer(self, view: AliceView, progress: ReportProgress = quietly) -> LabelGuess:
        """A guess at every label, made on one thread of linear algebra."""
        with one_thread():
            return self._guess(view, progress)

    @abstractmethod
    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        """The attack itself."""
