"""Figures of pages: drawn by matplotlib, as SVG that takes its colours from the page.

Words stay words. Every colour becomes ``currentColor`` or one of the page's custom properties (with
a colour of its own where a page has none), so that one drawing serves a light page, a dark one and
paper. Nothing is shown by colour alone: shapes, fills and dashes go with it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    MaxNLocator,
    PercentFormatter,
)

from taciturn.numerics.label_metrics import ModelMetrics
from taciturn.numerics.metrics import Metrics

INK, MUTED, LINE, SURFACE = "#1a1f28", "#59626f", "#d9dde4", "#ffffff"
LEAK, AMBER, CALM = "#b3261e", "#8a5a00", "#2b6a3d"

COLOURS = ("#1f6fb2", "#c2410c", "#4d7c0f", "#7c3aed", "#0f766e", "#be185d")

_NAMES = {
    MUTED: "muted",
    LINE: "line",
    SURFACE: "surface",
    LEAK: "leak",
    AMBER: "amber",
    CALM: "calm",
}

_NAMES |= {colour: f"s{number}" for number, colour in enumerate(COLOURS, start=1)}

_PAINT = {colour: f"var(--{name}, {colour})" for colour, name in _NAMES.items()}

_PAINT |= dict.fromkeys((INK, "#000000"), "currentColor")

DASHES = ("-", (0, (4, 2)), (0, (1, 2)), (0, (5, 2, 1, 2)), (0, (3, 3)), (0, (1, 3)))


POINTS = 72.0


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


def calibration_figure(metrics: ModelMetrics) -> Figure:
    """Calibration plot: observed rate by predicted probability; larger dots for more rows."""
    figure = Figure((360 / POINTS, 320 / POINTS), layout="constrained")
    bins = metrics.calibration
    if isinstance(metrics, Metrics):
        axes = figure.add_subplot(
            xlim=(0, 1), ylim=(0, 1), xlabel="predicted probability", ylabel="observed share"
        )
        for direction in ("x", "y"):
            count_shares(axes, direction, ticks=5)
        diagonal = [0.0, 1.0]
    else:
        axes = figure.add_subplot(xlabel="predicted mean", ylabel="observed mean")
        axes.spines[:].set_visible(False)
        axes.grid(True, color=LINE)
        ends = [end for one in bins for end in (one.predicted, one.observed)]
        diagonal = [min(ends), max(ends)]
    plot(axes, diagonal, diagonal, color=MUTED, linestyle=DASHES[1])
    sizes = [20 + 180 * bin_.count / metrics.rows for bin_ in bins]
    plot(
        axes, [bin_.predicted for bin_ in bins], [bin_.observed for bin_ in bins], color=COLOURS[0]
    )
    axes.scatter(
        [bin_.predicted for bin_ in bins], [bin_.observed for bin_ in bins], sizes, COLOURS[0]
    )
    return figure


def count_shares(axes: Axes, direction: str, ticks: int) -> None:
    """Format an axis in per cent, with a grid."""
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axis = axes.xaxis if direction == "x" else axes.yaxis
    axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 10]))
    axis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol="\u00a0%"))
    axis.grid(True, color=LINE, clip_on=False)
    axes.set_axisbelow(True)


def plot(axes: Axes, x: Sequence[float], y: Sequence[float], **looks: object) -> None:
    """Draw a line or points, of which nothing is cut off at the frame."""
    # Nothing is cut off at the frame: a page must not need what url() names, and no point lies
    # outside.
    axes.plot(x, y, clip_on=False, **looks)  # type: ignore[arg-type]  # as matplotlib takes them
