"""Attack on the labels of ``mult``, and the AUC of the printed formula with an intercept.

Labels are shuffled before the attacked trainings, one seed for each dataset. The attack is the
likelihood of all releases, as against ``add``.

The paper's datasets are trained without an intercept, here as everywhere. For the two small ones
the training is repeated with one: a column of ones, whose weight learns from the released values
like all others. The split, the batches and the noise are those of Table II, once with the bounds
(b1, b2) that each seed chose without an intercept and once with bounds chosen anew.
"""

from __future__ import annotations

from statistics import fmean

from taciturn_audit.exact_intervals import t_interval
from taciturn_paper import paper
from taciturn_paper.leaks import attack_likelihood
from taciturn_paper.tasks import (
    SMALL,
    Record,
    Request,
    Task,
    available,
    group_by_dataset,
    results,
    seed_plan,
)
from taciturn_paper.utility import VARIANTS, Choice, Rows, judge, search

PRINTED = VARIANTS[0]
# How the intercept is there, and whether the bounds are chosen with it.
WITHOUT, SAME_BOUNDS, OWN_BOUNDS = "without", "with, same bounds", "with, own bounds"


def run(request: Request) -> Record:
    """Both experiments, of every dataset that is here; only the small ones where quick."""
    request.announce("mult: the attack, and an intercept")
    here, missing = available(request.datasets or (SMALL if request.quick else paper.DATASETS))
    attacked = [Task(attacks, name, request.seed, request.quick) for name in here]
    plan = seed_plan(
        [name for name in here if name in SMALL], request.seed, request.seeds, request.quick
    )
    trained = [
        Task(intercepts, name, number, request.quick) for name in plan for number in plan[name]
    ]
    made = results([*attacked, *trained], request.folder, request.progress)
    by_dataset = group_by_dataset(trained, made[len(attacked) :])
    return {
        "quick": request.quick,
        "seed": request.seed,
        "rows": made[: len(attacked)],
        "intercept": [row for name, runs in by_dataset.items() for row in _rows(name, runs)],
        "missing": missing,
    }


def attacks(dataset: str, seed: int, quick: bool) -> Record:
    """The likelihood attack on the printed formula at each epsilon."""
    options = {"dataset": dataset, "seed": seed, "mechanism": "mult", "variant": PRINTED}
    return {"dataset": dataset, "attacks": attack_likelihood(options)}


def intercepts(dataset: str, seed: int, quick: bool) -> list[Record]:
    """Table II's cells of the printed formula, with and without an intercept."""
    rows = Rows.load(dataset, seed)
    with_ones = rows.with_intercept()
    chosen = search(rows, quick=quick, variants=(PRINTED,))
    anew = search(with_ones, quick=quick, variants=(PRINTED,))
    return [
        *_judged(WITHOUT, rows, chosen),
        *_judged(SAME_BOUNDS, with_ones, chosen),
        *_judged(OWN_BOUNDS, with_ones, anew),
    ]


def _judged(intercept: str, rows: Rows, choices: list[Choice]) -> list[Record]:
    scores = judge(rows, [choice.cell for choice in choices])
    return [{"intercept": intercept, **score.to_dict()} for score in scores]


def _rows(dataset: str, runs: list[list[Record]]) -> list[Record]:
    rows = []
    for intercept in (WITHOUT, SAME_BOUNDS, OWN_BOUNDS):
        for epsilon in paper.EPSILONS:
            areas = [
                record["auc"]
                for run in runs
                for record in run
                if (record["intercept"], record["epsilon"]) == (intercept, epsilon)
            ]
            low, high = t_interval(areas)
            rows.append(
                {
                    "dataset": dataset,
                    "intercept": intercept,
                    "epsilon": epsilon,
                    "seeds": len(areas),
                    "auc": fmean(areas),
                    "auc_low": low,
                    "auc_high": high,
                    "runs": areas,
                }
            )
    return rows
