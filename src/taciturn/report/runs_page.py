"""Several runs as one page: the table, pictures, settings that differ, every figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from taciturn.errors import counted
from taciturn.report import blocks as b
from taciturn.report.run_plots import (
    NO_MECHANISM,
    Bar,
    Spot,
    bars_svg,
    curves_svg,
    epsilon_svg,
    leakage_svg,
    looks_of,
    spots_of,
)
from taciturn.report.runs import (
    BEST,
    LEAK,
    READING,
    figure_tables,
    interval_of,
    leak_words,
    letter,
    mechanism_name,
    seed_words,
    settings_tables,
    unreadable_blocks,
)
from taciturn.report.words import NONE, data_size, duration, epsilon, figure, printed_date, share
from taciturn.results.run_comparison import RunComparison
from taciturn.results.run_list import RunEntry
from taciturn.runs.collection import Collection
from taciturn.runs.comparison import MOST, compare_runs
from taciturn.runs.curves import ATTACK, curves_of
from taciturn.runs.parts import Part
from taciturn.version import __version__

Looks = dict[str, tuple[str, str]]


def runs_page(collection: Collection) -> b.Page:
    """The page of ``taciturn runs report``.

    Args:
        collection: The runs to show; at least one.
    """
    parts = collection.parts
    entries = [part.entry for part in parts]
    looks = looks_of([_mechanism(entry) for entry in entries])
    comparison = compare_runs(parts) if 1 < len(parts) <= MOST else None
    return b.Page(
        window=f"{counted(len(parts), 'run')} – Taciturn",
        title="One run" if len(parts) == 1 else "Runs side by side",
        subject=_subject(entries),
        blocks=(
            _table(collection),
            *([] if comparison is None else _fairness(comparison)),
            *_worth(entries, looks),
            *_bars(entries, looks),
            *_curves(parts),
            *([] if comparison is None else _details(comparison)),
            *_too_many(parts),
            _commands(parts),
        ),
        footer=f"Taciturn {__version__} · one file, no script, no request",
        wide=True,
    )


def _subject(entries: Sequence[RunEntry]) -> str:
    data = ", ".join(dict.fromkeys(entry.dataset for entry in entries))
    mechanisms = ", ".join(dict.fromkeys(_mechanism(entry) for entry in entries))
    return f"{counted(len(entries), 'run')} · data: {data} · mechanisms: {mechanisms}"


def _mechanism(entry: RunEntry) -> str:
    return entry.mechanism or NO_MECHANISM


def _table(collection: Collection) -> b.Section:
    headings = (
        *("", "command", "data", "mechanism", "solver", "seed"),
        *("AUC", "95 % interval", "label ε", "leak", "time", "traffic"),
    )
    rows = [_row(letter(place), part.entry) for place, part in enumerate(collection.parts)]
    names: dict[str, b.Words] = {
        letter(place): f"{part.entry.name}, {printed_date(part.entry.started)}"
        for place, part in enumerate(collection.parts)
    }
    blocks = (
        b.table(headings, rows, words=(0, 1, 2, 3, 4, 5, 9), label="All runs"),
        b.Paragraph(READING, "muted"),
        b.Details("Which run is which", (b.Facts(names),)),
        *unreadable_blocks(collection.list),
    )
    return b.Section("All runs", "runs", blocks, "Runs")


def _row(name: str, entry: RunEntry) -> tuple[b.Words, ...]:
    mark = "~" if entry.forecast else ""
    return (
        name,
        entry.kind,
        entry.dataset,
        mechanism_name(entry),
        entry.solver or NONE,
        seed_words(entry).removeprefix("seeds ").removeprefix("seed ") or NONE,
        share(entry.auc),
        interval_of(entry),
        epsilon(entry.label_epsilon),
        leak_words(entry),
        NONE if entry.seconds is None else f"{mark}{duration(entry.seconds)}",
        NONE if entry.bytes is None else f"{mark}{data_size(entry.bytes)}",
    )


def _fairness(comparison: RunComparison) -> list[b.Section]:
    """Only where there is something to say."""
    if not comparison.unfair:
        return []
    blocks = (
        b.Paragraph("The figures of these runs are not fairly compared:", "warning"),
        b.Bullets(comparison.unfair),
    )
    return [b.Section("What is not alike", "fair", blocks, "Fair?")]


# --- pictures ---------------------------------------------------------------------------------


def _worth(entries: Sequence[RunEntry], looks: Looks) -> list[b.Section]:
    """The model against the ledger's total, and against what the best attack told."""
    figures = [
        *_spots(
            entries,
            lambda entry: entry.label_epsilon,
            lambda spots: epsilon_svg(spots, looks, "worth-epsilon"),
            ("worth-epsilon", "The model against the ledger", "label epsilon", epsilon),
        ),
        *_spots(
            entries,
            lambda entry: None if entry.leakage is None else entry.leakage.beyond,
            lambda spots: leakage_svg(spots, looks, "worth-leakage"),
            ("worth-leakage", "The model against the attacks", "best attack beyond", _points),
        ),
    ]
    if not figures:
        return []
    caption = (
        "Upwards: the model's AUC on held-out rows. To the right, what it costs: a label's epsilon "
        "by the ledger, and how far the best attack lies beyond the control. Letters are those of "
        "the table. Filled: an attack told more than every control. Hollow: none did, or there was "
        "no audit. The best place is the upper left."
    )
    blocks = (b.Figures(tuple(figures), caption=caption),)
    return [b.Section("What the model is worth, and what it tells", "worth", blocks, "Worth")]


