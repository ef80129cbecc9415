"""Runs of a folder as blocks: a list, one of them, some side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from string import ascii_uppercase

from taciturn.errors import counted
from taciturn.report import blocks as b
from taciturn.report.shown import result_blocks
from taciturn.report.words import (
    NONE,
    data_size,
    duration,
    epsilon,
    figure,
    interval,
    percent,
    plain,
    printed_date,
    share,
)
from taciturn.results.export import ExportResult
from taciturn.results.folder import ResultFolder
from taciturn.results.manifest import Manifest
from taciturn.results.run_comparison import FigureRow, Form, RunComparison
from taciturn.results.run_list import RunEntry, RunList

LEAK, BEST = "▲", "★"
CHECK = "check"
# More do not fit on a terminal of 100 columns.
_SIDE_BY_SIDE = 4
_GROUPS = {
    "model": "How good the model is",
    "ledger": "What the ledger says",
    "leakage": "What Alice and Bob can tell",
    "cost": "What it took",
}
READING = (
    f"AUC: on held-out rows, with its 95 % interval. Leak: by how many points the best attack lies "
    f"beyond what is known without messages, on labels shuffled before training where there are "
    f"such; {LEAK}: its whole interval does. {NONE}: not audited, or not known to this side. "
    f"~: forecast."
)


def letter(number: int) -> str:
    """The name of a run in a comparison.

    >>> letter(0), letter(25), letter(26)
    ('A', 'Z', 'AA')
    """
    high, low = divmod(number, len(ascii_uppercase))
    return (letter(high - 1) if high else "") + ascii_uppercase[low]


# --- a list -----------------------------------------------------------------------------------


def list_blocks(runs: RunList) -> list[b.Block]:
    """The runs of a folder in a table, for a terminal of 100 columns."""
    if not runs.listed and not runs.unreadable:
        return [b.Paragraph(f"No run in {runs.folder} is of this kind, or there is none.", "muted")]
    headings = ("", "what", "mechanism", "AUC", "label ε", "leak", "cost")
    rows = [(letter(place), *_line(entry)) for place, entry in enumerate(runs.listed)]
    names = {letter(place): _named(entry) for place, entry in enumerate(runs.listed)}
    caption = f"{runs.folder}: {counted(len(runs.listed), 'run')}"
    return [
        b.table(headings, rows, caption=caption, words=(0, 1, 2, 3, 5, 6)),
        b.Facts(names),
        b.Paragraph(READING, "muted"),
        *unreadable_blocks(runs),
    ]


def unreadable_blocks(runs: RunList) -> list[b.Block]:
    """Which folders cannot be shown, and why."""
    return [
        b.Paragraph(f"not shown: {one.file}: {one.reason}", "warning") for one in runs.unreadable
    ]


def _line(entry: RunEntry) -> tuple[b.Words, ...]:
    steps = ", ".join(filter(None, (entry.solver, seed_words(entry))))
    return (
        f"{entry.kind} {entry.dataset}",
        f"{mechanism_name(entry)}{f', {steps}' if steps else ''}",
        _auc(entry),
        epsilon(entry.label_epsilon),
        leak_words(entry, 1),
        _cost(entry),
    )


def _named(entry: RunEntry) -> str:
    """A run's name, with its part and its time, which many names begin with."""
    part = f", {entry.part}" if entry.part else ""
    known = entry.name.startswith(entry.started[:10])
    return f"{entry.name}{part}{'' if known else f' ({printed_date(entry.started)})'}"


def seed_words(entry: RunEntry) -> str:
    """The seed, or how many from the first."""
    if entry.seeds > 1:
        return f"seeds {entry.seed or 0} to {(entry.seed or 0) + entry.seeds - 1}"
    return "" if entry.seed is None else f"seed {entry.seed}"


def mechanism_name(entry: RunEntry) -> str:
    """A mechanism with its epsilon, where it has one."""
    name = entry.mechanism or NONE
    return name if entry.epsilon is None else f"{name} ε{b.NO_BREAK}{entry.epsilon:g}"


def _auc(entry: RunEntry) -> str:
    if entry.auc is None:
        return NONE
    ends = ""
    if entry.auc_low is not None and entry.auc_high is not None:
        ends = f" {percent(max(0.0, entry.auc_low), 1)}–{percent(min(1.0, entry.auc_high), 1)}"
    return f"{share(entry.auc, 1)}{ends}"


def leak_words(entry: RunEntry, digits: int = 2) -> b.Words:
    """How far the best attack lies beyond the control, and which it is; a check has its verdict."""
    leakage = entry.leakage
    if leakage is None:
        return (entry.kind == CHECK and entry.verdict) or NONE
    if leakage.beyond is None:
        return "no attack applies"
    beyond = f"{100 * leakage.beyond:+.{digits}f} {leakage.attack}"
    return (b.Span(LEAK, "bad"), f"{b.NO_BREAK}{beyond}") if leakage.shown else beyond


def _cost(entry: RunEntry) -> str:
    mark = "~" if entry.forecast else ""
    parts = [] if entry.seconds is None else [f"{mark}{duration(entry.seconds)}"]
    parts += [] if entry.bytes is None else [f"{mark}{data_size(entry.bytes)}"]
    return ", ".join(parts) or NONE


# --- one run ----------------------------------------------------------------------------------


def run_blocks(folder: ResultFolder) -> list[b.Block]:
    """What made a run, and what its command printed."""
    return [b.Facts(_made(folder.manifest)), *result_blocks(folder.result)]


