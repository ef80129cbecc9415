"""Runs of a folder in one table: what each was, how good its model is, what it told and cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, ClassVar

from taciturn.errors import counted
from taciturn.report import blocks as b
from taciturn.report.formatting import (
    NONE,
    data_size,
    duration,
    epsilon,
    percent,
    printed_date,
    share,
)
from taciturn.results.run_entry import RunEntry
from taciturn.results.serialise import Result, record_of

if TYPE_CHECKING:
    from taciturn.report.blocks import Block


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
        """Report blocks for the terminal."""
        if not self.listed and not self.unreadable:
            return [b.Paragraph(f"There is no such run in {self.folder}.", "muted")]
        headings = ("", "run", "mechanism", "AUC", "label ε", "leak", "cost")
        rows = [(_letter(place), *_line(entry)) for place, entry in enumerate(self.listed)]
        names = {_letter(place): _named(entry) for place, entry in enumerate(self.listed)}
        unreadable = [
            b.Paragraph(f"not shown: {folder.file}: {folder.reason}", "warning")
            for folder in self.unreadable
        ]
        caption = f"{self.folder}: {counted(len(self.listed), 'run')}"
        return [
            b.table(headings, rows, caption=caption, words=(0, 1, 2, 3, 5, 6)),
            b.Facts(names),
            b.Paragraph(READING, "muted"),
            *unreadable,
        ]

    def __repr__(self) -> str:
        return f"RunList({self.folder}: {counted(len(self.listed), 'run')})"

    def table_rows(self) -> list[dict[str, Any]]:
        """One row for each run."""
        return [_row(entry) for entry in self.listed]


def _row(entry: RunEntry) -> dict[str, Any]:
    record = record_of(entry)
    leakage = record.pop("leakage") or {}
    return {**record, **{f"leak_{name}": value for name, value in leakage.items()}}


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """A run on an MLflow server; ``added`` is false where it was there already."""

    name: str
    run_id: str
    added: bool


@dataclass(frozen=True, slots=True)
class ExportResult(Result):
    """Runs sent to an MLflow server, and their experiment."""

    kind: ClassVar[str] = "runs-export"
    known_by: ClassVar[str] = "exported"

    server: str
    experiment: str
    exported: tuple[ExportedRun, ...]

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        rows = [
            (run.name, run.run_id, "sent" if run.added else "was there already")
            for run in self.exported
        ]
        caption = f"{self.server}, experiment {self.experiment}"
        blocks: list[Block] = [
            b.table(("run", "MLflow run", ""), rows, caption=caption, words=range(3))
        ]
        if "://" not in self.server or self.server.startswith("file:"):
            blocks.append(b.Paragraph(b.coded(_FOLDER_OF_MLFLOW)))
        return blocks


_FOLDER_OF_MLFLOW = (
    "MLflow 3 reads this folder only with MLFLOW_ALLOW_FILE_STORE=true in its environment; a "
    "server or sqlite:///FILE needs no such line."
)
LEAK = "▲"
CHECK = "check"
READING = (
    f"AUC: on held-out rows, with its 95 % interval. Leak: how many points the best attack scores "
    f"above the baseline without messages, on the run with shuffled labels where there is one; "
    f"{LEAK}: its whole interval lies above. {NONE}: not audited, or not known to this side. "
    f"~: forecast."
)


def _letter(number: int) -> str:
    """The letter of a run in a list.

    >>> _letter(0), _letter(25), _letter(26)
    ('A', 'Z', 'AA')
    """
    high, low = divmod(number, len(ascii_uppercase))
    return (_letter(high - 1) if high else "") + ascii_uppercase[low]


def _line(entry: RunEntry) -> tuple[b.Words, ...]:
    steps = ", ".join(filter(None, (entry.solver, _seed(entry))))
    return (
        f"{entry.kind} {entry.dataset}",
        f"{_mechanism(entry)}{f', {steps}' if steps else ''}",
        _auc(entry),
        epsilon(entry.label_epsilon),
        _leak(entry),
        _cost(entry),
    )


def _named(entry: RunEntry) -> str:
    part = f", {entry.part}" if entry.part else ""
    known = entry.name.startswith(entry.started[:10])
    return f"{entry.name}{part}{'' if known else f' ({printed_date(entry.started)})'}"


def _seed(entry: RunEntry) -> str:
    if entry.seeds > 1:
        return f"seeds {entry.seed or 0} to {(entry.seed or 0) + entry.seeds - 1}"
    return "" if entry.seed is None else f"seed {entry.seed}"


def _mechanism(entry: RunEntry) -> str:
    name = entry.mechanism or NONE
    return name if entry.epsilon is None else f"{name} ε{b.NO_BREAK}{entry.epsilon:g}"


def _auc(entry: RunEntry) -> str:
    if entry.auc is None:
        return NONE
    ends = ""
    if entry.auc_low is not None and entry.auc_high is not None:
        ends = f" {percent(max(0.0, entry.auc_low), 1)}–{percent(min(1.0, entry.auc_high), 1)}"
    return f"{share(entry.auc, 1)}{ends}"


def _leak(entry: RunEntry) -> b.Words:
    leakage = entry.leakage
    if leakage is None:
        return (entry.kind == CHECK and entry.verdict) or NONE
    if leakage.beyond is None:
        return "no attack applies"
    beyond = f"{100 * leakage.beyond:+.1f} {leakage.attack}"
    return (b.Span(LEAK, "bad"), f"{b.NO_BREAK}{beyond}") if leakage.shown else beyond


def _cost(entry: RunEntry) -> str:
    mark = "~" if entry.forecast else ""
    parts = [] if entry.seconds is None else [f"{mark}{duration(entry.seconds)}"]
    parts += [] if entry.bytes is None else [f"{mark}{data_size(entry.bytes)}"]
    return ", ".join(parts) or NONE
