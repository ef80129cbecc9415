"""What trainings have cost over time: Bob's labels and Alice's columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from taciturn.privacy.statement import Statement
from taciturn.results.serialise import INLINE, Result

if TYPE_CHECKING:
    from taciturn.report.blocks import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerAccount:
    """What one partner was told of one label, over all trainings.

    ``ledger`` has the figures of the row that paid most.
    """

    partner: str
    label: str
    rows: int
    trainings: int
    ledger: Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerResult(Result):
    """What ``taciturn ledger`` shows; ``budget_total`` is the limit over all trainings."""

    kind: ClassVar[str] = "ledger"
    known_by: ClassVar[str] = "accounts"

    file: str
    budget_total: float | None
    accounts: tuple[LedgerAccount, ...]
    version: str

    def blocks(self) -> list[Block]:
        """The result as a terminal shows it."""
        from taciturn.report.ledger import ledger_blocks

        return ledger_blocks(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposedSession:
    """A session of Alice's that opened scores of training rows to a partner.

    ``session`` is its name on Alice's side. ``scores_per_row`` is the most of one training row.
    What was not recorded is None; without ``mechanism``, perhaps no training score was opened.
    """

    partner: str
    session: str
    when: str | None = None
    mechanism: str | None = None
    scores_per_row: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposedModel:
    """A model on Alice's disk whose training opened scores of training rows.

    ``scores_per_row`` is the most of one training row; None where it cannot be computed.
    """

    file: str
    written: str
    session: str
    mechanism: str
    scores_per_row: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastExposure:
    """Past sessions in which Alice's columns were exposed.

    ``exposed_sessions`` come from her consent store, ``exposed_models`` from the model files beside
    the one that her settings name. A session since its mechanism is recorded may stand in both
    lists, which share no name.
    """

    exposed_sessions: tuple[ExposedSession, ...]
    exposed_models: tuple[ExposedModel, ...]

    def __bool__(self) -> bool:
        return bool(self.exposed_sessions or self.exposed_models)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureResult(Result):
    """What ``taciturn ledger`` shows of Alice's file; ``scores_per_row`` is her limit."""

    kind: ClassVar[str] = "ledger-alice"
    known_by: ClassVar[str] = "exposed_sessions"

    file: str
    scores_per_row: int | None
    past: PastExposure = field(metadata=INLINE)
    version: str

    def blocks(self) -> list[Block]:
        """The result as a terminal shows it."""
        from taciturn.report.ledger import exposure_blocks

        return exposure_blocks(self)
