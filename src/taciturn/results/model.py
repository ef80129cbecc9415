"""Results of ``taciturn model list`` and ``model use``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from taciturn.results.serialise import OMITTED, Result

if TYPE_CHECKING:
    from taciturn.report.blocks import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A model's file; what is in it is None where it cannot be read, which ``problem`` explains."""

    file: str
    newest: bool
    written: str
    role: str | None = None
    session: str | None = None
    mechanism: str | None = None
    rows: int | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ModelList(Result):
    """A party's model and those of earlier sessions, the newest first; then those of a study."""

    kind: ClassVar[str] = "model-list"
    known_by: ClassVar[str] = "models"

    models: tuple[ListedModel, ...]

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        from taciturn.report.blocks import Paragraph, table
        from taciturn.report.formatting import NONE

        rows = []
        for model in self.models:
            name = f"{model.file} (newest)" if model.newest else model.file
            known = model.session or NONE, model.mechanism or NONE
            count = NONE if model.rows is None else f"{model.rows:,}"
            facts = (NONE, model.problem, NONE) if model.problem is not None else (*known, count)
            rows.append((name, model.written, *facts))
        headings = ("file", "written", "session", "mechanism", "rows")
        shown: list[Block] = [
            table(headings, rows, caption="models, the newest first", words=range(4))
        ]
        if any(Path(model.file).parent.suffix == ".models" for model in self.models):
            shown.append(
                Paragraph(
                    "Of a study: taciturn model use FILE NUMBER takes one into use, on both sides."
                )
            )
        return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedModel(Result):
    """A model of a study that a side has taken into use.

    ``choice_bits`` is the most that naming it can tell, about all labels together, and ``epsilon``
    what that was charged for: both are Bob's.
    """

    kind: ClassVar[str] = "model-use"
    known_by: ClassVar[str] = "values"

    role: str
    model: int
    models: int
    values: Mapping[str, object]
    session: str
    file: str
    choice_bits: float | None = field(default=None, metadata=OMITTED)
    epsilon: float | None = field(default=None, metadata=OMITTED)

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        from taciturn.report.blocks import Facts, Words
        from taciturn.report.formatting import plain
        from taciturn.report.training import label_epsilon

        values = ", ".join(f"{key.replace('_', '-')} {plain(v)}" for key, v in self.values.items())
        facts: dict[str, Words] = {
            "model": f"{self.model} of {self.models}: {values}",
            "file": self.file,
        }
        if self.choice_bits is not None and self.epsilon is not None:
            facts["this tells"] = f"which of them was chosen, at most {self.choice_bits:.1f} bits"
            facts["charged"] = label_epsilon(self.epsilon)
        return [Facts(facts)]
