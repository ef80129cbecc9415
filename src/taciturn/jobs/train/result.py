"""One side's result of a training, and of a dry run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from taciturn.numerics.convergence import Convergence
from taciturn.numerics.label_metrics import Added, ModelMetrics
from taciturn.numerics.symmetry import Symmetry
from taciturn.numerics.threshold import Threshold
from taciturn.privacy.events import Statement
from taciturn.privacy.quality_release import ToldQuality
from taciturn.results.cost_preview import ColumnExposure, Estimate, Outlook
from taciturn.results.parties import CurvePoint, Identity, PartyFigures
from taciturn.results.serialise import (
    EMPTY,
    INLINE,
    OMITTED,
    Result,
    Subject,
    inline,
    key,
    record_of,
)
from taciturn.results.training import FeatureParty

if TYPE_CHECKING:
    from taciturn.report.blocks import Block
    from taciturn.results.figures import Curve, Part


@dataclass(frozen=True, slots=True)
class PartyMetrics:
    """Metrics of the model; only Bob has them."""

    train: ModelMetrics | None = field(default=None, metadata=OMITTED)
    held_out: ModelMetrics | None = field(default=None, metadata=OMITTED)
    curve: tuple[CurvePoint, ...] | None = field(default=None, metadata=OMITTED)
    threshold: Threshold | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class ColumnImportance:
    """A column of Alice's: its weight, and that times its standard deviation, unsigned."""

    column: str
    weight: float
    importance: float


