"""Interface of a label attack: a guess at every label from Alice's view; ``model-only``.

A protocol leaks what an attack learns *beyond* the controls. ``model-only`` is what Alice would
guess from the model she ends up with, were there no messages. The other control, ``prior``, needs
no view and stands with the judge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np

from taciturn.arrays import BoolArray, FloatArray
from taciturn.engine.callbacks import ReportProgress, noop
from taciturn.families.binomial import sigmoid
from taciturn.families.registry import BINOMIAL, FAMILIES
from taciturn.parallel import one_thread
from taciturn.protocol.observations import Signal
from taciturn_audit.views.alice_view import AliceView


@dataclass(frozen=True, slots=True)
class LabelGuess:
    """A guess for each row: label 1 where its score is above 0, the likelier the higher.

    ``signal`` is where the attack has anything to say; elsewhere a control's guess is taken.
    ``certain`` is where it claims to be sure. ``limited``: a limit on its work ended it, and
    without one it might tell more. ``work`` is what its solvers did, in units of about a
    millisecond: counted, never timed, so that a busy machine comes to the same guess. ``values``
    are guessed labels of other families than ``binomial``, NaN where the attack has none.
    """

    scores: FloatArray = field(repr=False)
    signal: BoolArray = field(repr=False)
    certain: BoolArray = field(repr=False)
    remark: str = ""
    limited: bool = False
    work: float = 0.0
    values: FloatArray | None = field(default=None, repr=False)

    def covers(self, rows: int) -> bool:
        """Whether each of ``rows`` rows has a finite score, a signal flag and a certainty flag."""
        return (
            self.scores.shape == self.signal.shape == self.certain.shape == (rows,)
            and self.signal.dtype == self.certain.dtype == np.bool_
            and bool(np.isfinite(self.scores).all())
        )

    def completed(self, fallback: LabelGuess) -> LabelGuess:
        """This guess, with ``fallback``'s scores where it has no signal."""
        scores = np.where(self.signal, self.scores, fallback.scores)
        return replace(self, scores=scores)


class Attack(ABC):
    """Base class of attacks, which run on one thread of linear algebra.

    ``name`` is that of tables and JSON, ``reference`` where the attack comes from, and ``needs``
    what the view must hold for it to apply. ``families`` are those of labels that it guesses.
    """

    name: str
    reference: str
    needs: frozenset[Signal]
    families: tuple[str, ...] = (BINOMIAL,)

    def obstacle(self, view: AliceView) -> str:
        """Reason why the attack does not apply to a view with all its inputs; empty if it does."""
        return ""

    def lacks(self, view: AliceView) -> str:
        """Reason why the attack does not apply to a view; empty if it does."""
        if view.agreement.family not in self.families:
            return f"it does not apply to {view.agreement.family} labels"
        missing = ", ".join(sorted(signal.value for signal in self.needs - view.signals))
        return f"Alice does not have {missing}" if missing else self.obstacle(view)

    def infer(self, view: AliceView, progress: ReportProgress = noop) -> LabelGuess:
        """A guess at every label; it never sees one."""
        with one_thread():
            return self._guess(view, progress)

    @abstractmethod
    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        """The attack itself."""


class ModelOnlyControl(Attack):
    """Control that applies Alice's part of the trained model to her rows."""

    name = "model-only"
    reference = "control"
    families = tuple(FAMILIES)
    needs = frozenset({Signal.FEATURES, Signal.WEIGHTS})

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        scores = sigmoid(view.features.values @ view.observations.weights) - 0.5
        everywhere = np.ones(len(scores), dtype=bool)
        return LabelGuess(scores, everywhere, ~everywhere)


def about_labels(guess: LabelGuess, view: AliceView) -> LabelGuess:
    """The guess as one at the true labels: certain of none, where labels were flipped.

    Under ``label-rr`` and its like the equations speak of labels that were flipped at random before
    anything else was done with them. An attack may recover each of them, with a proof; the true
    label is the same with probability ``e^eps / (1 + e^eps)``, and no computation improves on that.
    """
    flips = view.mechanism.label_flips
    if flips is None:
        return guess
    sure = int(np.count_nonzero(guess.certain))
    proven = f"{sure} flipped labels proven" if sure else "flipped labels guessed"
    worth = f"{proven}: such a label is the true one with probability {flips.keep:.4f}"
    remark = f"{guess.remark}; {worth}" if guess.remark else worth
    return replace(guess, certain=np.zeros(len(guess.certain), dtype=bool), remark=remark)
