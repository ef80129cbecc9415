"""Results of auditing bin statistics: at the feature party, and of counts at Bob."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from taciturn.results.run_entry import Leakage
from taciturn.results.serialise import OMITTED, Result, Subject
from taciturn_audit.results.audit import AttackScore, Control, MessageSeen
from taciturn_audit.results.figures import leakage_values

if TYPE_CHECKING:
    from taciturn.report.blocks import Block, Page
    from taciturn.results.figures import Part


@dataclass(frozen=True, slots=True)
class WoeRounding:
    """Counts recovered from statistics with this many decimals; None: not rounded.

    ``statistic`` is ``woe`` or ``rate``. ``totals`` is how many total numbers of ones are possible,
    ``exact`` the share of bins whose count is certain, ``right`` that of bins whose likeliest count
    is right, and ``off`` the largest error of a likeliest count.
    """

    statistic: str
    digits: int | None
    totals: int
    exact: float
    right: float
    off: int


@dataclass(frozen=True, slots=True)
class WoeFineness:
    """Labels that the counts of this many bins determine.

    ``cut`` says how numbers were cut, ``smallest`` how few rows a bin has. ``exact`` is the share
    of counts that follow from the weights; ``attacks`` are judged against the true labels, and
    ``shuffled`` are the same on labels that were shuffled before they were counted, so that columns
    say nothing of them.
    """

    cut: str
    columns: int
    bins: int
    smallest: int
    exact: float
    attacks: tuple[AttackScore, ...]
    shuffled: tuple[AttackScore, ...]
    verdict: str
    shuffled_verdict: str

    @property
    def best(self) -> AttackScore:
        """The attack that uses all columns together."""
        return self.attacks[-1]


@dataclass(frozen=True, slots=True)
class BinsTold:
    """Facts that Bob learns about one column's bins by ``taciturn woe``.

    ``prior`` is the share of rows whose bin he guesses by its size, ``posterior`` the same by the
    row's label too, ``bits`` what the label says of the bin in a row, ``located`` the rows whose
    bin their label settles, and ``excluded`` the bins that a row's label rules out, on average.
    """

    column: str
    bins: int
    prior: float
    posterior: float
    bits: float
    located: int
    excluded: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WoeAudit(Result):
    """Attack by Alice on clear bin statistics, and what ``taciturn woe`` reveals to either side.

    ``messages`` are those that reach Alice in ``taciturn woe``; ``alike`` says whether all but the
    encrypted ones were the same, byte for byte, when the labels were shuffled.
    """

    kind: ClassVar[str] = "audit-woe"
    known_by: ClassVar[str] = "roundings"

    dataset: str
    rows: int
    ones: int
    columns: int
    seed: int | None
    smoothing: float
    digits: int
    min_rows: int
    control: Control
    verdict: str
    roundings: tuple[WoeRounding, ...]
    fineness: tuple[WoeFineness, ...]
    messages: tuple[MessageSeen, ...]
    alike: bool
    bob: tuple[BinsTold, ...]
    notes: tuple[str, ...] = ()
    seconds: float
    version: str | None = field(default=None, metadata=OMITTED)
    command: str | None = field(default=None, metadata=OMITTED)
    audited: str | None = field(default=None, metadata=OMITTED)

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        from taciturn_audit.report.woe import woe_audit_blocks

        return woe_audit_blocks(self)

    def page(self, made: str = "") -> Page:
        """The audit's report."""
        from taciturn_audit.report.woe import woe_audit_page

        return woe_audit_page(self)

    def subject(self) -> Subject:
        """The rows and Alice's columns."""
        return Subject(self.dataset, rows=self.rows, columns={"alice": self.columns})

    def parts(self, bare: Part) -> tuple[Part, ...]:
        """One run, with what counts alone told."""
        cut = self.fineness[0]
        attack = cut.shuffled[-1]
        leakage = Leakage(
            labels="shuffled",
            figure="AUC",
            attack=attack.name,
            value=attack.auc,
            low=attack.auc_low,
            high=attack.auc_high,
            control=self.control.name,
            known=self.control.auc,
            beyond=attack.auc - self.control.auc,
            shown=attack.auc_low > self.control.auc,
        )
        entry = replace(
            bare.entry, mechanism=None, solver=None, leakage=leakage, verdict=self.verdict
        )
        return (replace(bare, entry=entry, values=leakage_values(leakage)),)
