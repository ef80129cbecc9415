"""The audit page's figures: drawn by matplotlib, as SVG that takes its colours from the page.

Words stay words. Every colour becomes ``currentColor`` or one of the page's custom properties (with
a colour of its own where a page has none), so that one drawing serves a light page, a dark one and
paper. Nothing is told by colour alone: shapes, fills and dashes go with it.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    MaxNLocator,
    NullLocator,
    PercentFormatter,
)

from taciturn.audit.verdict import Measure, Verdict, interval_of, value_of
from taciturn.numerics.metrics import Metrics
from taciturn.report.blocks import printable
from taciturn.report.words import share
from taciturn.results.audit import AfterEpochs, AttackScore, Findings
from taciturn.results.compare import ComparedMechanism, Comparison
from taciturn.results.study import StudyTable

INK, MUTED, LINE, SURFACE, LEAK = "#1a1f28", "#59626f", "#d9dde4", "#ffffff", "#b3261e"
COLOURS = ("#1f6fb2", "#c2410c", "#4d7c0f", "#7c3aed", "#0f766e", "#be185d")
_NAMES = {MUTED: "muted", LINE: "line", SURFACE: "surface", LEAK: "leak"}
_NAMES |= {colour: f"s{number}" for number, colour in enumerate(COLOURS, start=1)}
_PAINT = {colour: f"var(--{name}, {colour})" for colour, name in _NAMES.items()}
_PAINT |= dict.fromkeys((INK, "#000000"), "currentColor")
_DASHES = ("-", (0, (4, 2)), (0, (1, 2)), (0, (5, 2, 1, 2)), (0, (3, 3)), (0, (1, 3)))
# As many as there are attacks: colours and dashes come again, shapes do not.
_SHAPES = ("o", "s", "D", "^", "v", "X", "P", "p", "*", "h", "<")
_POINTS = 72.0


def style() -> AbstractContextManager[None]:
    """Matplotlib's settings for a figure of ours, while it is drawn and written."""
    return mpl.rc_context(
        {
            "svg.hashsalt": "taciturn",
            "svg.fonttype": "none",
            # A name may hold a dollar, which is not a formula here.
            "text.parse_math": False,
            "font.size": 12,
            "text.color": INK,
            "axes.labelcolor": MUTED,
            "axes.edgecolor": LINE,
            "xtick.color": MUTED,
            "ytick.color": MUTED,
            "legend.frameon": False,
        }
    )


def to_svg(figure: Figure, name: str) -> str:
    """Drawing within ``style`` as SVG; ``name`` makes its identifiers unique on a page."""
    stream = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(stream, format="svg", metadata=nothing, transparent=True)
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'^<svg (.*?)(?:width|height)="[^"]*" ?', r"<svg \1", text)
    text = re.sub(r'^<svg (.*?)(?:width|height)="[^"]*" ?', r"<svg \1", text)
    text = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font: \1 system-ui, sans-serif", text)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    return re.sub(r"#[0-9a-f]{6}", lambda match: _PAINT.get(match[0], match[0]), text)


def attacks_svg(findings: Findings, verdict: Verdict, name: str) -> str:
    """The picture of attacks and controls, for a page."""
    with style():
        return to_svg(attacks_figure(findings, verdict), name)


def attacks_figure(findings: Findings, verdict: Verdict) -> Figure:
    """Each attack's figure with its interval below the controls, which are vertical lines.

    The figure is that by which the verdict ranks; the axis names it. A filled dot is an attack that
    told more than every control; where the other figure shows it, that one stands beside the dot.
    """
    controls, attacks, by = verdict.controls, findings.attacks, verdict.ranked_by
    names = [*(_short(one.name) for one in controls), *(_short(one.name) for one in attacks)]
    names += [] if attacks else ["no attack applies"]
    lows = [interval_of(one, by)[0] for one in attacks]
    lowest = _floor([value_of(one, by) for one in controls] + lows)
    figure = Figure((430 / _POINTS, (30 * len(names) + 60) / _POINTS), layout="constrained")
    axes = figure.add_subplot(xlim=(lowest, 1.0), ylim=(len(names) - 0.4, -0.7), xlabel=by)
    _count_shares(axes, "x", ticks=4)
    for place, control in enumerate(controls):
        ends = [place, len(names) - 0.5]
        looks = {"color": INK, "linestyle": _DASHES[1 + place % 2]}
        _plot(axes, [value_of(control, by)] * 2, ends, **looks)
        _beside(axes, place, share(value_of(control, by)))
    for place, attack in enumerate(attacks, start=len(controls)):
        _attack(axes, place, attack, verdict, lowest)
    axes.set_yticks(range(len(names)), names)
    for place, label in enumerate(axes.get_yticklabels()):
        label.set_color(MUTED if place < len(controls) else INK)
        label.set_fontweight("bold" if names[place] in map(_short, verdict.above) else "normal")
    return figure


