"""The judge: the one place where a guess meets the truth.

Guarantee: ``accuracy_low`` and ``accuracy_high`` are the exact (Clopper-Pearson) 95 % interval of
the share of rows guessed right, were the rows independent trials of one probability. Rows of one
run share a model, so this is the interval of *this* run's rows; several seeds show how runs differ.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tacit.attacks.base import LabelGuess
from tacit.data.tables import LabelTable
from tacit.errors import ShapeError
from tacit.numerics.intervals import clopper_pearson
from tacit.numerics.metrics import auc


@dataclass(frozen=True, slots=True)
class AttackScore:
    """How right a guess was.

    ``decided`` is the share of all rows that the attack calls certain, ``decided_correct`` the
    share of those that are right (absent where none is).
    """

    name: str
    rows: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    auc: float
    decided: float
    decided_correct: float | None
    seconds: float
    remark: str

    def to_dict(self) -> dict[str, Any]:
        """The score for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ControlScore:
    """What is known without the messages."""

    name: str
    accuracy: float
    auc: float

    def to_dict(self) -> dict[str, Any]:
        """The score for JSON."""
        return asdict(self)


def judge(name: str, guess: LabelGuess, truth: LabelTable, seconds: float = 0.0) -> AttackScore:
    """Compares a guess with the truth.

    Raises:
        ShapeError: They are about different numbers of rows.
    """
    if len(guess.scores) != truth.rows:
        raise ShapeError(f"a guess at {len(guess.scores)} rows where there are {truth.rows} labels")
    right = (guess.scores > 0) == (truth.values == 1)
    low, high = clopper_pearson(int(right.sum()), truth.rows)
    sure = int(guess.certain.sum())
    return AttackScore(
        name=name,
        rows=truth.rows,
        accuracy=float(right.mean()),
        accuracy_low=low,
        accuracy_high=high,
        auc=auc(guess.scores, truth.values),
        decided=sure / truth.rows,
        decided_correct=float(right[guess.certain].mean()) if sure else None,
        seconds=seconds,
        remark=guess.remark,
    )


def prior(truth: LabelTable) -> ControlScore:
    """The best constant guess: what anyone knows who knows which label is the commoner one."""
    share = float(np.mean(truth.values))
    return ControlScore("prior", max(share, 1.0 - share), 0.5)
