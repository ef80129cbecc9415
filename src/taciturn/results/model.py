"""What ``taciturn model show`` and ``model list`` say of models' files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from taciturn.results.serialise import OMITTED, Result
from taciturn.results.training import FeatureParty

if TYPE_CHECKING:
    from taciturn.report.blocks import Block


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A column's weight on the prepared scale and for one original unit; None says nothing."""

    column: str
    prepared: float
    original: float | None
    clipped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard(Result):
    """Everything worth knowing about a share; a random share's numbers are not in it.

    Metrics, ledger and agreement stand as the file has them: it may come from anywhere.
    """

    kind: ClassVar[str] = "model-show"
    known_by: ClassVar[str] = "coefficients"

    role: str
    name: str | None = field(default=None, metadata=OMITTED)
    parties: tuple[FeatureParty, ...] | None = field(default=None, metadata=OMITTED)
    weights: str
    holds: str
    coefficients: tuple[Coefficient, ...] | None = field(repr=False)
    intercept: float | None = field(repr=False)
    original_offset: float | None = field(repr=False)
    metrics: Mapping[str, object]
    mechanism: object
    epsilon: object
    ledger: Mapping[str, object]
    rows: int
    agreement: Mapping[str, object]
    study: Mapping[str, object] | None = field(default=None, metadata=OMITTED)
    session: str
    agreement_digest: str
    data_digest: str
    preparation: tuple[str, ...]
    notes: tuple[str, ...]
    taciturn: str


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
    """The model that a party's file names and those of earlier sessions, the newest first."""

    kind: ClassVar[str] = "model-list"
    known_by: ClassVar[str] = "models"

    models: tuple[ListedModel, ...]

    def blocks(self) -> list[Block]:
        """The result as a terminal shows it."""
        from taciturn.report.model import list_blocks

        return list_blocks(self)


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
        """The result as a terminal shows it."""
        from taciturn.report.model import used_blocks

        return used_blocks(self)
