"""Which pass a message belongs to, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.protocol.events import PartDone
from taciturn.protocol.steps import Program, emit


@dataclass(frozen=True, slots=True)
class Turn:
    """A pass, or a piece of a prediction.

    Args:
        number: Which one.
        passes: How many there are; None where nobody waits to hear how far one is.
    """

    number: int
    passes: int | None = None

    def report(self, half: int, done: int, parts: int) -> Program[None]:
        """Tells how far a pass of several parts is.

        Args:
            half: 0 while the parts of its vector are multiplied, 1 while those of its scores are.
            done: How many parts.
            parts: Of how many.
        """
        # The model's product after the last pass is none of them.
        if parts > 1 and self.passes is not None and self.number < self.passes:
            yield from emit(PartDone(self.number, self.passes, (half + done / parts) / 2))
