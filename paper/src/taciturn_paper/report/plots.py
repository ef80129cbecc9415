"""Figures of ``reproduce`` and ``bench`` as SVG; the same record gives the same text."""

from __future__ import annotations

from itertools import count

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from taciturn.report.plots import AMBER, CALM, INK, LEAK, LINE, MUTED, style, to_svg
from taciturn_paper.tasks import Record

# Colours follow the outcome where it does not depend on epsilon: red without protection, amber with
# one side protected, green with both. The others: Okabe and Ito. A marker for each as well.
LOOKS = {
    "none": (LEAK, "s"),
    "add": ("#0072b2", "o"),
    "mult printed": ("#999999", "v"),
    "mult one-sided": ("#d55e00", "^"),
    "mult mean-one": ("#e69f00", "D"),
    "hybrid": ("#cc79a7", "P"),
    "label-rr": ("#56b4e9", "*"),
    "sealed": (AMBER, "X"),
    "mutual": (CALM, "p"),
}
_OTHER = ("#f0e442", "h")


def frontier_svg(record: Record) -> str:
    """Utility against measured leakage, one curve per mechanism over epsilon.

    Left is fewer labels recovered; up is a better model in the upper panel, and more recovered of
    columns in the lower.

    >>> row = {"dataset": "d", "curve": "none", "epsilon": None, "leakage": 1.0, "test_auc": 0.9}
    >>> row |= {"leakage_low": 1.0, "leakage_high": 1.0, "commoner_label": 0.6, "columns_told": 0.5}
    >>> frontier_svg({"rows": [row]}).count("<svg")
    1
    """
    datasets = list(dict.fromkeys(row["dataset"] for row in record["rows"]))
    with style():
        figure = Figure(figsize=(5.2 * len(datasets), 7.6), layout="constrained")
        panels = figure.subplots(
            2, len(datasets), squeeze=False, sharex="col", height_ratios=(3, 2)
        )
        for (good, columns), dataset in zip(panels.T, datasets, strict=True):
            rows = [row for row in record["rows"] if row["dataset"] == dataset]
            _draw_frontier(good, rows, "test_auc", names=True)
            _draw_frontier(columns, rows, "columns_told")
            good.set_title(f"{dataset}; dotted: majority class", fontsize=11)
            good.set_ylabel("held-out AUC, %")
            columns.set_ylabel("Alice's columns recovered, R2 in %")
            columns.set_ylim(-6, 106)
            columns.set_xlabel(
                "labels recovered (shuffled before training), %\noverlapping marks: side by side"
            )
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3 * min(2, len(datasets)))
        return to_svg(figure, "frontier")


def _draw_frontier(axes: Axes, rows: list[Record], key: str, *, names: bool = False) -> None:
    """One panel: a figure of each row against labels recovered; ``names`` has epsilons by points.

    A mark that would hide another is drawn beside it; lines and intervals stay in place.
    """
    attacked = [row for row in rows if row["leakage"] is not None]
    heights = [100 * row[key] for row in attacked]
    near = 0.04 * (max(heights) - min(heights) if names else 112.0)
    drawn: list[tuple[float, float]] = []
    for curve in dict.fromkeys(row["curve"] for row in attacked):
        points = [row for row in attacked if row["curve"] == curve]
        colour, marker = LOOKS.get(curve, _OTHER)
        leaked = [100 * row["leakage"] for row in points]
        values = [100 * row[key] for row in points]
        axes.plot(leaked, values, color=colour, linewidth=1)
        axes.plot([], [], marker, color=colour, label=curve)
        for row, x, y in zip(points, leaked, values, strict=True):
            ends = [100 * row["leakage_low"], 100 * row["leakage_high"]]
            axes.plot(ends, [y, y], color=colour, alpha=0.4, linewidth=3)
            place = _free(x, [at for at, height in drawn if abs(y - height) < near])
            drawn.append((place, y))
            axes.plot([place], [y], marker, color=colour, markersize=5)
            if names and row["epsilon"] is not None:
                crowded = place != x or x > _ALL
                axes.annotate(
                    f"{row['epsilon']:g}",
                    (place, y),
                    xytext=(0, -6) if crowded else (4, 4),
                    textcoords="offset points",
                    rotation=90 if crowded else 0,
                    ha="center" if crowded else "left",
                    va="top" if crowded else "bottom",
                    fontsize=9,
                    color=colour,
                )
    axes.axvline(100 * rows[0]["commoner_label"], color=MUTED, linestyle=":", linewidth=1)
    axes.set_xlim(right=116)
    axes.set_xticks(range(40, 101, 10))
    axes.grid(color=LINE)


