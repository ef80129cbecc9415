"""How long a training will take, and how much will cross."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.results.serialise import Result


@dataclass(frozen=True, slots=True)
class Estimate(Result):
    """A forecast for both parties in one process."""

    iterations: int
    seconds: float
    bytes_to_alice: int
    bytes_to_bob: int