_KNOWN_CONVERGENCE = inline(
    *("converged", "reason", "diverged", "last_change", "row_change"),
    reason="converged_reason",
    row_change="last_row_change",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyRun(Result):
    """One side's part in a training; metrics, ledger and all that is optional are Bob's.

    ``suspected_wraps`` counts scores in the outer half of their range, where weights are shared.
    ``opened_change`` is the decrease of the training loss in the last pass of ``mutual``, with
    noise, and ``scores_beyond_range`` a lower bound on the number of scores that may lie beyond its
    range; there is neither where it is not opened.
    ``symmetry`` is what Bob's test of the scores of all passes came to, where they are exact.
    ``bob_alone`` has the figures of a model of his columns alone on the held-out rows, and
    ``partner_adds`` what the joint model's AUC has beyond its.
    ``told_quality`` is what Bob told Alice of the model, where that was agreed: both have it.
    ``held_out_unscored`` says why no score of the held-out rows was opened, and which line of
    Alice's file would change it.
    ``importance`` has Alice's columns, the most important first, where she has their weights.
    """

    kind: ClassVar[str] = "party"
    known_by: ClassVar[str] = "run"

    identity: Identity = field(metadata=INLINE)
    model: str
    parties: tuple[FeatureParty, ...] | None = field(default=None, metadata=OMITTED)
    stopped: str | None
    metrics: PartyMetrics
    suspected_wraps: int | None = field(default=None, metadata=OMITTED)
    opened_change: float | None = field(default=None, metadata=OMITTED)
    scores_beyond_range: int | None = field(default=None, metadata=OMITTED)
    symmetry: Symmetry | None = field(default=None, metadata=OMITTED)
    ledger: Statement | None = field(metadata=EMPTY)
    run: PartyFigures
    bob_alone: ModelMetrics | None = field(default=None, metadata=OMITTED)
    partner_adds: Added | None = field(default=None, metadata=OMITTED)
    convergence: Convergence = field(default_factory=Convergence, metadata=_KNOWN_CONVERGENCE)
    told_quality: ToldQuality | None = field(default=None, metadata=OMITTED)
    held_out_unscored: str | None = field(default=None, metadata=OMITTED)
    importance: tuple[ColumnImportance, ...] | None = field(default=None, metadata=OMITTED)
    peer_confirmed: bool | None = field(default=None, metadata=OMITTED)

    @classmethod
    def recognises(cls, record: Mapping[str, Any]) -> bool:
        """Whether a record is of this kind; that of a study has a run too."""
        return "run" in record and "study" not in record

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        from taciturn.jobs.train.report import party_blocks

        return party_blocks(self)

    def subject(self) -> Subject:
        """This side's rows, columns and mechanism."""
        return self.identity.subject()

    def curves(self) -> dict[str, Curve]:
        """Losses by iteration, and on held-out rows the AUC."""
        # Bob's metrics have the held-out figures; the run has what either side sees.
        return _curves(self.metrics.curve or self.run.curve)

    def parts(self, bare: Part) -> tuple[Part, ...]:
        """One run."""
        from taciturn.results import figures as f

        who, took, held_out, ledger = self.identity, self.run, self.metrics.held_out, self.ledger
        entry = replace(
            bare.entry,
            mechanism=who.mechanism,
            scheme=who.scheme,
            **f.auc_values(held_out),
            label_epsilon=None if ledger is None else ledger.label_epsilon_total,
            seconds=took.seconds,
            bytes=float(took.bytes_sent + took.bytes_received),
        )
        sent, received = took.bytes_sent, took.bytes_received
        to_alice, to_bob = (received, sent) if who.role == "alice" else (sent, received)
        alone = None if self.bob_alone is None else record_of(self.bob_alone)
        values = {
            **f.metric_values(held_out, f.HELD_OUT),
            **f.metric_values(self.metrics.train, f.TRAINING),
            **f.reference_values(alone, self.partner_adds, {}),
            **f.ledger_values(ledger),
            **f.cost_values(took.seconds, took.iterations, to_alice, to_bob),
        }
        return (replace(bare, entry=entry, values=values),)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of the tables, as [agreement] may hold them."""

    columns: int = field(metadata=key("alice-columns"))
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun(Result):
    """The two sides met and fit; nothing was trained. Alice learns what Bob will receive."""

    kind: ClassVar[str] = "party-dry-run"
    known_by: ClassVar[str] = "dry_run"

    identity: Identity = field(metadata=INLINE)
    dry_run: Literal[True] = True
    outlook: Outlook = field(metadata=INLINE)
    peer_columns: int
    parties: tuple[FeatureParty, ...] | None = field(default=None, metadata=OMITTED)
    agreement: Sizes
    estimate: Estimate | None
    columns_exposed: ColumnExposure | None = field(default=None, metadata=OMITTED)

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        from taciturn.jobs.train.report import party_blocks

        return party_blocks(self)

    def subject(self) -> Subject:
        """This side's rows, columns and mechanism."""
        return self.identity.subject()

    def parts(self, bare: Part) -> tuple[Part, ...]:
        """One run, whose cost is forecast."""
        from taciturn.results.figures import cost_values, ledger_values

        ledger, cost = self.outlook.ledger, self.estimate
        entry = replace(
            bare.entry,
            mechanism=self.identity.mechanism,
            scheme=self.identity.scheme,
            label_epsilon=None if ledger is None else ledger.label_epsilon_total,
            seconds=None if cost is None else cost.seconds,
            bytes=None if cost is None else float(cost.bytes_to_alice + cost.bytes_to_bob),
            forecast=True,
        )
        values = ledger_values(ledger)
        if cost is not None:
            crossed = (cost.bytes_to_alice, cost.bytes_to_bob)
            values |= cost_values(cost.seconds, cost.iterations, *crossed)
        return (replace(bare, entry=entry, values=values),)


def _curves(points: Iterable[CurvePoint]) -> dict[str, Curve]:
    from taciturn.results.figures import HELD_OUT_AUC, HELD_OUT_LOSS, LOSS

    curves: dict[str, list[tuple[int, float]]] = {}
    for point in points:
        values = {
            LOSS: point.train_loss,
            HELD_OUT_LOSS: point.held_out_loss,
            HELD_OUT_AUC: point.held_out_auc,
        }
        for name, value in values.items():
            if value is not None and not math.isnan(value):
                curves.setdefault(name, []).append((point.iteration, value))
    return {name: tuple(steps) for name, steps in curves.items()}