# Per cent between marks that would hide one another; nothing is recovered beyond 100.
_STEP, _ALL = 1.7, 97.0


def _free(x: float, taken: list[float]) -> float:
    """The place nearest to x with room for a mark; to the right where all labels are recovered.

    >>> _free(63.0, []), _free(63.0, [63.0]), round(_free(63.0, [63.0, 64.7]), 1)
    (63.0, 64.7, 61.3)
    """
    sides = (1.0,) if x > _ALL else (1.0, -1.0)
    steps = (side * number * _STEP for number in count() for side in sides)
    return next(x + d for d in steps if all(abs(x + d - at) > 0.99 * _STEP for at in taken))


_METRICS = {"accuracy": "held-out accuracy, %", "auc": "held-out AUC, %"}


def curves_svg(record: Record) -> str:
    """Accuracy and AUC of a figure's curves, one line of panels per dataset."""
    datasets = list(dict.fromkeys(row["dataset"] for row in record["rows"]))
    with style():
        figure = Figure(figsize=(11.0, 2.6 * len(datasets) + 0.5), layout="constrained")
        panels = figure.subplots(len(datasets), len(_METRICS), squeeze=False)
        for line, dataset in zip(panels, datasets, strict=True):
            rows = [row for row in record["rows"] if row["dataset"] == dataset]
            for panel, metric in zip(line, _METRICS, strict=True):
                _draw_curves(panel, record["axis"], metric, rows)
                panel.set_ylabel(_METRICS[metric])
                panel.set_title(dataset, fontsize=12)
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5)
        return to_svg(figure, record["figure"])


def _draw_curves(axes: Axes, axis: str, metric: str, rows: list[Record]) -> None:
    for curve in dict.fromkeys(row["curve"] for row in rows if row["curve"] != "none"):
        points = [row for row in rows if row["curve"] == curve]
        colour, marker = LOOKS[curve]
        places = [row["at"] for row in points]
        values = [100 * row[metric] for row in points]
        axes.plot(
            places, values, label=curve, marker=marker, markersize=4, color=colour, linewidth=1
        )
        axes.fill_between(
            places,
            [100 * row[f"{metric}_low"] for row in points],
            [100 * row[f"{metric}_high"] for row in points],
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
    base = 100 * next(row for row in rows if row["curve"] == "none")[metric]
    axes.axhline(base, color=INK, linestyle="--", linewidth=1, label="without noise")
    axes.set_xscale("log", base=10 if axis == "b2" else 2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
    axes.set_xlabel(axis)
    axes.grid(color=LINE)


_COLOURS = {"bfv": "#0072b2", "paillier": "#d55e00", "heu": "#999999"}


def ratios_svg(record: Record) -> str:
    """Speed of each scheme relative to python-paillier, by shape, on a log scale."""
    shown = [row for row in record["rows"] if row["times_phe"] and row["scheme"] != "phe"]
    names = [f"{row['shape']}, {row['scheme']} {row['bits']}" for row in shown]
    with style():
        figure = Figure(figsize=(12.0, 0.6 + 0.25 * len(shown)), layout="constrained")
        axes = figure.add_subplot()
        colours = [_COLOURS.get(row["scheme"].split("-")[0], MUTED) for row in shown]
        bars = axes.barh(names, [row["times_phe"] for row in shown], color=colours)
        axes.bar_label(bars, [f" {row['times_phe']:,.0f}x" for row in shown], color=INK)
        axes.set_xscale("log")
        axes.set_xlim(1, 10_000)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.invert_yaxis()
        axes.set_axisbelow(True)
        axes.grid(axis="x", color=LINE)
        axes.set_xlabel("times as fast as python-paillier, one iteration")
        return to_svg(figure, "ratios")
