"""The frontier: utility against measured leakage, one curve per mechanism over epsilon.

Left is less told of labels; up is a better model in the upper panel, and more told of columns in
the lower. Drawn from the record of ``taciturn reproduce attacks``.
"""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from taciturn.report.plots import INK, LINE, MUTED, style, to_svg
from taciturn_paper.record import Record

# Colours that colour-blind readers can tell apart (Okabe and Ito), and a marker for each as well.
LOOKS = {
    "none": (INK, "s"),
    "add": ("#0072b2", "o"),
    "mult printed": ("#999999", "v"),
    "mult one-sided": ("#d55e00", "^"),
    "mult mean-one": ("#e69f00", "D"),
    "hybrid": ("#cc79a7", "P"),
    "label-rr": ("#56b4e9", "*"),
    "sealed": ("#009e73", "X"),
    "mutual": ("#332288", "p"),
}
_OTHER = ("#f0e442", "h")


def frontier_svg(record: Record) -> str:
    """Two panels per dataset, as the text of an SVG file; the same record gives the same text.

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
            _draw(good, rows, "test_auc", names=True)
            _draw(columns, rows, "columns_told")
            good.set_title(f"{dataset}: dotted, the commoner label", fontsize=11)
            good.set_ylabel("held-out AUC, %")
            columns.set_ylabel("columns told to Bob, R2 in %")
            columns.set_ylim(-6, 106)
            columns.set_xlabel("labels told to Alice, shuffled before training, %")
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3 * min(2, len(datasets)))
        return to_svg(figure, "frontier")


def _draw(axes: Axes, rows: list[Record], key: str, *, names: bool = False) -> None:
    """One panel: a figure of each row against the labels told; ``names`` has epsilons by points."""
    for curve in dict.fromkeys(row["curve"] for row in rows):
        points = [row for row in rows if row["curve"] == curve and row["leakage"] is not None]
        colour, marker = LOOKS.get(curve, _OTHER)
        leaked = [100 * row["leakage"] for row in points]
        heights = [100 * row[key] for row in points]
        axes.plot(leaked, heights, marker=marker, color=colour, label=curve, linewidth=1)
        for row, x, y in zip(points, leaked, heights, strict=True):
            ends = [100 * row["leakage_low"], 100 * row["leakage_high"]]
            axes.plot(ends, [y, y], color=colour, alpha=0.4, linewidth=3)
            if names and row["epsilon"] is not None:
                axes.annotate(
                    f"{row['epsilon']:g}",
                    (x, y),
                    xytext=(4, 4),
                    textcoords="offset points",
                    fontsize=9,
                    color=colour,
                )
    axes.axvline(100 * rows[0]["commoner_label"], color=MUTED, linestyle=":", linewidth=1)
    axes.grid(color=LINE)