def _made(manifest: Manifest) -> dict[str, b.Words]:
    names = [entry.name for entry in manifest.files]
    return {
        "command": manifest.command,
        "made by": f"taciturn {manifest.version}, Python {manifest.host.python}, "
        f"{manifest.host.platform}, {counted(manifest.host.cores, 'core')}",
        "when": f"{printed_date(manifest.started)}, {duration(manifest.seconds)}",
        "files": ", ".join(names),
        **_digests(manifest),
        **(
            {"whose": "a party's own: its figures may depend on labels"} if manifest.private else {}
        ),
    }


def _digests(manifest: Manifest) -> dict[str, str]:
    digests = [f"{name} {digest[:16]}…" for name, digest in manifest.data.digests.items()]
    return {"digest of the data": ", ".join(digests)} if digests else {}


# --- side by side -----------------------------------------------------------------------------


def comparison_blocks(comparison: RunComparison) -> list[b.Block]:
    """Runs side by side, for a terminal of 100 columns."""
    return [
        b.Facts(legend(comparison.sides)),
        *fairness_blocks(comparison),
        *_settings_tables(comparison, _SIDE_BY_SIDE),
        *(table for _, table in figure_tables(comparison, _SIDE_BY_SIDE)),
        b.Paragraph(_NOTE, "muted"),
    ]


_NOTE = (
    f"In brackets: the difference from the first run that has the figure. {BEST}: the best value. "
    "A best value says nothing about chance: look at the intervals."
)


def legend(sides: Sequence[RunEntry]) -> dict[str, b.Words]:
    """What each letter stands for."""
    return {letter(number): side_name(entry) for number, entry in enumerate(sides)}


def side_name(entry: RunEntry) -> str:
    """A run in a line."""
    part = f", {entry.part}" if entry.part else ""
    steps = ", ".join(filter(None, (entry.solver, seed_words(entry))))
    return f"{entry.name}{part}: {entry.kind} of {entry.dataset}, {mechanism_name(entry)}" + (
        f", {steps}" if steps else ""
    )


def fairness_blocks(comparison: RunComparison) -> list[b.Block]:
    """What keeps the figures from being compared."""
    if not comparison.unfair:
        return [b.Paragraph("The runs are of the same data, rows, seed and version.", "muted")]
    return [
        b.Paragraph(f"Not a fair comparison: {sentence}", "warning")
        for sentence in comparison.unfair
    ]


def _settings_tables(
    comparison: RunComparison, width: int, caption: str = "Settings that differ"
) -> Iterator[b.Table]:
    for places in _chunks(len(comparison.sides), width):
        rows = [
            (row.name.replace("_", "-"), *(_value(row.values[place]) for place in places))
            for row in comparison.settings
        ]
        if rows:
            headings = ("setting", *map(letter, places))
            words = range(len(headings))
            yield b.table(headings, rows, caption=caption, label="Settings", words=words)


def settings_tables(comparison: RunComparison) -> list[b.Table]:
    """The settings that differ, all runs in one table, below a title that says so."""
    return list(_settings_tables(comparison, len(comparison.sides), caption=""))


def _value(value: object) -> str:
    if value is None:
        return NONE
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value))
    return plain(value)


def figure_tables(
    comparison: RunComparison, width: int | None = None
) -> Iterator[tuple[str, b.Table]]:
    """The figures of each group, by the group's title.

    Args:
        comparison: The runs.
        width: How many stand side by side; None for all.
    """
    for group, title in _GROUPS.items():
        rows = [row for row in comparison.figures if row.group == group]
        for places in _chunks(len(comparison.sides), width or len(comparison.sides)):
            lines = [(row.name, *(_cell(row, place) for place in places)) for row in rows]
            if lines:
                headings = ("", *map(letter, places))
                yield title, b.table(headings, lines, caption=title, words=range(len(headings)))


def _cell(row: FigureRow, place: int) -> b.Words:
    value, difference = row.values[place], row.differences[place]
    if value is None:
        return NONE
    shown = _SPELLED[row.form](value)
    change = "" if not difference else f" ({_change(row.form, difference)})"
    best: tuple[b.Span, ...] = (b.Span(f"{BEST}{b.NO_BREAK}", "good"),) if row.best[place] else ()
    return (*best, f"{shown}{change}")


_SPELLED = {
    "share": share,
    "number": figure,
    "epsilon": epsilon,
    "count": lambda value: f"{value:,.0f}",
    "seconds": duration,
    "bytes": data_size,
}


def _change(form: Form, difference: float) -> str:
    """A difference, with its sign."""
    sign = "+" if difference > 0 else "−"
    size = abs(difference)
    if form == "share":
        return f"{sign}{percent(size)}"
    return f"{sign}{_SPELLED[form](size)}"


def _chunks(count: int, width: int) -> list[range]:
    return [range(first, min(count, first + width)) for first in range(0, count, max(1, width))]


def interval_of(entry: RunEntry) -> str:
    """The interval of a run's AUC, or nothing."""
    if entry.auc_low is None or entry.auc_high is None or math.isnan(entry.auc_low):
        return NONE
    return interval(entry.auc_low, entry.auc_high)


# --- an export --------------------------------------------------------------------------------


def export_blocks(export: ExportResult) -> list[b.Block]:
    """Which runs were sent, and which were there already."""
    rows = [
        (one.name, one.run_id, "sent" if one.added else "was there already")
        for one in export.exported
    ]
    caption = f"{export.server}, experiment {export.experiment}"
    return [b.table(("run", "MLflow run", ""), rows, caption=caption, words=range(3))]
