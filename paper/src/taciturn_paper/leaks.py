"""What the paper says of safety, tried: one seed of a dataset, labels shuffled before training.

The baseline is attacked as the paper attacks it; ``hybrid`` by a linear program, whose time stands
beside the paper's count of enumerations, and by the known scores; ``add`` by the likelihood of all
its releases, beside the epsilon that the paper states per release. ``hybrid`` is also trained on
the true labels, beside centralised training on the same batches: is it lossless?

The two large datasets get one epoch of ``none`` and ``hybrid``, and ten of ``add``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from taciturn.data.prepare import RawData
from taciturn.errors import TranscriptError
from taciturn.numerics.metrics import Metrics
from taciturn.results.serialise import record_of
from taciturn.settings.schema import Settings
from taciturn.simulation.run import simulate
from taciturn.simulation.source import load_raw
from taciturn_audit.attacks.base import LabelAttack
from taciturn_audit.attacks.exact_solve import ExactSolveAttack
from taciturn_audit.attacks.known_scores import KnownScoresAttack
from taciturn_audit.attacks.likelihood import LikelihoodAttack
from taciturn_audit.attacks.sparse import SparseAttack
from taciturn_audit.runner import examine
from taciturn_audit.views.alice_view import AliceView
from taciturn_paper import paper
from taciturn_paper.pieces import SMALL, Piece, Progress, available, results
from taciturn_paper.record import Record

EPSILONS = (1.0, 10.0)
# For the solvers of an attack, in the units of its guess.
MOST_WORK = 80_000.0


def run(
    *,
    quick: bool = False,
    seed: int = 0,
    datasets: Sequence[str] = (),
    folder: Path | None = None,
    announce: Callable[[str], None] = lambda message: None,
    progress: Progress = lambda done, total: None,
) -> Record:
    """Attacks every dataset that is here.

    Args:
        quick: The two small datasets alone.
        seed: Decides everything.
        datasets: These alone; all where empty.
        folder: Where results are kept; None keeps nothing.
        announce: Called with what runs now.
        progress: Called with how much is done, and of how much.
    """
    announce("what the mechanisms tell")
    here, missing = available(datasets or (SMALL if quick else paper.DATASETS))
    pieces = [Piece(one_seed, name, seed, False) for name in here]
    return {
        "quick": quick,
        "seed": seed,
        "rows": results(pieces, folder, progress),
        "missing": missing,
    }


def one_seed(dataset: str, seed: int, quick: bool) -> Record:
    """One dataset's leaks."""
    base = {"dataset": dataset, "seed": seed, "scheme": "clear"}
    raw = load_raw(Settings.of({**base, "mechanism": "none", "solver": "sgd"}).resolved())
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
        "add": [
            _attacked({**base, "mechanism": "add", "epsilon": epsilon}, raw, (LikelihoodAttack(),))
            for epsilon in EPSILONS
        ],
    }


def _attacked(options: Record, raw: RawData, attacks: tuple[LabelAttack, ...]) -> Record:
    settings = Settings.of({**options, "permute_labels": True}).resolved()
    outcome = simulate(settings, raw, keep=True)
    if outcome.transcript is None:
        raise TranscriptError("the run kept no transcript")
    view = AliceView.of(outcome.transcript, outcome.data.alice_train)
    findings = examine(view, outcome.data.labels_train, attacks=attacks).findings
    run = outcome.result
    return {
        "epsilon": run.epsilon,
        "epochs": settings.epochs,
        "iterations": run.iterations,
        "columns": len(outcome.data.alice_train.columns),
        "commoner_label": findings.controls[0].accuracy,
        "ledger": record_of(run.ledger),
        "l_rr": None if run.hidden_batches is None else run.hidden_batches.l_rr,
        "attacks": [record_of(score) for score in findings.attacks],
        "skipped": [record_of(skipped) for skipped in findings.skipped],
    }


def _trained(options: Record, raw: RawData) -> Record:
    run = simulate(Settings.of(options).resolved(), raw).result
    return {
        "max_weight_difference": run.max_weight_difference,
        "weight_bound": run.weight_bound,
        "epochs": run.epochs,
        "test": _figures(run.test),
        "centralised": _figures(run.centralised),
    }


def _figures(metrics: Metrics) -> Record:
    return {"accuracy": metrics.accuracy, "auc": metrics.auc}
