"""The matrix of mechanisms, datasets and attacks: utility and leakage.

Utility is the held-out AUC of a training on the true labels. Leakage is what the best attack gets
right in a canary run, whose labels were shuffled before training: one half to the commoner label's
share is what anybody gets, 1 is everything; where no attack applies it is the commoner label's
share. Columns told are what the best attack from Bob's seat explains of Alice's (R2, 0 where he is
left with their means), in a run whose rows of hers were permuted against his. All are means over
seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from taciturn.data.prepare import RawData
from taciturn.jobs.train.simulation import simulate_training
from taciturn.numerics.label_metrics import class_metrics
from taciturn.privacy.solvers import resolved
from taciturn.results.serialise import record_of
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy
from taciturn_audit.adversaries import outcome_view
from taciturn_audit.column_audit import BobAudit
from taciturn_audit.results.audit import Findings
from taciturn_audit.results.columns import ColumnControl, ColumnFindings, ColumnScore, mean_columns
from taciturn_audit.results.runs import mean_findings
from taciturn_audit.runner import examine
from taciturn_paper.datasets import NAMES
from taciturn_paper.tasks import Record, Request, available

EPSILONS = (0.01, 0.1, 1.0, 10.0)
QUICK_EPSILONS = (0.1, 10.0)
SEEDS, QUICK_SEEDS = 3, 1
# The bounds at which mult's readings that learn do best on digits (``reproduce learning``).
B1, B2 = 0.1, 1.0


@dataclass(frozen=True, slots=True)
class Cell:
    """One mechanism with its parameters."""

    curve: str
    settings: Record

    @property
    def epsilon(self) -> float | None:
        """The paper's epsilon, if there is one."""
        epsilon: float | None = self.settings.get("epsilon")
        return epsilon


def cells(quick: bool) -> list[Cell]:
    """Every mechanism, over epsilon where it has one: newton where it has no sgd."""
    epsilons = QUICK_EPSILONS if quick else EPSILONS
    listed = [Cell("none", {"mechanism": "none", "solver": "sgd"})]
    listed += [Cell("add", {"mechanism": "add", "epsilon": eps}) for eps in epsilons]
    for variant in ("printed", "one-sided", "mean-one"):
        listed += [
            Cell(
                f"mult {variant}",
                {"mechanism": "mult", "variant": variant, "epsilon": eps, "b1": B1, "b2": B2},
            )
            for eps in epsilons
        ]
    flipped = {"mechanism": "label-rr", "solver": "sgd"}
    listed += [Cell("label-rr", {**flipped, "epsilon": eps}) for eps in epsilons]
    listed.append(Cell("hybrid", {"mechanism": "hybrid", "epsilon": 1.0}))
    listed.append(Cell("sealed", {"mechanism": "sealed"}))
    listed.append(Cell("mutual", {"mechanism": "mutual"}))
    return listed


def run(request: Request) -> Record:
    """Trainings and attacks of every cell of every dataset that is here.

    A quick run has breast-cancer alone, two epsilons and one seed.
    """
    quick, seed = request.quick, request.seed
    asked = request.datasets or (["breast-cancer"] if quick else NAMES)
    here, missing = available(asked)
    seeds = range(seed, seed + (QUICK_SEEDS if quick else SEEDS))
    rows: list[Record] = []
    plan = cells(quick)
    for dataset, raw in here.items():
        for cell in plan:
            request.announce(f"{dataset}: {cell.curve} {cell.epsilon or ''}".rstrip())
            request.progress(len(rows), len(here) * len(plan))
            rows.append(_row(dataset, raw, cell, seeds))
    return {"seed": seed, "seeds": len(seeds), "quick": quick, "rows": rows, "missing": missing}


def _row(dataset: str, raw: RawData, cell: Cell, seeds: Iterable[int]) -> Record:
    trained, attacked, columns = [], [], []
    for seed in seeds:
        base = {"dataset": dataset, "scheme": "clear", "seed": seed, **cell.settings}
        settings = resolved(Settings.from_mapping(base))
        trained.append(simulate_training(settings, raw).result)
        attacked.append(_attacked(settings.model_copy(update={"permute_labels": True}), raw))
        columns.append(BobAudit(raw).permuted(settings, RunEntropy.for_seed(seed)))
    attacks = _mean_by_name(attacked)
    commoner = fmean(findings.controls[0].accuracy for findings in attacked)
    # Where no attack applies Alice is left with what she can do without any.
    nothing = {
        "name": None,
        **dict.fromkeys(("accuracy", "accuracy_low", "accuracy_high"), commoner),
    }
    best: Record = max(attacks, key=lambda attack: attack["accuracy"], default=nothing)
    return {
        "dataset": dataset,
        "curve": cell.curve,
        **{key: cell.settings.get(key) for key in ("mechanism", "variant", "epsilon", "b1", "b2")},
        "test_accuracy": fmean(class_metrics(run.metrics.test).accuracy for run in trained),
        "test_auc": fmean(class_metrics(run.metrics.test).auc for run in trained),
        "label_epsilon_total": record_of(trained[0].ledger)["label_epsilon_total"],
        "commoner_label": commoner,
        "attacks": attacks,
        "best_attack": best["name"],
        "leakage": best["accuracy"],
        "leakage_low": best["accuracy_low"],
        "leakage_high": best["accuracy_high"],
        **_columns_told(mean_columns(columns)),
    }


def _columns_told(findings: ColumnFindings) -> Record:
    """Figures of Bob's best attack; if none applies, of the best control."""
    scored: Sequence[ColumnScore | ColumnControl] = findings.attacks or findings.controls
    best = max(scored, key=lambda one: -1.0 if one.r2 is None else one.r2)
    attack = best if isinstance(best, ColumnScore) else None
    return {
        "columns_attack": None if attack is None else attack.name,
        "known_rows": None if attack is None else attack.known_rows,
        "columns_told": max(0.0, best.r2 or 0.0),
        "values_told": best.recovered,
    }


def _attacked(settings: Settings, raw: RawData) -> Findings:
    outcome = simulate_training(settings, raw, keep=True)
    return examine(outcome_view(outcome), outcome.data.labels_train).findings


def _mean_by_name(runs: list[Findings]) -> list[Record]:
    return [
        {
            "name": score.name,
            "accuracy": score.accuracy,
            "accuracy_low": max(0.0, score.accuracy_low),
            "accuracy_high": min(1.0, score.accuracy_high),
            "auc": score.auc,
            "decided": score.decided,
            "seconds": score.seconds,
        }
        for score in mean_findings(runs).attacks
    ]
