"""Result of ``taciturn check``, before any training."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from taciturn.errors import counted
from taciturn.report.blocks import Block, Facts, Heading, Paragraph, Span, Tone, Words, table
from taciturn.report.formatting import percent, share
from taciturn.report.training import exposure_facts, label_epsilon, outlook_blocks, parties_facts
from taciturn.results.cost_preview import ColumnExposure, Outlook
from taciturn.results.serialise import OMITTED, Result, Subject, record_of
from taciturn.results.training import FeatureParty
from taciturn_audit.results.columns import ColumnRehearsal, rehearsal_blocks

if TYPE_CHECKING:
    from taciturn.results.figures import Part

LEAKS: Final = "leaks"
AT_RISK: Final = "at risk"
CLEAR: Final = "no attack of ours applies"
Level = Literal["leaks", "at risk", "no attack of ours applies"]
RAN = ("simulated: ", "it makes no guess about any row")
"""How ``why`` begins where an attack was run; otherwise it says what the attack lacks."""


@dataclass(frozen=True, slots=True)
class AttackVerdict:
    """Prediction of one attack's success, the reason, and the smallest change that helps."""

    attack: str
    verdict: Level
    why: str
    change: str

    @property
    def ran(self) -> bool:
        """Whether the attack applied to the simulated training, and was run."""
        return self.why.startswith(RAN)

    @property
    def outcome(self) -> str:
        """The verdict in words that tell an attack without success from one that does not apply."""
        if self.verdict != CLEAR:
            return self.verdict
        return "no leak found" if self.ran else "does not apply"


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
    """Recommended mechanism for a need."""

    need: str
    use: str
    why: str


@dataclass(frozen=True, slots=True)
class PredictionNotes:
    """Disclosure by predictions: a note for each side, and one about repeating them."""

    bob: str
    alice: str
    repeated: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult(Result):
    """Predicted success of each attack by Alice, and what to change.

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
    def attacked(self) -> bool:
        """Whether any attack on the labels applied, and so was run."""
        return any(verdict.ran for verdict in self.verdicts)

    @property
    def unprotected(self) -> bool:
        """Whether the ledger is infinite: nothing bounds what Alice learns about a label."""
        return math.isinf(self.facts.label_epsilon_total)

    @property
    def worst(self) -> Level:
        """The worst of the verdicts."""
        return self.verdict

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        caption = "What Alice could learn about the labels from this training"
        return [
            table(VERDICT_HEADINGS, verdict_rows(self.verdicts), caption=caption, words=range(4)),
            Facts(_facts(self.facts)),
            *(Paragraph(f"note: {note}", "warning") for note in (*self.warnings, *self.notes)),
            *_columns(self),
            *([] if self.bob_seat is None else rehearsal_blocks(self.bob_seat)),
            *([] if self.price is None else outlook_blocks(self.price)),
            *_predictions(self),
            *_closing(self),
            *([advice_facts(self)] if self.verdict != CLEAR or self.unprotected else []),
        ]

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


VERDICT_HEADINGS = ("attack", "verdict", "why", "smallest remedy")
_TONES: dict[Level, Tone] = {LEAKS: "bad", AT_RISK: "warning", CLEAR: "muted"}
_CLOSING: dict[Level, str] = {
    LEAKS: "Labels leak: in a simulated training an attack recovered more than guessing does.",
    AT_RISK: "Labels are at risk: in a simulated training an attack did better than guessing.",
    CLEAR: "No attack we know recovers labels. That is not a proof of safety.",
}
_UNTRIED = "No known attack applies to what Alice receives. That is not a proof of safety."
_UNPROTECTED = (
    "Unprotected: nothing bounds what Alice learns. No attack of ours recovered labels in the "
    "simulated training; on other rows one may."
)
_EXPOSED = "Columns leak: an attack reconstructed some of Alice's columns from what Bob receives."


def verdict_rows(verdicts: Iterable[AttackVerdict]) -> list[tuple[str, Span, str, str]]:
    """Rows of a table of attacks; attacks with the same verdict share a row."""
    names: dict[tuple[Span, str, str], list[str]] = {}
    for verdict in verdicts:
        outcome = Span(verdict.outcome, _TONES[verdict.verdict])
        names.setdefault((outcome, verdict.why, verdict.change), []).append(verdict.attack)
    return [
        (", ".join(alike), outcome, why, change) for (outcome, why, change), alike in names.items()
    ]


def advice_facts(result: CheckResult) -> Facts:
    """Recommended replacement of a mechanism that leaks."""
    return Facts(
        {
            f"for {recommendation.need}": f"{recommendation.use}: {recommendation.why}"
            for recommendation in result.recommendations
        }
    )


def prediction_facts(notes: PredictionNotes) -> Facts:
    """Disclosure to each side by predictions with the model."""
    return Facts({"Bob": notes.bob, "Alice": notes.alice, "repeated": notes.repeated})


def _closing(result: CheckResult) -> list[Block]:
    words = [_CLOSING[result.verdict]]
    if result.verdict == CLEAR and result.unprotected:
        words = [_UNPROTECTED]
    elif result.verdict == CLEAR and not result.attacked:
        words = [_UNTRIED]
    if result.bob_seat is not None and result.bob_seat.findings.leaks:
        words.append(_EXPOSED)
    return [Paragraph(word, "strong") for word in words]


def _facts(facts: CheckFacts) -> dict[str, Words]:
    pairs: dict[str, Words] = {
        **parties_facts(facts.parties),
        **_steps(facts),
        "label privacy": f"{label_epsilon(facts.label_epsilon_per_release)} per release, "
        f"{label_epsilon(facts.label_epsilon_total)} in total",
        "upper bound": "none: this epsilon does not limit any attack"
        if math.isinf(facts.label_epsilon_total)
        else f"this epsilon limits any attack to {share(facts.attack_ceiling)} "
        "of labels that are as often 0 as 1",
    }
    if facts.sparsity is not None:
        pairs["sparse recovery"] = (
            f"{facts.true_rows:.1f} of {facts.l_rr:.1f} residues are not zero: "
            f"{facts.sparsity:.2f} per column, recoverable up to about "
            f"{facts.recoverable_sparsity:.2f}"
        )
    return pairs


def _steps(facts: CheckFacts) -> dict[str, Words]:
    condition = "∞" if math.isinf(facts.median_condition) else f"{facts.median_condition:.4g}"
    columns = counted(facts.alice_columns, "column")
    if facts.passes is not None:
        return {
            "passes": f"{facts.passes}, each over all {counted(facts.rows, 'row')} and {columns} "
            f"(condition {condition})"
        }
    return {
        "batches": f"{counted(facts.batch_size, 'row')} against {columns}; "
        f"{percent(facts.full_rank_share, 0)} % of sampled ones have full rank "
        f"(condition {condition}), the last has {facts.last_batch}",
        "stacked epochs": f"{facts.stacked_equations_per_row:.2g} equations per row in "
        f"{counted(facts.epochs, 'epoch')}",
    }


def _columns(result: CheckResult) -> list[Block]:
    exposed = result.columns
    if exposed is None:
        return []
    return [
        Heading("What the training reveals to Bob about Alice's columns:"),
        exposure_facts(exposed),
    ]


def _predictions(result: CheckResult) -> list[Block]:
    if result.prediction is None:
        return []
    heading = Heading("What predictions with the model reveal:")
    return [heading, prediction_facts(result.prediction)]
