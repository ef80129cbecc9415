"""The pictures of a model's page: curves, calibration, bands, costs, coefficients, bins.

Nothing is shown by colour alone: lines differ in their dashes, and every picture has its table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from taciturn.report.blocks import printable
from taciturn.report.formatting import share
from taciturn.report.plots import (
    COLOURS,
    INK,
    LEAK,
    LINE,
    MUTED,
    POINTS,
    SURFACE,
    plot,
    style,
    to_svg,
)
from taciturn_risk.scorecard.result import (
    CoefficientTest,
    ColumnEffect,
    ComparedScores,
    JudgedRows,
)

_NARROW, _WIDE = 430, 860
_DASHES = ("-", (0, (5, 2)), (0, (1, 2)))
_SHAPES = ("o", "s", "^")


@dataclass
class _Drawing:
    axes: Axes
    svg: str = ""


@contextmanager
def _drawn(
    name: str, x: str, y: str, *, width: int = _NARROW, height: int = 330, legend: int = 0
) -> Iterator[_Drawing]:
    """A drawing, whose SVG is ready after the block; ``legend`` is the number of its columns."""
    with style():
        figure = Figure((width / POINTS, height / POINTS), layout="constrained")
        axes = figure.add_subplot(xlabel=x, ylabel=y)
        axes.spines[:].set_visible(False)
        # Away from the corner, where the labels of both axes would meet.
        axes.tick_params(length=0, pad=8)
        axes.set_axisbelow(True)
        drawing = _Drawing(axes)
        yield drawing
        if legend:
            figure.legend(loc="outside lower center", ncols=legend)
        drawing.svg = to_svg(figure, name)


def roc_svg(sets: Sequence[JudgedRows], name: str) -> str:
    """ROC curves of all sets of rows, with the point where KS is reached."""
    with _drawn(name, "false positive rate", "true positive rate", legend=1) as drawing:
        axes = drawing.axes
        _square(axes)
        for place, rows in enumerate(sets):
            label = f"{rows.name} (AUC {share(rows.metrics.auc, 1)})"
            zeros, ones = [p.zeros for p in rows.roc], [p.ones for p in rows.roc]
            plot(axes, zeros, ones, label=label, **_line(place), linewidth=2)
            if rows.ks is not None:
                mark = _marks(place, 8)
                plot(axes, [rows.ks.zeros], [rows.ks.ones], color=COLOURS[place], **mark)
    return drawing.svg


def ks_svg(rows: JudgedRows, shift: float, name: str) -> str:
    """Score distributions of the two classes; ``shift`` is by how much class weights moved them."""
    points = [point for point in rows.roc if math.isfinite(point.score)]
    scores = [point.score - shift for point in points]
    with _drawn(name, "predicted probability", "cumulative share of rows", legend=2) as drawing:
        axes = drawing.axes
        _percent(axes, "y", 0.0, 1.0)
        low, high = _middle(scores)
        axes.set_xlim(low, high)
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda odds, _: _as_probability(odds)))
        axes.xaxis.grid(True, color=LINE)
        inside = [place for place, score in enumerate(scores) if low <= score <= high]
        across = [scores[place] for place in inside]
        for number, key in enumerate(("zeros", "ones")):
            below = [1 - getattr(points[place], key) for place in inside]
            label = ("label 0", "label 1")[number]
            plot(axes, across, below, label=label, **_line(number), linewidth=2)
        if rows.ks is not None and low <= rows.ks.score - shift <= high:
            at, ends = rows.ks.score - shift, [1 - rows.ks.ones, 1 - rows.ks.zeros]
            plot(axes, [at, at], ends, color=INK, linewidth=2, marker="_", markersize=10)
            words = f"KS {share(rows.ks.distance, 1)}  "
            axes.text(at, sum(ends) / 2, words, color=INK, va="center", ha="right")
    return drawing.svg


def gains_svg(sets: Sequence[JudgedRows], name: str) -> str:
    """Gains chart: the share of the ones among the riskiest rows."""
    with _drawn(name, "share of rows, highest scores first", "capture rate", legend=3) as drawing:
        axes = drawing.axes
        _square(axes)
        for place, rows in enumerate(sets):
            across = [0.0, *(row.rows_so_far for row in rows.gains)]
            up = [0.0, *(row.ones_so_far for row in rows.gains)]
            looks = {**_line(place), "linewidth": 2, **_marks(place, 6)}
            plot(axes, across, up, label=rows.name, **looks)
    return drawing.svg


def lift_svg(rows: JudgedRows, name: str) -> str:
    """Lift of each tenth of the rows."""
    with _drawn(name, "decile, highest scores first", "lift") as drawing:
        axes = drawing.axes
        places, lifts = [row.part for row in rows.gains], [row.lift for row in rows.gains]
        axes.bar(places, lifts, width=0.7, color=COLOURS[0], alpha=0.85)
        axes.set_xticks(places)
        axes.set_ylim(0, max(1.5, *lifts) * 1.1)
        axes.yaxis.grid(True, color=LINE)
        plot(axes, [0.4, len(places) + 0.6], [1, 1], color=INK, linestyle=_DASHES[1], linewidth=1)
        for place, lift in zip(places, lifts, strict=True):
            looks = {"ha": "center", "va": "bottom", "fontsize": 10, "color": INK}
            axes.text(place, lift, f"{lift:.1f}", **looks)  # type: ignore[arg-type]  # as above
    return drawing.svg


def calibration_svg(sets: Sequence[JudgedRows], name: str) -> str:
    """Calibration curves: observed rates by predicted probability, with 95 % intervals."""
    groups = [group for rows in sets for group in rows.groups]
    top = min(1.0, 1.08 * max([0.02, *(max(group.predicted, group.high) for group in groups)]))
    with _drawn(name, "predicted probability", "observed rate", legend=3) as drawing:
        axes = drawing.axes
        _square(axes, top)
        for place, rows in enumerate(sets):
            interval = {"color": COLOURS[place], "alpha": 0.35, "linewidth": 3}
            for group in rows.groups:
                plot(axes, [group.predicted] * 2, [group.low, group.high], **interval)
            across = [group.predicted for group in rows.groups]
            observed = [group.observed for group in rows.groups]
            plot(axes, across, observed, label=rows.name, **_line(place), **_marks(place, 7))
    return drawing.svg


def bands_svg(rows: JudgedRows, names: Sequence[str], name: str) -> str:
    """Rate of each score band with its interval, and the mean prediction."""
    size = {"width": _WIDE, "height": 90 + 26 * len(rows.bands)}
    with _drawn(name, "rate of label 1", "", **size, legend=2) as drawing:
        axes = drawing.axes
        known = {place: band for place, band in enumerate(rows.bands) if band.rows}
        places, bands = [*known], known.values()
        top = max([0.02, *(max(band.rate_high, band.predicted) for band in bands)])
        _percent(axes, "x", 0.0, min(1.0, 1.05 * top))
        rates = [band.rate for band in bands]
        axes.barh(places, rates, height=0.6, color=COLOURS[0], alpha=0.8, label="observed")
        beside: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "fontsize": 11}
        beside["color"] = MUTED
        for place, band in known.items():
            ends = [band.rate_low, band.rate_high]
            plot(axes, ends, [place] * 2, color=INK, linewidth=1.5, marker="|", markersize=7)
            axes.text(1.02, place, f"{band.rows:,}", va="center", **beside)
        looks = {"linestyle": "none", "marker": "D", "markersize": 6, "markerfacecolor": SURFACE}
        predicted = [band.predicted for band in bands]
        plot(axes, predicted, places, color=COLOURS[1], label="predicted", **looks)
        _rows_called(axes, names)
        axes.text(1.02, -0.9, "rows", **beside)
    return drawing.svg


def cost_svg(rows: JudgedRows, name: str) -> str:
    """Cost of a row at each threshold, and the cheapest threshold."""
    with _drawn(
        name, "rows above the threshold", "cost per row", width=_WIDE, height=300
    ) as drawing:
        axes, best = drawing.axes, rows.cheapest
        listed = [*rows.cutoffs, *([] if best is None else [best])]
        listed.sort(key=lambda cutoff: cutoff.called)
        known = [(cutoff.called, cutoff.cost) for cutoff in listed if cutoff.cost is not None]
        _percent(axes, "x", 0.0, 1.0)
        axes.yaxis.grid(True, color=LINE)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.set_ylim(0, 1.1 * max(cost for _, cost in known))
        looks = {"color": COLOURS[0], "linewidth": 2, "marker": "o", "markersize": 5}
        plot(axes, [called for called, _ in known], [cost for _, cost in known], **looks)
        if best is not None and best.cost is not None:
            mark = {"markersize": 10, "markerfacecolor": SURFACE, "markeredgewidth": 2}
            at = (best.called, best.cost)
            plot(axes, at[:1], at[1:], color=LEAK, marker="D", **mark)
            words = f"cheapest: above {share(best.probability)}"
            axes.annotate(words, at, (6, 12), textcoords="offset points", color=INK)
    return drawing.svg


def stability_svg(compared: ComparedScores, names: Sequence[str], name: str) -> str:
    """Share of both sets of rows in each band; ``names`` begins with the lowest scores."""
    bands = compared.stability.bands
    size = {"width": _WIDE, "height": 90 + 30 * len(bands)}
    with _drawn(name, "share of rows", "", **size, legend=2) as drawing:
        axes = drawing.axes
        _percent(axes, "x", 0.0, 1.08 * max(max(band.reference, band.new) for band in bands))
        parts = ((compared.reference, "reference", -0.2), (compared.new, "new", 0.2))
        for number, (label, key, moved) in enumerate(parts):
            axes.barh(
                [place + moved for place in range(len(bands))],
                [getattr(band, key) for band in bands][::-1],
                height=0.36,
                label=label,
                edgecolor=SURFACE,
                color=COLOURS[number],
                alpha=0.85,
                hatch=("", "//")[number],
            )
        _rows_called(axes, names[::-1])
    return drawing.svg


def coefficients_svg(coefficients: Sequence[CoefficientTest], name: str) -> str:
    """Weights with their 95 % intervals; a filled dot where the interval leaves 0 out."""
    size = {"width": _WIDE, "height": 70 + 26 * len(coefficients)}
    with _drawn(name, "weight of the prepared column", "", **size) as drawing:
        axes = drawing.axes
        for place, coefficient in enumerate(coefficients):
            known = not math.isnan(coefficient.low)
            clear = known and (coefficient.low > 0 or coefficient.high < 0)
            colour = COLOURS[0] if clear else MUTED
            if known:
                plot(
                    axes,
                    [coefficient.low, coefficient.high],
                    [place] * 2,
                    color=colour,
                    linewidth=2,
                )
            mark = {"marker": "o", "markersize": 8, "markeredgewidth": 2}
            fill = colour if clear else SURFACE
            plot(axes, [coefficient.prepared], [place], color=colour, markerfacecolor=fill, **mark)
        axes.xaxis.grid(True, color=LINE)
        axes.xaxis.set_major_locator(MaxNLocator(7))
        several = len({coefficient.side for coefficient in coefficients}) > 1
        names = [
            f"{coefficient.column} ({coefficient.side})" if several else coefficient.column
            for coefficient in coefficients
        ]
        _from_zero(axes, names)
    return drawing.svg


def effect_svg(effect: ColumnEffect, ends: tuple[float, float], name: str) -> str:
    """Points of each bin or category relative to its reference; all columns share ``ends``."""
    levels = effect.levels
    with _drawn(name, "points", "", height=80 + 26 * len(levels)) as drawing:
        axes = drawing.axes
        beside: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center"}
        for place, level in enumerate(levels):
            colour = MUTED if level.reference else COLOURS[0] if level.points >= 0 else COLOURS[1]
            axes.barh([place], [level.points], height=0.55, color=colour, alpha=0.85)
            words = f"{level.points:+.0f}" if abs(level.points) >= 0.5 else "0"
            axes.text(1.03, place, words, color=INK, **beside)
        axes.xaxis.grid(True, color=LINE)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        margin = max(1.0, 0.04 * (ends[1] - ends[0]))
        axes.set_xlim(ends[0] - margin, ends[1] + margin)
        _from_zero(axes, [level.level for level in levels], 18)
    return drawing.svg


def _square(axes: Axes, top: float = 1.0) -> None:
    """Two axes of shares, and the line on which they are equal."""
    _percent(axes, "x", 0.0, top)
    _percent(axes, "y", 0.0, top)
    plot(axes, [0, top], [0, top], color=MUTED, linestyle=_DASHES[1], linewidth=1)


def _percent(axes: Axes, direction: str, low: float, high: float) -> None:
    axis = axes.xaxis if direction == "x" else axes.yaxis
    (axes.set_xlim if direction == "x" else axes.set_ylim)(low, high)
    axis.set_major_locator(MaxNLocator(5))
    digits = 0 if high - low > 0.08 else 1
    axis.set_major_formatter(PercentFormatter(1.0, decimals=digits, symbol="\u00a0%"))
    axis.grid(True, color=LINE)


def _as_probability(odds: float) -> str:
    value = 1 / (1 + math.exp(-odds)) if odds > -700 else 0.0
    digits = 0 if 0.02 <= value <= 0.98 else 1 if 0.001 <= value <= 0.999 else 3
    return f"{100 * value:.{digits}f}\u00a0%"


def _middle(scores: Sequence[float]) -> tuple[float, float]:
    """The range of an axis; a few extreme scores do not decide it."""
    ordered = sorted(scores)
    cut = len(ordered) // 100
    low, high = ordered[cut], ordered[-1 - cut]
    return (low, high) if high > low else (low - 1, high + 1)


def _line(place: int) -> dict[str, Any]:
    return {"color": COLOURS[place], "linestyle": _DASHES[place]}


def _marks(place: int, size: int) -> dict[str, Any]:
    return {"marker": _SHAPES[place], "markersize": size, "markerfacecolor": SURFACE}


def _rows_called(axes: Axes, names: Sequence[str], most: int = 34) -> None:
    """Bar labels from the top; long names are cut."""
    plain = [printable(name) for name in names]
    short = [name if len(name) <= most else f"{name[: most - 1]}…" for name in plain]
    axes.set_yticks(range(len(short)), short)
    axes.set_ylim(len(short) - 0.4, -0.6)


def _from_zero(axes: Axes, names: Sequence[str], most: int = 34) -> None:
    """Draw a line at 0, and label the bars in the colour of text."""
    plot(axes, [0, 0], [-0.6, len(names) - 0.4], color=INK, linewidth=1)
    _rows_called(axes, names, most)
    for label in axes.get_yticklabels():
        label.set_color(INK)
