"""The figures: ``mult`` over b1, b2 and epsilon at the paper's fixed values, ``add`` over epsilon.

The paper says in words what it sees: accuracy and AUC rise and then fall with b1, and with b2, on
all four datasets, and rise with epsilon. Here each curve is judged by its paired differences over
seeds: it *rises* if its peak lies above its first point, and *falls* if above its last, with the
whole 95 % interval of the mean difference. The peak is the highest mean, so that a flat curve
passes for one that rises or falls more often than 1 time in 40; the shape is a description, not a
test.
"""

from __future__ import annotations

from statistics import fmean

from taciturn_audit.exact_intervals import t_interval
from taciturn_paper import paper
from taciturn_paper.tasks import (
    Record,
    Request,
    Task,
    available,
    group_by_dataset,
    results,
    seed_plan,
)
from taciturn_paper.utility import VARIANTS, Cell, Rows, judge

FIGURES = ("fig-b1", "fig-b2", "fig-eps")
METRICS = ("accuracy", "auc")
# Which parameter each figure varies.
AXES = {"fig-b1": "b1", "fig-b2": "b2", "fig-eps": "epsilon"}


def cells(figure: str) -> list[Cell]:
    """Cells of a figure, the baseline first.

    >>> [len(cells(name)) for name in FIGURES]
    [22, 22, 33]
    """
    shown = [Cell("none")]
    eps, b1, b2 = paper.FIXED_EPSILON, paper.FIXED_B1, paper.FIXED_B2
    for variant in VARIANTS:
        if figure == "fig-b1":
            shown += [Cell("mult", eps, variant, bound, b2) for bound in paper.B1_RANGE]
        elif figure == "fig-b2":
            shown += [Cell("mult", eps, variant, b1, bound) for bound in paper.B2_RANGE]
        else:
            shown += [Cell("mult", epsilon, variant, b1, b2) for epsilon in paper.EPSILON_RANGE]
    if figure == "fig-eps":
        shown += [Cell("add", epsilon) for epsilon in paper.EPSILON_RANGE]
    return shown


def run(figure: str, request: Request) -> Record:
    """The curves of one of ``FIGURES``, of every dataset that is here."""
    request.announce(figure)
    here, missing = available(request.datasets or paper.DATASETS)
    plan = seed_plan(here, request.seed, request.seeds, request.quick)
    # How quick it is decides the number of seeds only: cached results serve both.
    tasks = [Task(one_seed, name, number, False) for name in here for number in plan[name]]
    rows: list[Record] = []
    shapes: list[Record] = []
    for name, runs in group_by_dataset(
        tasks, results(tasks, request.folder, request.progress)
    ).items():
        curves = _curves(figure, [record[figure] for record in runs])
        rows += [{"dataset": name, **row} for row in _rows(curves)]
        shapes += [{"dataset": name, **shape} for shape in _shapes(curves)]
    return {
        "figure": figure,
        "axis": AXES[figure],
        "quick": request.quick,
        "seed": request.seed,
        "seeds": {name: len(numbers) for name, numbers in plan.items()},
        "fixed": {
            name: value
            for name, value in (
                ("b1", paper.FIXED_B1),
                ("b2", paper.FIXED_B2),
                ("epsilon", paper.FIXED_EPSILON),
            )
            if name != AXES[figure]
        },
        "rows": rows,
        "shapes": shapes,
        "missing": missing,
    }


def one_seed(dataset: str, seed: int, quick: bool) -> Record:
    """All three figures of one dataset for one seed: many cells cost little more than few."""
    rows = Rows.load(dataset, seed)
    wanted = {figure: cells(figure) for figure in FIGURES}
    distinct = list(dict.fromkeys(cell for some in wanted.values() for cell in some))
    judged = {score.cell: score.to_dict() for score in judge(rows, distinct)}
    return {figure: [judged[cell] for cell in some] for figure, some in wanted.items()}


Curve = dict[float | None, dict[str, list[float]]]


def _curves(figure: str, runs: list[list[Record]]) -> dict[str, Curve]:
    """Values of each metric by seed, per curve and position on the axis."""
    curves: dict[str, Curve] = {}
    for judged in runs:
        for record in judged:
            name = record["mechanism"] + (f" {record['variant']}" if record["variant"] else "")
            place = None if name == "none" else record[AXES[figure]]
            values = curves.setdefault(name, {}).setdefault(place, {"accuracy": [], "auc": []})
            for metric in METRICS:
                values[metric].append(record[metric])
    return curves


def _rows(curves: dict[str, Curve]) -> list[Record]:
    rows = []
    for name, curve in curves.items():
        for place, values in curve.items():
            row: Record = {"curve": name, "at": place}
            for metric in METRICS:
                low, high = t_interval(values[metric])
                row |= {metric: fmean(values[metric])}
                row |= {f"{metric}_low": max(0.0, low), f"{metric}_high": min(1.0, high)}
            row["runs"] = values
            rows.append(row)
    return rows


def _shapes(curves: dict[str, Curve]) -> list[Record]:
    return [
        {"curve": name, "metric": metric, **shape(curve, metric)}
        for name, curve in curves.items()
        if name != "none"
        for metric in METRICS
    ]


def shape(curve: Curve, metric: str) -> Record:
    """Peak of a curve, and whether it rises to the peak and falls from it.

    >>> low, high = {"auc": [0.5, 0.51, 0.52]}, {"auc": [0.9, 0.92, 0.91]}
    >>> found = shape({1.0: low, 2.0: high, 3.0: low}, "auc")
    >>> found["peak"], found["rises"], found["falls"]
    (2.0, True, True)
    """
    places = [place for place in curve if place is not None]
    peak = max(places, key=lambda place: fmean(curve[place][metric]))
    return {
        "peak": peak,
        "rises": _above(curve[peak][metric], curve[places[0]][metric]),
        "falls": _above(curve[peak][metric], curve[places[-1]][metric]),
    }


def _above(first: list[float], second: list[float]) -> bool:
    """Whether the whole interval of the mean paired difference is above 0."""
    return t_interval([a - b for a, b in zip(first, second, strict=True)])[0] > 0
