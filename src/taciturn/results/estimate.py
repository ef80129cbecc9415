"""Duration and traffic of a training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from taciturn.results.serialise import Result


@dataclass(frozen=True, slots=True)
class Estimate(Result):
    """Duration and traffic of a training, all parties in one process.

    From the first message to the last: reading the tables, and a simulation's comparison with
    training in one place and with the optimum, come on top.
    """

    kind: ClassVar[str] = "estimate"
    known_by: ClassVar[str] = "iterations"

    iterations: int
    seconds: float
    bytes_to_alice: int
    bytes_to_bob: int
