"""The pictures of several runs: what the model is worth against what it tells, and curves.

A mechanism has one colour and one shape in all of them, and a run its letter beside the mark, so
that nothing is told by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from taciturn.report.blocks import printable
from taciturn.report.plots import COLOURS, INK, LEAK, LINE, MUTED, SURFACE, style, to_svg
from taciturn.report.runs import letter
from taciturn.report.words import share
from taciturn.results.run_list import RunEntry

_POINTS = 72.0
_SHAPES = ("o", "s", "D", "^", "v", "X", "P", "p", "*", "h")
_DASHES = ("-", (0, (4, 2)), (0, (1, 2)), (0, (5, 2, 1, 2)))
_MOST_LETTERS = 22
NO_MECHANISM = "no mechanism"


@dataclass(frozen=True, slots=True)
class Spot:
    """A run in a picture: its letter, its mechanism, where it lies, and whether a leak is shown."""

    letter: str
    mechanism: str
    x: float
    y: float
    leak: bool


@dataclass(frozen=True, slots=True)
class Bar:
    """A run's figure, with the ends of its interval where they are known."""

    name: str
    mechanism: str
    value: float
    low: float | None = None
    high: float | None = None
    leak: bool = False


def spots_of(entries: Sequence[RunEntry], across: Callable[[RunEntry], float | None]) -> list[Spot]:
    """The runs that have an AUC and the figure that is drawn to the right."""
    return [
        Spot(
            letter=letter(place),
            mechanism=entry.mechanism or NO_MECHANISM,
            x=x,
            y=entry.auc,
            leak=entry.leakage is not None and entry.leakage.shown,
        )
        for place, entry in enumerate(entries)
        if (x := across(entry)) is not None and entry.auc is not None
    ]


def looks_of(mechanisms: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The colour and the shape of each mechanism, in the order in which they first occur."""
    names = list(dict.fromkeys(mechanisms))
    return {
        name: (COLOURS[place % len(COLOURS)], _SHAPES[place % len(_SHAPES)])
        for place, name in enumerate(names)
    }


def epsilon_svg(spots: Sequence[Spot], looks: Mapping[str, tuple[str, str]], name: str) -> str:
    """The picture of ``epsilon_figure``, for a page.

    Args:
        spots: The runs; x is a label's epsilon.
        looks: The colour and shape of each mechanism.
        name: The figure's.
    """
    with style():
        return to_svg(epsilon_figure(spots, looks), name)


def epsilon_figure(spots: Sequence[Spot], looks: Mapping[str, tuple[str, str]]) -> Figure:
    """The model against the ledger's total; zero and infinity stand at the ends of the axis.

    Args:
        spots: The runs; x is a label's epsilon.
        looks: The colour and shape of each mechanism.
    """
    finite = [math.log10(spot.x) for spot in spots if 0 < spot.x < math.inf]
    left = math.floor(min(finite, default=0.0))
    right = max(left + 1, math.ceil(max(finite, default=0.0)))
    ticks = {float(power): f"{10.0**power:g}" for power in range(left, right + 1)}
    ends = {left - 1.0: "0", right + 1.0: "infinite"}
    moved = [
        Spot(one.letter, one.mechanism, _on_axis(one.x, left, right), one.y, one.leak)
        for one in spots
    ]
    figure, axes = _frame(moved, "a label's epsilon, in all (logarithmic)")
    axes.set_xlim(left - 1.4, right + 1.4)
    places = dict(sorted((ticks | ends).items()))
    axes.set_xticks(list(places), list(places.values()))
    axes.xaxis.grid(True, color=LINE, clip_on=False)
    _place(figure, axes, moved, looks)
    return figure


def _on_axis(value: float, left: int, right: int) -> float:
    if value <= 0:
        return left - 1.0
    return right + 1.0 if math.isinf(value) else math.log10(value)


def leakage_svg(spots: Sequence[Spot], looks: Mapping[str, tuple[str, str]], name: str) -> str:
    """The model against how far the best attack lies beyond the control.

    Args:
        spots: The runs; x is that distance, as a share.
        looks: The colour and shape of each mechanism.
        name: The figure's.
    """
    with style():
        figure, axes = _frame(spots, "best attack beyond the control (points)")
        least = min(0.0, *(spot.x for spot in spots))
        most = max(0.05, *(spot.x for spot in spots))
        margin = 0.1 * (most - least)
        axes.set_xlim(least - margin, most + margin)
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=""))
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.grid(True, color=LINE, clip_on=False)
        axes.plot([0, 0], axes.get_ylim(), color=INK, linestyle=_DASHES[1], clip_on=False, zorder=1)
        _place(figure, axes, spots, looks)
        return to_svg(figure, name)


def _frame(spots: Sequence[Spot], label: str) -> tuple[Figure, Axes]:
    figure = Figure((430 / _POINTS, 360 / _POINTS), layout="constrained")
    axes = figure.add_subplot(xlabel=label, ylabel="AUC on held-out rows")
    low, high = min(spot.y for spot in spots), max(spot.y for spot in spots)
    margin = max(0.005, 0.15 * (high - low))
    # No share lies beyond 100 %, and no axis says so.
    axes.set_ylim(max(0.0, low - margin), min(1.0, high + margin))
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol="\u00a0%"))
    axes.yaxis.grid(True, color=LINE, clip_on=False)
    axes.set_axisbelow(True)
    return figure, axes


def _place(
    figure: Figure, axes: Axes, spots: Sequence[Spot], looks: Mapping[str, tuple[str, str]]
) -> None:
    """Draws the runs; those that lie at one place share one row of letters."""
    seen: set[str] = set()
    for spot in spots:
        colour, shape = looks[spot.mechanism]
        label = None if spot.mechanism in seen else _short(spot.mechanism)
        seen.add(spot.mechanism)
        axes.plot(
            [spot.x],
            [spot.y],
            color=colour,
            marker=shape,
            markersize=10,
            markeredgewidth=2,
            markerfacecolor=colour if spot.leak else SURFACE,
            linestyle="none",
            label=label,
            clip_on=False,
        )
    for (x, y), letters in _letters(axes, spots).items():
        axes.annotate(letters, (x, y), (8, 5), textcoords="offset points", fontsize=10, color=INK)
    figure.legend(loc="outside lower center", ncols=3, handletextpad=0.3)


def _letters(axes: Axes, spots: Sequence[Spot]) -> dict[tuple[float, float], str]:
    """The letters at each place; marks that cover each other are one place."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    places: dict[tuple[int, int], list[Spot]] = {}
    for spot in spots:
        cell = (
            round(18 * (spot.x - left) / (right - left)),
            round(20 * (spot.y - low) / (high - low)),
        )
        places.setdefault(cell, []).append(spot)
    return {
        (group[0].x, max(one.y for one in group)): _joined([one.letter for one in group])
        for group in places.values()
    }


def _joined(letters: Sequence[str]) -> str:
    text = " ".join(letters)
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}…"


