"""Runs of a folder in one table: what each was, how good its model is, what it told and cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from taciturn.errors import counted
from taciturn.results.serialise import Result, record_of

if TYPE_CHECKING:
    from taciturn.report.blocks import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Leakage:
    """What the best attack told of labels, beside the best control by the same figure.

    ``labels`` says of which labels: shuffled before training, which only messages can tell, or the
    true ones. ``attack`` is None where none of ours applies, and then its figures are. ``beyond``
    is how far the attack's figure lies beyond the control's; ``shown`` says whether its whole
    interval does.
    """

    labels: Literal["shuffled", "true"]
    figure: Literal["accuracy", "AUC"]
    attack: str | None
    value: float | None
    low: float | None
    high: float | None
    control: str
    known: float
    beyond: float | None
    shown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """One run of a folder, or one of the mechanisms that a run set side by side.

    ``part`` names the mechanism where the folder has several, and is empty otherwise. ``auc`` is of
    the model on held-out rows, with the ends of its 95 % interval where they are known.
    ``label_epsilon`` is the ledger's total. ``verdict`` is what an audit or a check came to, in a
    few words. ``seconds`` and ``bytes`` are of the training, forecast where ``forecast`` says so.
    What a run does not say is None.
    """

    name: str
    path: str
    part: str
    started: str
    kind: str
    private: bool
    version: str
    dataset: str
    mechanism: str | None
    epsilon: float | None
    solver: str | None
    scheme: str | None
    seed: int | None
    seeds: int
    rows: int | None
    held_out_rows: int | None
    auc: float | None
    auc_low: float | None
    auc_high: float | None
    label_epsilon: float | None
    leakage: Leakage | None
    verdict: str | None
    seconds: float | None
    bytes: float | None
    forecast: bool


@dataclass(frozen=True, slots=True)
class UnreadableRun:
    """A result folder that cannot be shown: which file of it, and why."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class RunList(Result):
    """The runs of a folder, and those of them that cannot be shown."""

    kind: ClassVar[str] = "runs-list"
    known_by: ClassVar[str] = "listed"

    folder: str
    listed: tuple[RunEntry, ...] = field(repr=False)
    unreadable: tuple[UnreadableRun, ...] = field(repr=False)

    def blocks(self) -> list[Block]:
        """The result as a terminal shows it."""
        from taciturn.report.runs import list_blocks

        return list_blocks(self)

    def __repr__(self) -> str:
        return f"RunList({self.folder}: {counted(len(self.listed), 'run')})"

    def table_rows(self) -> list[dict[str, Any]]:
        """One row for each run."""
        return [_row(entry) for entry in self.listed]


def _row(entry: RunEntry) -> dict[str, Any]:
    record = record_of(entry)
    leakage = record.pop("leakage") or {}
    return {**record, **{f"leak_{name}": value for name, value in leakage.items()}}
