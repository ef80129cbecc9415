"""Duration and traffic of a training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from taciturn.results.serialise import Result


@dataclass(frozen=True, slots=True)
class Estimate(Result):
    """Duration and traffic of a training, all parties in one process."""

    kind: ClassVar[str] = "estimate"
    known_by: ClassVar[str] = "iterations"

    iterations: int
    seconds: float
    bytes_to_alice: int
    bytes_to_bob: int
