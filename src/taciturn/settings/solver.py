"""The agreed solver and its parameters, apart from the L2 penalty."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Literal

from taciturn.settings.checked import Checked, NonNegative, Positive, PositiveInt

SolverName = Literal["sgd", "newton"]
Schedule = Literal["constant", "inverse", "inverse-sqrt"]


class Sgd(Checked):
    """Gradient descent by batches of rows; a round is an epoch."""

    name: ClassVar[SolverName] = "sgd"
    epochs: PositiveInt
    batch_size: PositiveInt
    minimum_batch: PositiveInt = 1
    learning_rate: Positive
    schedule: Schedule = "constant"
    decay: NonNegative = 0.0
    l1: NonNegative = 0.0

    @property
    def rounds(self) -> int:
        """Number of uses of each row."""
        return self.epochs

    def with_rounds(self, rounds: int) -> Sgd:
        """The same solver with another number of epochs."""
        return self.model_copy(update={"epochs": rounds})

    def batch(self, rows: int) -> int:
        """The rows of one iteration."""
        return min(self.batch_size, rows)

    @staticmethod
    def default_l2(rows: int) -> float:
        """No penalty, as in the paper."""
        return 0.0


class Newton(Checked):
    """All rows in every pass, and no step size to choose; a round is a pass."""

    name: ClassVar[SolverName] = "newton"
    l1: ClassVar[float] = 0.0
    passes: PositiveInt

    @property
    def rounds(self) -> int:
        """Number of uses of each row."""
        return self.passes

    def with_rounds(self, rounds: int) -> Newton:
        """The same solver with another number of passes."""
        return self.model_copy(update={"passes": rounds})

    def batch(self, rows: int) -> int:
        """The rows of one iteration: all."""
        return rows

    @staticmethod
    def default_l2(rows: int) -> float:
        """The least that keeps the optimum finite: scikit-learn's C = 1."""
        return 1.0 / rows


Solver = Sgd | Newton
SOLVERS: Mapping[str, type[Sgd] | type[Newton]] = MappingProxyType({"sgd": Sgd, "newton": Newton})
