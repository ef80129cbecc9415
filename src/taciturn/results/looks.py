"""What a learner guessed of coins or scores, and the faults that it would have noticed."""

from __future__ import annotations

from dataclasses import dataclass, field

from taciturn.results.serialise import OMITTED


@dataclass(frozen=True, slots=True)
class Look:
    """How many coins, or halves of scores, were guessed from one side of what a party received.

    The ends are those of a 95 % interval.
    """

    name: str
    right: int
    judged: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    noticed: bool


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that was put in on purpose, and whether it was noticed.

    ``size`` is the least that was: bytes, or microseconds; absent where there is none.
    """

    name: str
    words: str
    by: str
    noticed: bool
    size: int | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Separation:
    """Whether Bob can tell single Alices' scores apart from the sum that he is given.

    ``numbers`` counts the answers that there are. A dependence that tells the share ``detectable``
    of the scores of a look is noticed with probability 95 %; where there is none, one is said to be
    noticed with probability ``false_alarm`` at most, over all looks.
    """

    alices: tuple[str, ...]
    numbers: int
    looks: tuple[Look, ...]
    false_alarm: float
    detectable: float
    faults: tuple[Fault, ...]
    noticed: bool
    seconds: float
