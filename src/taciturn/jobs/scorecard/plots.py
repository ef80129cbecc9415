"""The pictures of a model's page: curves, calibration, bands, costs, coefficients, bins.

Nothing is told by colour alone: lines differ in their dashes, and every picture has its table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from taciturn.jobs.scorecard.result import (
    CoefficientTest,
    ColumnEffect,
    ComparedScores,
    JudgedRows,
)
from taciturn.report.blocks import printable
from taciturn.report.plots import COLOURS, INK, LEAK, LINE, MUTED, SURFACE, style, to_svg
from taciturn.report.words import share

_POINTS = 72.0
_NARROW, _WIDE = 430, 860
_DASHES = ("-", (0, (5, 2)), (0, (1, 2)))
_SHAPES = ("o", "s", "^")


@dataclass
class _Drawing:
    axes: Axes
    figure: Figure
    svg: str = ""


@contextmanager
def _drawn(
    name: str, x: str, y: str, *, width: int = _NARROW, height: int = 330
) -> Iterator[_Drawing]:
    with style():
        figure = Figure((width / _POINTS, height / _POINTS), layout="constrained")
        axes = figure.add_subplot(xlabel=x, ylabel=y)
        axes.spines[:].set_visible(False)
        # Away from the corner, where the labels of both axes would meet.
        axes.tick_params(length=0, pad=8)
        axes.set_axisbelow(True)
        drawing = _Drawing(axes, figure)
        yield drawing
        drawing.svg = to_svg(figure, name)


def roc_svg(sets: Sequence[JudgedRows], name: str) -> str:
    """ROC curves of all sets of rows, with the point where KS is reached."""
    with _drawn(name, "zeros called ones", "ones called so") as drawing:
        axes = drawing.axes
        _percent(axes, "x", 0.0, 1.0)
        _percent(axes, "y", 0.0, 1.0)
        _line(axes, [0, 1], [0, 1], color=MUTED, linestyle=_DASHES[1], linewidth=1)
        for place, rows in enumerate(sets):
            looks = {"color": COLOURS[place], "linestyle": _DASHES[place], "linewidth": 2}
            label = f"{rows.name} (AUC {share(rows.metrics.auc, 1)})"
            zeros, ones = [p.zeros for p in rows.roc], [p.ones for p in rows.roc]
            _line(axes, zeros, ones, label=label, **looks)
            if rows.ks is not None:
                mark = {"marker": _SHAPES[place], "markersize": 8, "markerfacecolor": SURFACE}
                _line(axes, [rows.ks.zeros], [rows.ks.ones], color=COLOURS[place], **mark)
        drawing.figure.legend(loc="outside lower center", ncols=1)
    return drawing.svg


def ks_svg(rows: JudgedRows, shift: float, name: str) -> str:
    """Score distributions of the two classes; ``shift`` is by how much class weights moved them."""
    points = [point for point in rows.roc if math.isfinite(point.score)]
    scores = [point.score - shift for point in points]
    with _drawn(name, "predicted probability", "rows at or below") as drawing:
        axes = drawing.axes
        _percent(axes, "y", 0.0, 1.0)
        low, high = _middle(scores)
        _odds_axis(axes, low, high)
        inside = [place for place, score in enumerate(scores) if low <= score <= high]
        across = [scores[place] for place in inside]
        for number, (label, key) in enumerate((("zeros", "zeros"), ("ones", "ones"))):
            below = [1 - getattr(points[place], key) for place in inside]
            looks = {"color": COLOURS[number], "linestyle": _DASHES[number], "linewidth": 2}
            _line(axes, across, below, label=label, **looks)
        if rows.ks is not None and low <= rows.ks.score - shift <= high:
            at, ends = rows.ks.score - shift, [1 - rows.ks.ones, 1 - rows.ks.zeros]
            _line(axes, [at, at], ends, color=INK, linewidth=2, marker="_", markersize=10)
            words = f"KS {share(rows.ks.distance, 1)}  "
            axes.text(at, sum(ends) / 2, words, color=INK, va="center", ha="right")
        drawing.figure.legend(loc="outside lower center", ncols=2)
    return drawing.svg


def gains_svg(sets: Sequence[JudgedRows], name: str) -> str:
    """Gains chart: the share of the ones among the riskiest rows."""
    with _drawn(name, "riskiest rows", "ones among them") as drawing:
        axes = drawing.axes
        _percent(axes, "x", 0.0, 1.0)
        _percent(axes, "y", 0.0, 1.0)
        _line(axes, [0, 1], [0, 1], color=MUTED, linestyle=_DASHES[1], linewidth=1)
        for place, rows in enumerate(sets):
            looks = {
                "color": COLOURS[place],
                "linestyle": _DASHES[place],
                "linewidth": 2,
                "marker": _SHAPES[place],
                "markersize": 6,
                "markerfacecolor": SURFACE,
            }
            across = [0.0, *(row.rows_so_far for row in rows.gains)]
            _line(
                axes,
                across,
                [0.0, *(row.ones_so_far for row in rows.gains)],
                label=rows.name,
                **looks,
            )
        drawing.figure.legend(loc="outside lower center", ncols=3)
    return drawing.svg


def lift_svg(rows: JudgedRows, name: str) -> str:
    """Lift of each tenth of the rows."""
    with _drawn(name, "tenth of the rows, riskiest first", "lift") as drawing:
        axes = drawing.axes
        places = [row.part for row in rows.gains]
        axes.bar(places, [row.lift for row in rows.gains], width=0.7, color=COLOURS[0], alpha=0.85)
        axes.set_xticks(places)
        axes.set_ylim(0, max(1.5, *(row.lift for row in rows.gains)) * 1.1)
        axes.yaxis.grid(True, color=LINE)
        _line(axes, [0.4, len(places) + 0.6], [1, 1], color=INK, linestyle=_DASHES[1], linewidth=1)
        for row in rows.gains:
            axes.text(
                row.part,
                row.lift,
                f"{row.lift:.1f}",
                ha="center",
                va="bottom",
                fontsize=10,
                color=INK,
            )
    return drawing.svg


def calibration_svg(sets: Sequence[JudgedRows], name: str) -> str:
    """Calibration curves: observed rates by predicted probability, with 95 % intervals."""
    groups = [group for rows in sets for group in rows.groups]
    top = min(1.0, 1.08 * max([0.02, *(max(one.predicted, one.high) for one in groups)]))
    with _drawn(name, "predicted probability", "observed rate") as drawing:
        axes = drawing.axes
        _percent(axes, "x", 0.0, top)
        _percent(axes, "y", 0.0, top)
        _line(axes, [0, top], [0, top], color=MUTED, linestyle=_DASHES[1], linewidth=1)
        for place, rows in enumerate(sets):
            colour = COLOURS[place]
            for one in rows.groups:
                ends = [one.low, one.high]
                _line(axes, [one.predicted] * 2, ends, color=colour, alpha=0.35, linewidth=3)
            looks = {
                "color": colour,
                "linestyle": _DASHES[place],
                "marker": _SHAPES[place],
                "markersize": 7,
                "markerfacecolor": SURFACE,
            }
            across = [one.predicted for one in rows.groups]
            _line(axes, across, [one.observed for one in rows.groups], label=rows.name, **looks)
        drawing.figure.legend(loc="outside lower center", ncols=3)
    return drawing.svg


def bands_svg(rows: JudgedRows, names: Sequence[str], name: str) -> str:
    """The rate of each score band with its interval, beside the mean prediction."""
    height = 90 + 26 * len(rows.bands)
    with _drawn(name, "rate of ones", "", width=_WIDE, height=height) as drawing:
        axes = drawing.axes
        known = [band for band in rows.bands if band.rows]
        top = max([0.02, *(max(band.rate_high, band.predicted) for band in known)])
        _percent(axes, "x", 0.0, min(1.0, 1.05 * top))
        places = [place for place, band in enumerate(rows.bands) if band.rows]
        rates = [band.rate for band in known]
        axes.barh(places, rates, height=0.6, color=COLOURS[0], alpha=0.8, label="observed")
        for place, band in zip(places, known, strict=True):
            ends = [band.rate_low, band.rate_high]
            _line(axes, ends, [place] * 2, color=INK, linewidth=1.5, marker="|", markersize=7)
            where = axes.get_yaxis_transform()
            words = f"{band.rows:,}"
            axes.text(1.02, place, words, transform=where, va="center", fontsize=11, color=MUTED)
        looks = {"linestyle": "none", "marker": "D", "markersize": 6, "markerfacecolor": SURFACE}
        predicted = [band.predicted for band in known]
        _line(axes, predicted, places, color=COLOURS[1], label="predicted", **looks)
        axes.set_yticks(range(len(names)), [_short(one) for one in names])
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.text(
            1.02, -0.9, "rows", transform=axes.get_yaxis_transform(), fontsize=11, color=MUTED
        )
        drawing.figure.legend(loc="outside lower center", ncols=2)
    return drawing.svg


def cost_svg(rows: JudgedRows, name: str) -> str:
    """Cost of a row at each threshold, and the cheapest threshold."""
    with _drawn(name, "rows called ones", "cost of a row", width=_WIDE, height=300) as drawing:
        axes = drawing.axes
        listed = sorted(
            (*rows.cutoffs, *(() if rows.cheapest is None else (rows.cheapest,))),
            key=lambda one: one.called,
        )
        known = [(one.called, one.cost) for one in listed if one.cost is not None]
        _percent(axes, "x", 0.0, 1.0)
        axes.yaxis.grid(True, color=LINE)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.set_ylim(0, 1.1 * max(cost for _, cost in known))
        looks = {"color": COLOURS[0], "linewidth": 2, "marker": "o", "markersize": 5}
        _line(axes, [one for one, _ in known], [cost for _, cost in known], **looks)
        best = rows.cheapest
        if best is not None and best.cost is not None:
            mark = {
                "marker": "D",
                "markersize": 10,
                "markerfacecolor": SURFACE,
                "markeredgewidth": 2,
            }
            _line(axes, [best.called], [best.cost], color=LEAK, **mark)
            words = f"cheapest: above {share(best.probability)}"
            axes.annotate(
                words, (best.called, best.cost), (6, 12), textcoords="offset points", color=INK
            )
    return drawing.svg


def stability_svg(compared: ComparedScores, names: Sequence[str], name: str) -> str:
    """Share of both sets of rows in each band; ``names`` begins with the lowest scores."""
    bands = compared.stability.bands
    height = 90 + 30 * len(bands)
    with _drawn(name, "rows", "", width=_WIDE, height=height) as drawing:
        axes = drawing.axes
        top = max(max(band.reference, band.new) for band in bands)
        _percent(axes, "x", 0.0, 1.08 * top)
        parts = ((compared.reference, "reference", -0.2), (compared.new, "new", 0.2))
        for number, (label, key, moved) in enumerate(parts):
            places = [place + moved for place in range(len(bands))]
            values = [getattr(band, key) for band in bands][::-1]
            axes.barh(
                places,
                values,
                height=0.36,
                label=label,
                edgecolor=SURFACE,
                color=COLOURS[number],
                alpha=0.85,
                hatch=("", "//")[number],
            )
        axes.set_yticks(range(len(bands)), [_short(one) for one in names[::-1]])
        axes.set_ylim(len(bands) - 0.4, -0.6)
        drawing.figure.legend(loc="outside lower center", ncols=2)
    return drawing.svg


def coefficients_svg(coefficients: Sequence[CoefficientTest], name: str) -> str:
    """Weights with their 95 % intervals; a filled dot where the interval leaves 0 out."""
    height = 70 + 26 * len(coefficients)
    with _drawn(name, "weight of the prepared column", "", width=_WIDE, height=height) as drawing:
        axes = drawing.axes
        for place, one in enumerate(coefficients):
            known = not math.isnan(one.low)
            clear = known and (one.low > 0 or one.high < 0)
            colour = COLOURS[0] if clear else MUTED
            if known:
                _line(axes, [one.low, one.high], [place] * 2, color=colour, linewidth=2)
            mark = {"marker": "o", "markersize": 8, "markeredgewidth": 2}
            fill = colour if clear else SURFACE
            _line(axes, [one.prepared], [place], color=colour, markerfacecolor=fill, **mark)
        axes.xaxis.grid(True, color=LINE)
        axes.xaxis.set_major_locator(MaxNLocator(7))
        _line(axes, [0, 0], [-0.6, len(coefficients) - 0.4], color=INK, linewidth=1)
        several = len({one.side for one in coefficients}) > 1
        names = [
            _short(f"{one.column} ({one.side})" if several else one.column) for one in coefficients
        ]
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        for label in axes.get_yticklabels():
            label.set_color(INK)
    return drawing.svg


def effect_svg(effect: ColumnEffect, ends: tuple[float, float], name: str) -> str:
    """Points of each bin or category beside its reference; all columns share ``ends``."""
    levels = effect.levels
    with _drawn(name, "points", "", height=80 + 26 * len(levels)) as drawing:
        axes = drawing.axes
        for place, level in enumerate(levels):
            colour = MUTED if level.reference else COLOURS[0] if level.points >= 0 else COLOURS[1]
            axes.barh([place], [level.points], height=0.55, color=colour, alpha=0.85)
            words = f"{level.points:+.0f}" if abs(level.points) >= 0.5 else "0"
            axes.text(
                1.03, place, words, transform=axes.get_yaxis_transform(), va="center", color=INK
            )
        axes.xaxis.grid(True, color=LINE)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        margin = max(1.0, 0.04 * (ends[1] - ends[0]))
        axes.set_xlim(ends[0] - margin, ends[1] + margin)
        _line(axes, [0, 0], [-0.6, len(levels) - 0.4], color=INK, linewidth=1)
        axes.set_yticks(range(len(levels)), [_short(level.level, 18) for level in levels])
        axes.set_ylim(len(levels) - 0.4, -0.6)
        for label in axes.get_yticklabels():
            label.set_color(INK)
    return drawing.svg


def _percent(axes: Axes, direction: str, low: float, high: float) -> None:
    axis = axes.xaxis if direction == "x" else axes.yaxis
    (axes.set_xlim if direction == "x" else axes.set_ylim)(low, high)
    axis.set_major_locator(MaxNLocator(5))
    digits = 0 if high - low > 0.08 else 1
    axis.set_major_formatter(PercentFormatter(1.0, decimals=digits, symbol="\u00a0%"))
    axis.grid(True, color=LINE)


def _odds_axis(axes: Axes, low: float, high: float) -> None:
    """An axis of log-odds that says probabilities."""
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _as_probability(value)))
    axes.xaxis.grid(True, color=LINE)


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


def _line(axes: Axes, x: Sequence[float], y: Sequence[float], **looks: object) -> None:
    # Nothing is cut off at the frame: a page must not need what url() names.
    axes.plot(x, y, clip_on=False, **looks)  # type: ignore[arg-type]  # as matplotlib takes them


def _short(name: str, most: int = 34) -> str:
    plain = printable(name)
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"
