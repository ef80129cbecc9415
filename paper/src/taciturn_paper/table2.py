"""Table II: the baseline, ``add`` and ``mult`` over epsilon, against the paper's.

The paper has one figure per cell; whether it is of one split or several it does not say. Ours are
means over seeds, each with its own split, batches and noise, with two intervals: of the mean, and
of a *single* run, in which the paper's figure would lie in 95 of 100 cases if it were one more run
of ours (Student's t). ``mult`` is taken at the best (b1, b2) that each seed's search finds on
validation rows of its own; learning rate and epochs are the same for all cells of a dataset.
"""

from __future__ import annotations

import math
from statistics import fmean, stdev

from scipy.special import stdtrit

from taciturn.settings.schema import dataset_defaults
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
from taciturn_paper.utility import VARIANTS, Cell, Rows, judge, search

# Mechanism, variant, epsilon.
Key = tuple[str, str | None, float | None]
METRICS = ("accuracy", "auc")


def run(request: Request) -> Record:
    """The table, of every dataset that is here."""
    request.announce("Table II")
    quick = request.quick
    here, missing = available(request.datasets or paper.DATASETS)
    plan = seed_plan(here, request.seed, request.seeds, quick)
    tasks = [Task(one_seed, name, number, quick) for name in here for number in plan[name]]
    by_dataset = group_by_dataset(tasks, results(tasks, request.folder, request.progress))
    return {
        "quick": quick,
        "seed": request.seed,
        "settings": [_settings(name, runs) for name, runs in by_dataset.items()],
        "rows": [row for name, runs in by_dataset.items() for row in _rows(name, runs)],
        "missing": missing,
    }


def one_seed(dataset: str, seed: int, quick: bool) -> Record:
    """Every cell of one dataset for one seed."""
    rows = Rows.load(dataset, seed)
    choices = search(rows, quick=quick)
    cells = [Cell("none"), *(Cell("add", epsilon) for epsilon in paper.EPSILONS)]
    cells += [choice.cell for choice in choices]
    return {
        "seed": seed,
        "train_rows": len(rows.train.labels),
        "test_rows": len(rows.test.labels),
        "commoner_label": rows.test.commoner_label,
        "judged": [score.to_dict() for score in judge(rows, cells)],
        "choices": [choice.to_dict() for choice in choices],
    }


def _settings(dataset: str, runs: list[Record]) -> Record:
    """Common settings of a dataset's cells."""
    usual = dataset_defaults(dataset)
    return {
        "dataset": dataset,
        "batch_size": usual.batch_size,
        "learning_rate": usual.learning_rate,
        "epochs": usual.epochs,
        "seeds": len(runs),
        "train_rows": runs[0]["train_rows"],
        "test_rows": runs[0]["test_rows"],
        "commoner_label": fmean(run["commoner_label"] for run in runs),
    }


def _rows(dataset: str, runs: list[Record]) -> list[Record]:
    by_key = [{_key(record): record for record in run["judged"]} for run in runs]
    keys: list[Key] = [("none", None, None)]
    keys += [("add", None, epsilon) for epsilon in paper.EPSILONS]
    keys += [("mult", variant, epsilon) for variant in VARIANTS for epsilon in paper.EPSILONS]
    return [_row(dataset, key, [scores[key] for scores in by_key], runs) for key in keys]


def _row(dataset: str, key: Key, same: list[Record], runs: list[Record]) -> Record:
    mechanism, variant, epsilon = key
    printed = paper.table2(dataset, mechanism, epsilon)
    row: Record = {
        "dataset": dataset,
        "mechanism": mechanism,
        "variant": variant,
        "epsilon": epsilon,
    }
    for metric in METRICS:
        values = [record[metric] for record in same]
        row |= _figures(metric, values, getattr(printed, metric))
    row["runs"] = [
        {"seed": run["seed"], **{name: record[name] for name in ("b1", "b2", *METRICS)}}
        for run, record in zip(runs, same, strict=True)
    ]
    chosen = [c for run in runs for c in run["choices"] if _key(c) == key]
    row["candidates"] = chosen[0]["candidates"] if chosen else None
    row["left_out"] = chosen[0]["left_out"] if chosen else None
    return row


def _figures(metric: str, values: list[float], printed: float) -> Record:
    """The mean, its interval, a single run's, and where the paper's figure lies."""
    mean, (low, high) = fmean(values), t_interval(values)
    reach = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) * math.sqrt(1 + 1 / len(values))
    return {
        metric: mean,
        f"{metric}_low": low,
        f"{metric}_high": high,
        f"{metric}_run_low": mean - reach,
        f"{metric}_run_high": mean + reach,
        f"paper_{metric}": printed,
        f"{metric}_place": _place(printed, mean, high - mean, reach),
    }


def _place(printed: float, mean: float, of_mean: float, of_run: float) -> str:
    """Position of the paper's figure among our intervals, given by their half-widths.

    >>> [_place(value, 0.9, 0.01, 0.03) for value in (0.905, 0.92, 0.95)]
    ['in the interval of the mean', 'in the interval of a run', 'outside']
    """
    # The paper prints hundredths of a percent: half of one is its own rounding.
    gap = abs(printed - mean) - 0.5e-4
    if gap <= of_mean:
        return "in the interval of the mean"
    return "in the interval of a run" if gap <= of_run else "outside"


def _key(record: Record) -> Key:
    return record["mechanism"], record["variant"], record["epsilon"]
