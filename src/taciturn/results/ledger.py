"""What trainings have cost over time: Bob's labels and Alice's columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from taciturn.report.blocks import Block, Facts, Heading, Paragraph, Span, Words, table
from taciturn.report.training import label_epsilon
from taciturn.report.words import printed_date
from taciturn.results.outlook import LedgerAccount, PastExposure
from taciturn.results.serialise import INLINE, Result


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
        limit = self.budget_total
        facts = {
            "file": self.file,
            "limit": "none is set (budget-total)" if limit is None else f"epsilon {limit:g} in all",
        }
        if not self.accounts:
            return [Facts(facts), Paragraph(_EMPTY)]
        return [Facts(facts), table(_HEADINGS, map(_line, self.accounts), label="Accounts")]


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
        limit = self.scores_per_row
        facts = {
            "file": self.file,
            "limit": "none is set (scores-per-row)"
            if limit is None
            else f"{limit:,} scores of a row",
        }
        return [Facts(facts), *(past_blocks(self.past) or [Paragraph(_UNEXPOSED)])]


_EMPTY = "No training was charged yet."
_UNEXPOSED = "No past session that opened training scores is known."
_EXPOSED: Words = (
    Span("Columns were exposed.", "bad"),
    " From the scores of these sessions the partner can reconstruct this side's columns; where the "
    "mechanism is not recorded, unless it was mutual.",
)
_UNKNOWN = "not recorded"
_MODELS = ("model file", "written", "mechanism", "scores of a row")
_HEADINGS = ("partner", "label", "rows", "trainings", "label epsilon, total", "total at delta")


def _line(account: LedgerAccount) -> tuple[str, ...]:
    ledger = account.ledger
    return (
        account.partner,
        account.label,
        f"{account.rows:,}",
        f"{account.trainings:,}",
        label_epsilon(ledger.label_epsilon_total),
        f"{label_epsilon(ledger.label_epsilon_total_delta)} ({ledger.delta:g})",
    )


def past_blocks(past: PastExposure) -> list[Block]:
    """The past sessions; nothing where there are none."""
    blocks: list[Block] = []
    if past:
        blocks += [Heading("Past sessions that opened training scores:"), Paragraph(_EXPOSED)]
    if past.exposed_sessions:
        rows = [
            (
                one.partner,
                _UNKNOWN if one.when is None else printed_date(one.when),
                one.mechanism or _UNKNOWN,
                _count(one.scores_per_row),
                one.session[:8],
            )
            for one in past.exposed_sessions
        ]
        headings = ("partner", "when", "mechanism", "scores of a row", "session")
        blocks.append(
            table(headings, rows, words=(0, 1, 2, 4), label="Sessions by the consent store")
        )
    if past.exposed_models:
        files = [
            (one.file, printed_date(one.written), one.mechanism, _count(one.scores_per_row))
            for one in past.exposed_models
        ]
        blocks.append(table(_MODELS, files, words=(0, 1, 2), label="Sessions by model files"))
    return blocks


def _count(scores: int | None) -> str:
    return _UNKNOWN if scores is None else f"up to {scores:,}"
