"""Which pass a message belongs to, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.protocol.events import PartDone
from taciturn.protocol.steps import Program, emit


@dataclass(frozen=True, slots=True)
class StepProgress:
    """A pass, or a piece of a prediction; ``passes`` is None where progress is not reported."""

    number: int
    passes: int | None = None

    def report(self, half: int, done: int, parts: int) -> Program[None]:
        """Reports the progress of a pass: ``done`` of ``parts`` parts of one ``half``.

        Half 0 multiplies the parts of its vector, half 1 those of its scores.
        """
        # The model's product after the last pass is none of them.
        if parts > 1 and self.passes is not None and self.number < self.passes:
            yield from emit(PartDone(self.number, self.passes, (half + done / parts) / 2))
