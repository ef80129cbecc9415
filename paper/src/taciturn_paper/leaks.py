"""Test of the paper's safety claims: one seed of a dataset, labels shuffled before training.

The baseline is attacked as the paper attacks it; ``hybrid`` by a linear program, whose time stands
beside the paper's count of enumerations, and by the known scores; ``add`` by the likelihood of all
its releases, beside the epsilon that the paper states per release. ``hybrid`` is also trained on
the true labels, beside centralised training on the same batches: is it lossless? The two large
datasets get one epoch of ``none`` and ``hybrid``, and ten of ``add``.

``run_recovery`` shows where ``sparse`` stops as L_RR grows, at a fixed batch and fixed columns.
Each length is trained once on shuffled labels and attacked; beside it stand the phase transition of
basis pursuit and the verdict of ``taciturn check`` on the same settings. One epoch: with more,
least squares averages what single batches leave open.
"""

from __future__ import annotations

import numpy as np

from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import RawData
from taciturn.errors import TranscriptError
from taciturn.jobs.train.simulation import simulate_training
from taciturn.numerics.label_metrics import ModelMetrics, class_metrics
from taciturn.privacy.solvers import resolved
from taciturn.results.serialise import record_of
from taciturn.settings.schema import Settings
from taciturn_audit.adversaries import outcome_view
from taciturn_audit.advice import first_hidden, recoverable
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.attacks.known_scores import KnownScoresAttack
from taciturn_audit.attacks.linear import ExactSolveAttack
from taciturn_audit.attacks.released_residues import LikelihoodAttack
from taciturn_audit.attacks.sparse import SparseAttack
from taciturn_audit.preflight import preflight
from taciturn_audit.runner import examine
from taciturn_paper import paper
from taciturn_paper.tasks import SMALL, Record, Request, Task, available, load, results

EPSILONS = (1.0, 10.0)
# For the solvers of an attack, in the units of its guess.
MOST_WORK = 80_000.0


def run(request: Request) -> Record:
    """Attacks on every dataset that is here; the two small ones alone where it is to be quick."""
    request.announce("what the mechanisms tell")
    here, missing = available(request.datasets or (SMALL if request.quick else paper.DATASETS))
    tasks = [Task(one_seed, name, request.seed, False) for name in here]
    return {
        "quick": request.quick,
        "seed": request.seed,
        "rows": results(tasks, request.folder, request.progress),
        "missing": missing,
    }


def one_seed(dataset: str, seed: int, quick: bool) -> Record:
    """One dataset's leaks."""
    base = {"dataset": dataset, "seed": seed, "scheme": "clear"}
    raw = load(dataset)
    few = {} if dataset in SMALL else {"epochs": 1}
    hybrid = {**base, **few, "mechanism": "hybrid"}
    sparse, known = SparseAttack(work=MOST_WORK), KnownScoresAttack(work=MOST_WORK)
    return {
        "dataset": dataset,
        "none": _attacked(
            {**base, **few, "mechanism": "none", "solver": "sgd"}, raw, (ExactSolveAttack(),)
        ),
        "hybrid": _attacked(hybrid, raw, (sparse, known)),
        "hybrid_trained": _trained(hybrid, raw),
        "add": _likelihoods({**base, "mechanism": "add"}, raw),
    }


def attack_likelihood(options: Record) -> list[Record]:
    """The likelihood attack on a mechanism with released residues, at each of ``EPSILONS``."""
    return _likelihoods({**options, "scheme": "clear"}, load(options["dataset"]))


def _likelihoods(options: Record, raw: RawData) -> list[Record]:
    return [
        _attacked({**options, "epsilon": epsilon}, raw, (LikelihoodAttack(),))
        for epsilon in EPSILONS
    ]


def _attacked(options: Record, raw: RawData, attacks: tuple[Attack, ...]) -> Record:
    settings = resolved(Settings.from_mapping({**options, "permute_labels": True}))
    outcome = simulate_training(settings, raw, keep=True)
    findings = examine(outcome_view(outcome), outcome.data.labels_train, attacks=attacks).findings
    run = outcome.result
    return {
        "epsilon": run.agreement.epsilon,
        "epochs": settings.epochs,
        "iterations": run.cost.iterations,
        "columns": len(outcome.data.alice_train.columns),
        "commoner_label": findings.controls[0].accuracy,
        "ledger": record_of(run.ledger),
        "l_rr": None if run.hidden_batches is None else run.hidden_batches.l_rr,
        "attacks": [record_of(score) for score in findings.attacks],
        "skipped": [record_of(skipped) for skipped in findings.skipped],
    }


def _trained(options: Record, raw: RawData) -> Record:
    run = simulate_training(resolved(Settings.from_mapping(options)), raw).result
    return {
        "max_weight_difference": run.comparison.max_weight_difference,
        "weight_bound": run.comparison.weight_bound,
        "epochs": run.agreement.rounds if run.by_batches else None,
        "test": _figures(run.metrics.test),
        "centralised": _figures(run.comparison.centralised),
    }


def _figures(metrics: ModelMetrics | None) -> Record | None:
    if metrics is None:
        return None
    classes = class_metrics(metrics)
    return {"accuracy": classes.accuracy, "auc": classes.auc}


LENGTHS = (70, 80, 90, 100, 120, 150, 200, 300)
QUICK_LENGTHS = (70, 120, 200)


def run_recovery(request: Request, dataset: str = "sklearn-digits") -> Record:
    """Attacks on ``hybrid`` at each length."""
    rows, seed, raw = [], request.seed, load(dataset)
    columns, true = 0, 0.0
    for length in QUICK_LENGTHS if request.quick else LENGTHS:
        request.announce(f"L_RR {length}")
        options = {"dataset": dataset, "mechanism": "hybrid", "l_rr": length, "epochs": 1}
        settings = resolved(Settings.from_mapping({**options, "scheme": "clear", "seed": seed}))
        outcome = simulate_training(
            settings.model_copy(update={"permute_labels": True}), raw, keep=True
        )
        batches = outcome.result.hidden_batches
        if batches is None:
            raise TranscriptError("the run hid no batches")
        view = outcome_view(outcome)
        columns, true = len(view.features.columns), batches.expected_batch
        labels = outcome.data.labels_train
        verdicts = {
            verdict.attack: verdict.verdict for verdict in preflight(settings, raw).verdicts
        }
        rows.append(
            {
                "l_rr": batches.l_rr,
                "sparse": _shares(SparseAttack().infer(view), labels),
                "known_scores": _shares(
                    KnownScoresAttack(nodes=10, work=10_000.0).infer(view), labels
                ),
                "recoverable": recoverable(length, columns, true),
                "check_sparse": verdicts["sparse"],
                "check_known_scores": verdicts["known-scores"],
            }
        )
    return {
        "dataset": dataset,
        "seed": seed,
        "alice_columns": columns,
        "true_rows": true,
        "transition": first_hidden(columns, true),
        "rows": rows,
    }


def _shares(guess: LabelGuess, labels: LabelTable) -> Record:
    """Number of guessed rows, share of them right, share of rows certain, share of these right."""
    right = (guess.scores > 0) == (labels.values == 1)
    spoken, sure = int(guess.signal.sum()), int(guess.certain.sum())
    return {
        "spoken": spoken,
        "right": float(np.mean(right[guess.signal])) if spoken else None,
        "certain": sure / labels.rows,
        "certain_right": float(np.mean(right[guess.certain])) if sure else None,
    }