def calibration_figure(metrics: Metrics) -> Figure:
    """Calibration plot: observed rate by predicted probability; larger dots for more rows."""
    figure = Figure((360 / _POINTS, 320 / _POINTS), layout="constrained")
    axes = figure.add_subplot(
        xlim=(0, 1), ylim=(0, 1), xlabel="predicted probability", ylabel="observed share"
    )
    for direction in ("x", "y"):
        _count_shares(axes, direction, ticks=5)
    _plot(axes, [0, 1], [0, 1], color=MUTED, linestyle=_DASHES[1])
    bins = metrics.calibration
    sizes = [20 + 180 * one.count / metrics.rows for one in bins]
    _plot(axes, [one.predicted for one in bins], [one.observed for one in bins], color=COLOURS[0])
    axes.scatter([one.predicted for one in bins], [one.observed for one in bins], sizes, COLOURS[0])
    return figure


def _attack(axes: Axes, place: int, attack: AttackScore, verdict: Verdict, lowest: float) -> None:
    by, above = verdict.ranked_by, verdict.above.get(attack.name)
    colour = LEAK if above is not None else INK
    ends = _inside(lowest, *interval_of(attack, by))
    _plot(axes, ends, [place] * 2, color=colour, linewidth=2, marker="|", markersize=9)
    fill = {"markerfacecolor": colour if above is not None else SURFACE}
    dot = {"color": colour, "marker": "o", "markersize": 8, "markeredgewidth": 2, **fill}
    _plot(axes, _inside(lowest, value_of(attack, by)), [place], **dot)
    other = f"\n{above} {share(value_of(attack, above))}" if above and above != by else ""
    _beside(axes, place, f"{share(value_of(attack, by))}{other}")


def compare_svg(comparison: Comparison, name: str) -> str:
    """Each mechanism's model against how well the best attack tells shuffled labels.

    Where no attack applies, a mechanism stands at what is known without any message.
    """
    by = comparison.ranked_by
    known = max(one.shuffled.known for one in comparison.compared)
    spots = [(_told(one), 0.0 if one.auc is None else one.auc) for one in comparison.compared]
    left = _floor([x for x, _ in spots] + [known])
    low = min(0.9, math.floor(10 * min(y for _, y in spots)) / 10)
    with style():
        figure = Figure((860 / _POINTS, 380 / _POINTS), layout="constrained")
        axes = figure.add_subplot(xlim=(left, 1.0), ylim=(low, 1.0))
        axes.set_xlabel(f"labels told by the best attack, shuffled before training ({by})")
        axes.set_ylabel("AUC on held-out rows")
        _count_shares(axes, "x", ticks=6)
        _count_shares(axes, "y", ticks=6)
        axes.tick_params(pad=9)
        looks = {"color": INK, "linestyle": _DASHES[1], "label": f"known: {share(known)}"}
        _plot(axes, [known, known], [low, 1.0], **looks)
        for place, (one, (x, y)) in enumerate(zip(comparison.compared, spots, strict=True)):
            colour = COLOURS[place % len(COLOURS)]
            leak = one.shuffled.leak
            epsilon = "" if one.epsilon is None else f" ε {one.epsilon:g}"
            mark = {"marker": _SHAPES[place % len(_SHAPES)], "markersize": 12, "linestyle": "none"}
            fill = {"markerfacecolor": colour if leak else SURFACE, "markeredgewidth": 2}
            label = _short(f"{one.mechanism}{epsilon}")
            _plot(
                axes, _inside(left, x), _inside(low, y), color=colour, label=label, **mark, **fill
            )
        figure.legend(loc="outside lower center", ncols=5, handlelength=2.5)
        return to_svg(figure, name)


_MOST_STUDIED = 30


def study_svg(table: StudyTable, name: str) -> str:
    """Ranking figure of each combination, fold by fold; the best on top."""
    known = [one for one in table.settings if one.behind is not None]
    shown = sorted(known, key=lambda one: one.behind or 0.0)[:_MOST_STUDIED]
    with style():
        figure = Figure((860 / _POINTS, (80 + 24 * len(shown)) / _POINTS), layout="constrained")
        axes = figure.add_subplot()
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        axes.set_xlabel("log loss" if table.rank_by == "loss" else "AUC")
        axes.grid(True, axis="x", color=LINE, clip_on=False)
        axes.set_axisbelow(True)
        names = [str(one.number) for one in shown]
        axes.set_yticks(range(len(shown)), labels=names)
        axes.set_ylabel("model")
        axes.invert_yaxis()
        for place, one in enumerate(shown):
            colour = COLOURS[1] if one.number == table.best else COLOURS[0]
            folds = [getattr(fold, table.rank_by) for fold in one.folds or ()]
            dots = {"marker": "o", "markersize": 5, "linestyle": "none", "alpha": 0.55}
            _plot(axes, folds, [place] * len(folds), color=colour, **dots)
            mean = getattr(one, table.rank_by)
            bar = {"marker": "|", "markersize": 16, "markeredgewidth": 3, "linestyle": "none"}
            _plot(axes, [mean], [place], color=colour, **bar)
        return to_svg(figure, name)


