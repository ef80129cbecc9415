"""The frontier: utility against measured leakage, one curve per mechanism over epsilon.

Up is a better model, left is less told. Drawn from the record of ``taciturn reproduce attacks``.
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
}
_OTHER = ("#f0e442", "h")


def frontier_svg(record: Record) -> str:
    """One panel per dataset, as the text of an SVG file; the same record gives the same text.

    >>> row = {"dataset": "d", "curve": "none", "epsilon": None, "leakage": 1.0, "test_auc": 0.9}
    >>> row |= {"leakage_low": 1.0, "leakage_high": 1.0, "commoner_label": 0.6}
    >>> frontier_svg({"rows": [row]}).count("<svg")
    1
    """
    datasets = list(dict.fromkeys(row["dataset"] for row in record["rows"]))
    with style():
        figure = Figure(figsize=(5.2 * len(datasets), 4.6), layout="constrained")
        panels = figure.subplots(1, len(datasets), squeeze=False)[0]
        for panel, dataset in zip(panels, datasets, strict=True):
            _draw(panel, dataset, [row for row in record["rows"] if row["dataset"] == dataset])
        handles, labels = panels[0].get_legend_handles_labels()
        columns = 3 * min(2, len(datasets))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns)
        return to_svg(figure, "frontier")


def _draw(axes: Axes, dataset: str, rows: list[Record]) -> None:
    for curve in dict.fromkeys(row["curve"] for row in rows):
        points = [row for row in rows if row["curve"] == curve and row["leakage"] is not None]
        colour, marker = LOOKS.get(curve, _OTHER)
        leaked = [100 * row["leakage"] for row in points]
        good = [100 * row["test_auc"] for row in points]
        axes.plot(leaked, good, marker=marker, color=colour, label=curve, linewidth=1)
        for row, x, y in zip(points, leaked, good, strict=True):
            ends = [100 * row["leakage_low"], 100 * row["leakage_high"]]
            axes.plot(ends, [y, y], color=colour, alpha=0.4, linewidth=3)
            if row["epsilon"] is not None:
                axes.annotate(
                    f"{row['epsilon']:g}",
                    (x, y),
                    xytext=(4, 4),
                    textcoords="offset points",
                    fontsize=9,
                    color=colour,
                )
    prior = 100 * rows[0]["commoner_label"]
    axes.axvline(prior, color=MUTED, linestyle=":", linewidth=1)
    axes.set_title(f"{dataset}: dotted, the commoner label", fontsize=11)
    axes.set_xlabel("labels told by the best attack on shuffled labels, %")
    axes.set_ylabel("held-out AUC, %")
    axes.grid(color=LINE)
