"""Results of ``taciturn ledger``: what past trainings cost, at Bob and at Alice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from taciturn.errors import counted
from taciturn.privacy.openings import SCORE_NOISE, bits_text
from taciturn.privacy.row_noise import SCORE_NOISE_BITS, RowSumKind, row_noise
from taciturn.report.blocks import Block, Facts, Heading, Paragraph, Span, Words, table
from taciturn.report.formatting import printed_date
from taciturn.report.training import label_epsilon
from taciturn.results.cost_preview import (
    LabelStopsAccount,
    LedgerAccount,
    OpenedSums,
    PastExposure,
    ScoreAccount,
)
from taciturn.results.serialise import INLINE, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerResult(Result):
    """Result of ``taciturn ledger``; ``budget_total`` is the limit over all trainings."""

    kind: ClassVar[str] = "ledger"
    known_by: ClassVar[str] = "accounts"

    file: str
    budget_total: float | None
    accounts: tuple[LedgerAccount, ...]
    label_stops: tuple[LabelStopsAccount, ...] = ()
    version: str

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        limit = self.budget_total
        facts = {
            "file": self.file,
            "limit": "none is set (budget-total)"
            if limit is None
            else f"epsilon {limit:g} in total",
        }
        blocks: list[Block] = [Facts(facts)]
        if self.accounts:
            blocks.append(table(_HEADINGS, map(_line, self.accounts), label="Accounts"))
        else:
            blocks.append(Paragraph(_EMPTY))
        if self.label_stops:
            stops = ((one.partner, f"{one.stops:,}", f"{one.in_all:,}") for one in self.label_stops)
            blocks.append(table(_STOPS, stops, label="Stops because of labels, by partner"))
        return blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureResult(Result):
    """Result of ``taciturn ledger`` on Alice's file, with the limits that it sets."""

    kind: ClassVar[str] = "ledger-alice"
    known_by: ClassVar[str] = "exposed_sessions"

    file: str
    scores_per_row: int | None
    trainings_per_row: int | None = None
    row_accounts: tuple[ScoreAccount, ...] = ()
    past: PastExposure = field(metadata=INLINE)
    version: str

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        models, trainings = self.scores_per_row, self.trainings_per_row
        facts = {
            "file": self.file,
            "models that score a row": "no limit is set (scores-per-row); in mutual a quarter of "
            "the columns, at least 2"
            if models is None
            else f"at most {models:,}",
            "trainings of a row": "no limit is set (trainings-per-row)"
            if trainings is None
            else f"at most {trainings:,}",
        }
        accounts = (
            (
                one.partner,
                *map("{:,}".format, (one.rows, one.models, one.repetitions, one.trainings)),
            )
            for one in self.row_accounts
        )
        blocks: list[Block] = [Facts(facts)]
        if self.row_accounts:
            blocks.append(table(_OPENED, accounts, label="Most of one row, by partner"))
            blocks += [Facts(_sums_facts(account)) for account in self.row_accounts]
        return [*blocks, *(past_blocks(self.past) or [Paragraph(_UNEXPOSED)])]


def _sums_facts(account: ScoreAccount) -> dict[str, Words]:
    """What trainings with ``mutual`` opened of a row to one partner at most, with its noise."""
    scores = account.rows * (account.models + account.repetitions)
    facts: dict[str, Words] = {"partner": account.partner}
    if scores:
        facts["scores"] = (
            f"noise of at most 2^-{SCORE_NOISE_BITS} each, which hides the error of encryption to "
            f"within {SCORE_NOISE.distance_text(scores)}"
        )
    facts |= {
        f"{kind}, in mutual": text
        for kind in _SUM_KINDS
        if (text := _sums_text(kind, account.sums))
    }
    if account.unrecorded:
        sessions = counted(account.unrecorded, "session")
        facts["sums, in mutual"] = f"not recorded for {sessions} of an earlier release"
    elif account.trainings and not account.sums:
        facts["sums, in mutual"] = "none was opened"
    return facts


_SUM_KINDS: tuple[RowSumKind, ...] = ("change of the loss", "count of scores", "study sum")


def _sums_text(kind: RowSumKind, opened: Sequence[OpenedSums]) -> str:
    """Number of sums of a kind, the noise of the most telling one, and the bits of all of them."""
    noises = [
        (row_noise(kind, sums.rows, sums.passes), sums.numbers)
        for sums in opened
        if sums.kind == kind
    ]
    if not noises:
        return ""
    bits = sum(noise.bits(noise.moved.chosen, numbers) for noise, numbers in noises)
    most, _ = max(noises, key=lambda entry: entry[0].bits(entry[0].moved.chosen))
    numbers = counted(sum(numbers for _, numbers in noises), "number")
    return f"{numbers}; {most.width_text}; {most.moved_text}; all together {bits_text(bits)}"


_EMPTY = "No training was charged yet."
_STOPS = ("partner", "stops since the last --begin-anyway", "stops in all")
_UNEXPOSED = "No past session that opened training scores is known."
_EXPOSED: Words = (
    Span("Columns were exposed.", "bad"),
    " From the scores of these sessions the partner can reconstruct this side's columns; where the "
    "mechanism is not recorded, unless it was mutual.",
)
_OPENED = ("partner", "rows", "models that scored a row", "repeated scores", "trainings of a row")
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
                exposed_session.partner,
                _UNKNOWN if exposed_session.when is None else printed_date(exposed_session.when),
                exposed_session.mechanism or _UNKNOWN,
                _count(exposed_session.scores_per_row),
                exposed_session.session[:8],
            )
            for exposed_session in past.exposed_sessions
        ]
        headings = ("partner", "when", "mechanism", "scores of a row", "session")
        blocks.append(
            table(headings, rows, words=(0, 1, 2, 4), label="Sessions by the consent store")
        )
    if past.exposed_models:
        files = [
            (
                exposed_model.file,
                printed_date(exposed_model.written),
                exposed_model.mechanism,
                _count(exposed_model.scores_per_row),
            )
            for exposed_model in past.exposed_models
        ]
        blocks.append(table(_MODELS, files, words=(0, 1, 2), label="Sessions by model files"))
    return blocks


def _count(scores: int | None) -> str:
    return _UNKNOWN if scores is None else f"up to {scores:,}"
