"""The figures of ``taciturn reproduce fig-b1``, ``fig-b2`` and ``fig-eps`` as SVG."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from taciturn.report.plots import INK, LINE, style, to_svg
from taciturn_paper.record import Record
from taciturn_paper.report.frontier import LOOKS

_METRICS = {"accuracy": "held-out accuracy, %", "auc": "held-out AUC, %"}


def curves_svg(record: Record) -> str:
    """Accuracy beside AUC, one line of panels per dataset; the same record gives the same text.

    Args:
        record: Of a figure.
    """
    datasets = list(dict.fromkeys(row["dataset"] for row in record["rows"]))
    with style():
        figure = Figure(figsize=(11.0, 2.6 * len(datasets) + 0.5), layout="constrained")
        panels = figure.subplots(len(datasets), len(_METRICS), squeeze=False)
        for line, dataset in zip(panels, datasets, strict=True):
            rows = [row for row in record["rows"] if row["dataset"] == dataset]
            for panel, metric in zip(line, _METRICS, strict=True):
                _draw(panel, record["axis"], metric, rows)
                panel.set_ylabel(_METRICS[metric])
                panel.set_title(dataset, fontsize=12)
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5)
        return to_svg(figure, record["figure"])


def _draw(axes: Axes, axis: str, metric: str, rows: list[Record]) -> None:
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