def _told(one: ComparedMechanism) -> float:
    best = one.shuffled
    return best.known if best.value is None else best.value


class Point(NamedTuple):
    """An attack's figure after so many epochs, and the ends of its interval."""

    value: float
    low: float
    high: float


def epochs_svg(
    rows: Sequence[AfterEpochs], prior: float | None, name: str, by: Measure = "accuracy"
) -> str:
    """Each attack's figure by number of epochs; the prior is a horizontal line."""
    curves, epochs = curves_of(rows, by), [row.epochs for row in rows]
    lows = [point.low for points in curves.values() for point in points.values()]
    lowest = _floor([*lows, *([] if prior is None else [prior])])
    with style():
        height = 300 + 22 * math.ceil(len(curves) / 5)
        figure = Figure((860 / _POINTS, height / _POINTS), layout="constrained")
        axes = figure.add_subplot(xscale="log", xlabel="epochs (logarithmic)", ylim=(lowest, 1.0))
        axes.set_xlim(epochs[0] / 1.15, epochs[-1] * 1.15)
        axes.set_ylabel(by)
        axes.xaxis.set_major_locator(FixedLocator(epochs))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
        _count_shares(axes, "y", ticks=7)
        for place, (curve, points) in enumerate(curves.items()):
            _curve(axes, place, curve, points, lowest)
        if prior is not None:
            looks = {"color": INK, "linestyle": _DASHES[1], "label": f"prior {share(prior)}"}
            _plot(axes, axes.get_xlim(), [prior, prior], **looks)
        figure.legend(loc="outside lower center", ncols=5, handlelength=3.5)
        return to_svg(figure, name)


def curves_of(rows: Sequence[AfterEpochs], by: Measure = "accuracy") -> dict[str, dict[int, Point]]:
    """Each attack's figure by number of epochs."""
    curves: dict[str, dict[int, Point]] = {}
    for row in rows:
        for one in row.attacks:
            point = Point(one.accuracy, one.accuracy_low, one.accuracy_high)
            if by == "AUC" and one.auc is not None:
                # Whoever asks for the AUC has seen that every record has it.
                point = Point(one.auc, one.auc_low or 0.0, one.auc_high or 0.0)
            curves.setdefault(one.name, {})[row.epochs] = point
    return curves


def _curve(axes: Axes, place: int, name: str, points: dict[int, Point], lowest: float) -> None:
    colour = COLOURS[place % len(COLOURS)]
    for epochs, point in points.items():
        ends = _inside(lowest, point.low, point.high)
        _plot(axes, [epochs, epochs], ends, color=colour, alpha=0.3, linewidth=4)
    looks = {"color": colour, "linewidth": 2, "markersize": 8, "markerfacecolor": SURFACE}
    dash, shape = _DASHES[place % len(_DASHES)], _SHAPES[place % len(_SHAPES)]
    heights = _inside(lowest, *(point.value for point in points.values()))
    named = {"linestyle": dash, "marker": shape, "label": _short(name)}
    _plot(axes, list(points), heights, **looks, **named)


def _count_shares(axes: Axes, direction: str, ticks: int) -> None:
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axis = axes.xaxis if direction == "x" else axes.yaxis
    axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 10]))
    axis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol="\u00a0%"))
    axis.grid(True, color=LINE, clip_on=False)
    axes.set_axisbelow(True)


def _plot(axes: Axes, x: Sequence[float], y: Sequence[float], **looks: object) -> None:
    # Nothing is cut off at the frame: a page must not need what url() names, and no point lies
    # outside.
    axes.plot(x, y, clip_on=False, **looks)  # type: ignore[arg-type]  # as matplotlib takes them


def _beside(axes: Axes, place: int, words: str) -> None:
    size = 10 if "\n" in words else 12
    where = axes.get_yaxis_transform()
    axes.text(1.06, place, words, transform=where, va="center", fontsize=size, color=INK)


def _inside(lowest: float, *values: float) -> list[float]:
    """Shares that lie on the scale; an interval of a mean may reach beyond it."""
    return [min(1.0, max(lowest, value)) for value in values]


def _floor(values: Sequence[float]) -> float:
    """Where an axis starts: at a half, or at the next tenth below the least value that is one.

    >>> _floor([0.62]), _floor([0.47, 0.9]), _floor([math.nan])
    (0.5, 0.4, 0.5)
    """
    known = [value for value in values if not math.isnan(value)]
    return max(0.0, min(5, math.floor(10 * min(known, default=1.0))) / 10)


def _short(name: str) -> str:
    plain = printable(name)
    return plain if len(plain) <= 22 else f"{plain[:21]}…"