def _points(value: float) -> str:
    return f"{100 * value:+.2f} points"


def _spots(
    entries: Sequence[RunEntry],
    across: Callable[[RunEntry], float | None],
    draw: Callable[[Sequence[Spot]], str],
    words: tuple[str, str, str, Callable[[float], str]],
) -> list[b.Figure]:
    """A picture of the runs that have both figures; none where there are none."""
    name, title, axis, spell = words
    spots = spots_of(entries, across)
    if not spots:
        return []
    alt = "; ".join(
        f"{one.letter}, {one.mechanism}: AUC {share(one.y)}, {axis} {spell(one.x)}" for one in spots
    )
    return [b.Figure(name, title, alt, draw(spots))]


def _bars(entries: Sequence[RunEntry], looks: Looks) -> list[b.Section]:
    figures = []
    good = [_auc_bar(place, entry) for place, entry in enumerate(entries) if entry.auc is not None]
    if good:
        start = min(0.5, *(bar.value for bar in good))
        drawn = bars_svg(good, looks, "bars-auc", "AUC on held-out rows", start=start)
        figures.append(b.Figure("bars-auc", "How good the model is", _said(good), drawn))
    leaks = [bar for place, entry in enumerate(entries) if (bar := _leak_bar(place, entry))]
    if leaks:
        drawn = bars_svg(leaks, looks, "bars-leak", "best attack beyond the control (points)")
        figures.append(b.Figure("bars-leak", "What the best attack told", _said(leaks), drawn))
    if not figures:
        return []
    caption = (
        "Bars of the AUC begin at one half, which is chance; the lines on them are 95 % intervals. "
        "A red bar: the whole interval of the attack lies beyond every control."
    )
    return [
        b.Section("Run by run", "bars", (b.Figures(tuple(figures), caption=caption),), "Run by run")
    ]


def _name(place: int, entry: RunEntry) -> str:
    return f"{letter(place)}  {mechanism_name(entry)}"


def _auc_bar(place: int, entry: RunEntry) -> Bar:
    value = entry.auc or 0.0
    return Bar(_name(place, entry), _mechanism(entry), value, entry.auc_low, entry.auc_high)


def _leak_bar(place: int, entry: RunEntry) -> Bar | None:
    leakage = entry.leakage
    if leakage is None or leakage.beyond is None:
        return None
    ends = (
        None if leakage.low is None else leakage.low - leakage.known,
        None if leakage.high is None else leakage.high - leakage.known,
    )
    return Bar(_name(place, entry), _mechanism(entry), leakage.beyond, *ends, leakage.shown)


def _said(bars: Sequence[Bar]) -> str:
    return "; ".join(f"{bar.name}: {share(bar.value)}" for bar in bars)


def _curves(parts: Sequence[Part]) -> list[b.Section]:
    """Every curve that some run has, with all that have it in one picture."""
    curves: dict[str, dict[str, tuple[tuple[int, float], ...]]] = {}
    for place, part in enumerate(parts):
        for name, curve in curves_of(part.result).items():
            if len(curve) > 1:
                curves.setdefault(name, {})[_name(place, part.entry)] = curve
    blocks = tuple(_drawn(name, runs) for name, runs in curves.items())
    return [b.Section("Step by step", "curves", blocks, "Curves")] if blocks else []


def _drawn(name: str, runs: dict[str, tuple[tuple[int, float], ...]]) -> b.Figures:
    ident = f"curve-{name.replace(' ', '-').lower()}"
    steps = "epochs" if name == ATTACK else "iterations"
    title = f"{name[:1].upper()}{name[1:]}, by {steps}"
    rows = [(run, str(step), figure(value)) for run, curve in runs.items() for step, value in curve]
    alt = "; ".join(f"{run}: {figure(curve[-1][1])} at the end" for run, curve in runs.items())
    return b.Figures(
        (b.Figure(ident, title, alt, curves_svg(runs, ident, name, steps)),),
        caption=title,
        instead=(b.table(("run", steps, name), rows, label=title),),
        wide=True,
    )


# --- tables -----------------------------------------------------------------------------------


def _details(comparison: RunComparison) -> Iterator[b.Section]:
    settings = tuple(settings_tables(comparison))
    none = (b.Paragraph("All settings are the same.", "muted"),)
    yield b.Section("Settings that differ", "settings", settings or none, "Settings")
    note = b.Paragraph(
        f"In brackets: the difference from the first run that has the figure. {BEST}: the best "
        f"value. {LEAK} in the table above: a leak is shown.",
        "muted",
    )
    tables = tuple(table for _, table in figure_tables(comparison))
    if tables:
        yield b.Section("All figures", "figures", (*tables, note), "Figures")


def _too_many(parts: Sequence[Part]) -> list[b.Block]:
    if len(parts) <= MOST:
        return []
    words = f"{len(parts)} runs are too many to set side by side, figure by figure: name some."
    return [b.Section("All figures", "figures", (b.Paragraph(words, "muted"),), "Figures")]


def _commands(parts: Sequence[Part]) -> b.Section:
    """What made each run; a folder with several parts has one command."""
    commands = {part.entry.path: part.manifest for part in parts}
    blocks: list[b.Block] = []
    for path, manifest in commands.items():
        letters = [letter(n) for n, part in enumerate(parts) if part.entry.path == path]
        blocks += [
            b.Paragraph((b.Span(", ".join(letters), "strong"), f"  {path}")),
            b.Command(manifest.command),
        ]
    return b.Section("Commands", "commands", tuple(blocks))