def bars_svg(
    bars: Sequence[Bar],
    looks: Mapping[str, tuple[str, str]],
    name: str,
    label: str,
    *,
    start: float | None = None,
) -> str:
    """One bar for each run, with its figure beside it and its interval on it.

    Args:
        bars: The runs.
        looks: The colour and shape of each mechanism.
        name: The figure's.
        label: What the bars are of.
        start: Where bars of shares begin; None for differences, in points, which begin at 0.
    """
    begin, sign = (0.0, "") if start is None else (start, "\u00a0%")
    with style():
        figure = Figure((430 / _POINTS, (26 * len(bars) + 70) / _POINTS), layout="constrained")
        values = [bar.value for bar in bars] + [bar.high for bar in bars if bar.high is not None]
        least = min(begin, *(bar.value for bar in bars))
        most = max(begin + 0.05, *values)
        axes = figure.add_subplot(xlabel=label, xlim=(least, most), ylim=(len(bars) - 0.4, -0.6))
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=sign))
        axes.xaxis.grid(True, color=LINE, clip_on=False)
        axes.set_axisbelow(True)
        for place, bar in enumerate(bars):
            _bar(axes, place, bar, looks[bar.mechanism][0], begin)
            words = f"{100 * bar.value:+.2f}" if start is None else share(bar.value)
            where = axes.get_yaxis_transform()
            axes.text(1.04, place, words, transform=where, va="center", color=INK)
        axes.set_yticks(range(len(bars)), [_short(bar.name) for bar in bars])
        for label_text in axes.get_yticklabels():
            label_text.set_color(INK)
        return to_svg(figure, name)


def _bar(axes: Axes, place: int, bar: Bar, colour: str, start: float) -> None:
    axes.barh(
        [place],
        [bar.value - start],
        left=start,
        height=0.55,
        color=LEAK if bar.leak else colour,
        alpha=0.85,
        clip_on=False,
    )
    if bar.low is not None and bar.high is not None:
        axes.plot(
            [max(start, bar.low), bar.high],
            [place, place],
            color=INK,
            linewidth=1.5,
            marker="|",
            markersize=8,
            clip_on=False,
        )


def curves_svg(
    curves: Mapping[str, Sequence[tuple[int, float]]], name: str, label: str, steps: str
) -> str:
    """Curves of several runs in one picture.

    Args:
        curves: Steps and values, by the name of the run.
        name: The figure's.
        label: What the curves are of.
        steps: What the steps are.
    """
    with style():
        figure = Figure((860 / _POINTS, 320 / _POINTS), layout="constrained")
        axes = figure.add_subplot(xlabel=steps, ylabel=label)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.yaxis.grid(True, color=LINE, clip_on=False)
        axes.set_axisbelow(True)
        for place, (run, points) in enumerate(curves.items()):
            colour = COLOURS[place % len(COLOURS)]
            axes.plot(
                [step for step, _ in points],
                [value for _, value in points],
                color=colour,
                linewidth=2,
                linestyle=_DASHES[place // len(COLOURS) % len(_DASHES)],
                marker=_SHAPES[place % len(_SHAPES)],
                markersize=6,
                markerfacecolor=SURFACE,
                label=_short(run),
                clip_on=False,
            )
        axes.xaxis.label.set_color(MUTED)
        figure.legend(loc="outside lower center", ncols=5, handlelength=3)
        return to_svg(figure, name)


def _short(name: str) -> str:
    plain = printable(name)
    return plain if len(plain) <= 26 else f"{plain[:25]}…"
