"""What a side keeps of a study's models until all are trained: for its journal."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from taciturn.results.serialise import read, record_of
from taciturn.results.study import StudyRun


@dataclass(frozen=True, slots=True)
class Trained:
    """What is kept of a model of the study until its end.

    ``scores`` are those of the rows that judge it, as a shelf keeps them; None at Alice. ``losses``
    has the training loss of each pass, ``wraps`` how many scores may have wrapped.
    """

    number: int
    scores: Any = field(default=None, repr=False)
    losses: tuple[float, ...] = field(default=(), repr=False)
    wraps: int | None = None

    def to_json(self) -> dict[str, Any]:
        """For the journal."""
        return {
            "number": self.number,
            "scores": self.scores,
            "losses": list(self.losses),
            "wraps": self.wraps,
        }

    @classmethod
    def of_json(cls, values: dict[str, Any]) -> Trained:
        """Reads it back."""
        losses = tuple(map(float, values["losses"]))
        return cls(int(values["number"]), values["scores"], losses, values["wraps"])


@dataclass(frozen=True, slots=True)
class StudyEnded:
    """A study after its last message, for the journal; ``trained`` is yet to be assessed."""

    run: StudyRun
    trained: tuple[Trained, ...] = ()
    session: str = ""
    assessed: bool = True

    def to_bytes(self) -> bytes:
        """The record."""
        trained = [one.to_json() for one in self.trained]
        rest = {"session": self.session, "assessed": self.assessed}
        return json.dumps({"run": record_of(self.run), "trained": trained, **rest}).encode()

    @classmethod
    def of_bytes(cls, data: bytes) -> StudyEnded:
        """Reads it back."""
        values = json.loads(data)
        trained = tuple(map(Trained.of_json, values["trained"]))
        return cls(read(StudyRun, values["run"]), trained, values["session"], values["assessed"])
