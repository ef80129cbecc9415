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
from taciturn_audit.views.alice_view import AliceView


@dataclass(frozen=True, slots=True)
class LabelGuess:
    """A guess for each row.

    Args:
        scores: Higher means label 1 more likely; above 0 the guess is 1.
        signal: Where the attack has anything to say; elsewhere a control's guess is taken.
        certain: Where it claims to be sure.
        remark: One sentence about how it went.
        limited: A limit on its work ended it; without one it might tell more.
        work: What its solvers did, in units of about a millisecond: counted, never timed, so that
            a busy machine comes to the same guess.
    """

    scores: FloatArray = field(repr=False)
    signal: BoolArray = field(repr=False)
    certain: BoolArray = field(repr=False)
    remark: str = ""
    limited: bool = False
    work: float = 0.0

    def covers(self, rows: int) -> bool:
        """Whether each of so many rows has a finite score, and is or is not certain."""
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
    """One way to guess."""

    @property
    def name(self) -> str:
        """The name in tables and JSON."""
        ...

    @property
    def reference(self) -> str:
        """Where it comes from."""
        ...

    @property
    def needs(self) -> frozenset[Signal]:
        """What the view must hold for it to apply."""
        ...

    def obstacle(self, view: AliceView) -> str:
        """Why it does not apply although the view has all that it needs; empty where it does."""
        ...

    def infer(self, view: AliceView, progress: ReportProgress = quietly) -> LabelGuess:
        """A guess at every label; it never sees one."""
        ...


class Attack(ABC):
    """What attacks have in common: one way in, and most often nothing that stands in it.

    Attributes:
        name: In tables and JSON.
        reference: Where it comes from.
        needs: What the view must hold for it to apply.
    """

    name: str
    reference: str
    needs: frozenset[Signal]

    def obstacle(self, view: AliceView) -> str:
        """Nothing."""
        return ""

    def infer(self, view: AliceView, progress: ReportProgress = quietly) -> LabelGuess:
        """A guess at every label, made on one thread of linear algebra."""
        with one_thread():
            return self._guess(view, progress)

    @abstractmethod
    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        """The attack itself."""
