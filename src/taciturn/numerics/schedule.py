"""The learning rate as a function of the iteration: public, and never a function of labels.

::

    constant       initial
    inverse        initial / (1 + decay t)
    inverse-sqrt   initial / sqrt(1 + decay t)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from taciturn.errors import ConfigError, nearest

Schedule: TypeAlias = Literal["constant", "inverse", "inverse-sqrt"]
SCHEDULES: tuple[str, ...] = get_args(Schedule)


@dataclass(frozen=True, slots=True)
class LearningRate:
    """A learning rate that may shrink as training goes on.

    >>> rate = LearningRate(0.5, "inverse", decay=1.0)
    >>> [rate.at(iteration) for iteration in (0, 1, 3)]
    [0.5, 0.25, 0.125]
    """

    initial: float
    schedule: Schedule = "constant"
    decay: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.initial) and self.initial > 0):
            raise ConfigError(
                f"the learning rate is {self.initial}",
                setting="learning_rate",
                hint="use a number above 0",
            )
        if self.schedule not in SCHEDULES:
            raise ConfigError(
                f"no learning-rate schedule is called {self.schedule!r}",
                setting="schedule",
                hint=nearest(str(self.schedule), SCHEDULES),
            )
        if not (math.isfinite(self.decay) and self.decay >= 0):
            raise ConfigError(f"the decay is {self.decay}", setting="decay", hint="use 0 or more")

    def at(self, iteration: int) -> float:
        """The rate of one iteration, counted from 0 over the whole run.

        >>> LearningRate(0.5, "inverse-sqrt", decay=1.0).at(3)
        0.25
        """
        if iteration < 0:
            raise ValueError("iterations count from 0")
        if self.schedule == "constant":
            return self.initial
        slowdown = 1.0 + self.decay * iteration
        return self.initial / (slowdown if self.schedule == "inverse" else math.sqrt(slowdown))
