"""What ``taciturn check`` says before any training."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from taciturn.results.columns import ColumnRehearsal
from taciturn.results.outlook import Outlook
from taciturn.results.serialise import OMITTED, Result, record_of
from taciturn.results.subject import Subject
from taciturn.results.training import FeatureParty

if TYPE_CHECKING:
    from taciturn.report.blocks import Block
    from taciturn.results.parts import Part

LEAKS: Final = "leaks"
AT_RISK: Final = "at risk"
CLEAR: Final = "no attack of ours applies"
Level = Literal["leaks", "at risk", "no attack of ours applies"]


@dataclass(frozen=True, slots=True)
class AttackVerdict:
    """What one attack will be able to do, why, and the smallest change that helps."""

    attack: str
    verdict: Level
    why: str
    change: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFacts:
    """The figures behind the verdicts; ``passes`` is ``newton``'s, the last four ``hybrid``'s.

    A pass of ``newton`` is an epoch of one batch. ``parties`` are the Alices where there are
    several, among whom ``alice_columns`` are divided; the equations are those of one with most.
    """

    rows: int
    rehearsed_rows: int
    alice_columns: int
    parties: tuple[FeatureParty, ...] | None = field(default=None, metadata=OMITTED)
    batch_size: int
    last_batch: int
    epochs: int
    claimed_epsilon_per_release: float
    label_epsilon_per_release: float
    label_epsilon_total: float
    attack_ceiling: float
    full_rank_share: float
    median_condition: float
    stacked_equations_per_row: float
    passes: int | None = field(default=None, metadata=OMITTED)
    l_rr: float | None = field(default=None, metadata=OMITTED)
    true_rows: float | None = field(default=None, metadata=OMITTED)
    sparsity: float | None = field(default=None, metadata=OMITTED)
    recoverable_sparsity: float | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to use for a need."""

    need: str
    use: str
    why: str


@dataclass(frozen=True, slots=True)
class PredictionNotes:
    """What predictions tell: one sentence or two for each side, and one about repeating them."""

    bob: str
    alice: str
    repeated: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnExposure:
    """What Bob can learn of Alice's columns from the scores that are opened to him.

    ``scores_per_row`` is the most of one training row; ``opened_values`` includes held-out rows.
    ``columns_per_score`` is the most columns that a Bob who deviates reads from one score, and
    ``scores_for_all`` how many scores of a row can give him all of its columns.
    """

    scores_per_row: int
    opened_values: int
    columns_per_score: int
    scores_for_all: int
    warning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult(Result):
    """What Alice will be able to do, attack by attack, and what to change.

    ``verdict`` is the worst of the verdicts. ``notes`` say which settings the mechanism ignores.
    ``price`` is there where a party's file was checked, ``bob_seat`` where his seat was asked for.
    """

    kind: ClassVar[str] = "check"
    known_by: ClassVar[str] = "verdicts"

    verdict: Level
    verdicts: tuple[AttackVerdict, ...]
    facts: CheckFacts
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    recommendations: tuple[Recommendation, ...]
    prediction: PredictionNotes | None
    columns: ColumnExposure | None = field(default=None, metadata=OMITTED)
    price: Outlook | None = field(default=None, metadata=OMITTED)
    bob_seat: ColumnRehearsal | None = field(default=None, metadata=OMITTED)

    @property
    def worst(self) -> Level:
        """The worst of the verdicts."""
        return self.verdict

    def blocks(self) -> list[Block]:
        """The result as a terminal shows it."""
        from taciturn.report.check import check_blocks

        return check_blocks(self)

    def table_rows(self) -> list[dict[str, Any]]:
        """One row for each attack."""
        return [record_of(verdict) for verdict in self.verdicts]

    def subject(self) -> Subject:
        """The rows and Alice's columns."""
        return Subject(rows=self.facts.rows, columns={"alice": self.facts.alice_columns})

    def parts(self, bare: Part) -> tuple[Part, ...]:
        """One run, with what it will cost in privacy."""
        facts = self.facts
        entry = replace(
            bare.entry,
            label_epsilon=facts.label_epsilon_total,
            verdict=self.verdict,
            rows=facts.rows,
        )
        values = {
            "ledger/label epsilon, total": facts.label_epsilon_total,
            "ledger/label epsilon, one release": facts.label_epsilon_per_release,
            "ledger/claimed epsilon, one release": facts.claimed_epsilon_per_release,
        }
        return (replace(bare, entry=entry, values=values),)
