"""The figures of ``taciturn reproduce fig-b1``, ``fig-b2`` and ``fig-eps`` as SVG files."""

from __future__ import annotations

import io

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from taciturn.report.record import Record
from taciturn_paper.report.frontier import LOOKS

_METRICS = {"accuracy": "held-out accuracy, %", "auc": "held-out AUC, %"}


def curves_svg(record: Record) -> str:
    """Accuracy above AUC, one column of panels per dataset; the same record gives the same text.

    Args:
        record: Of a figure.
    """
    datasets = list(dict.fromkeys(row["dataset"] for row in record["rows"]))
    with mpl.rc_context({"svg.hashsalt": "taciturn", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(3.4 * len(datasets) + 0.6, 6.0), layout="constrained")
        panels = figure.subplots(len(_METRICS), len(datasets), squeeze=False)
        for line, metric in zip(panels, _METRICS, strict=True):
            for panel, dataset in zip(line, datasets, strict=True):
                rows = [row for row in record["rows"] if row["dataset"] == dataset]
                _draw(panel, record["axis"], metric, rows)
                panel.set_title(dataset, fontsize=9)
            line[0].set_ylabel(_METRICS[metric])
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def _draw(axes: Axes, axis: str, metric: str, rows: list[Record]) -> None:
    for curve in dict.fromkeys(row["curve"] for row in rows if row["curve"] != "none"):
        points = [row for row in rows if row["curve"] == curve]
        colour, marker = LOOKS[curve]
        places = [row["at"] for row in points]
        axes.plot(
            places,
            [100 * row[metric] for row in points],
            marker=marker,
            markersize=4,
            color=colour,
            label=curve,
            linewidth=1,
        )
        axes.fill_between(
            places,
            [100 * row[f"{metric}_low"] for row in points],
            [100 * row[f"{metric}_high"] for row in points],
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
    base = next(row for row in rows if row["curve"] == "none")
    axes.axhline(
        100 * base[metric], color="#000000", linestyle="--", linewidth=1, label="without noise"
    )
    axes.set_xscale("log", base=10 if axis == "b2" else 2)
    axes.set_xlabel(axis)
    axes.grid(alpha=0.25)
