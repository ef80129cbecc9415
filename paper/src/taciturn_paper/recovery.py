"""Where ``sparse`` stops as L_RR grows, at a fixed batch and fixed columns; and what foresees it.

Each length is trained once on shuffled labels (the protocol's leak alone) and attacked; beside it
stand the phase transition of basis pursuit and the verdict of ``taciturn check`` on the same
settings. One epoch: with more, least squares averages what single batches leave open.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from taciturn.data.tables import LabelTable
from taciturn.errors import TranscriptError
from taciturn.jobs.train.simulation import simulate
from taciturn.settings.schema import Settings
from taciturn.simulation.source import load_raw
from taciturn_audit.attacks.base import LabelGuess
from taciturn_audit.attacks.known_scores import KnownScoresAttack
from taciturn_audit.attacks.sparse import SparseAttack
from taciturn_audit.preflight import preflight
from taciturn_audit.seats import outcome_view
from taciturn_audit.transition import first_hidden, recoverable
from taciturn_paper.record import Record

LENGTHS = (70, 80, 90, 100, 120, 150, 200, 300)
QUICK_LENGTHS = (70, 120, 200)


def run(
    dataset: str = "sklearn-digits",
    *,
    quick: bool = False,
    seed: int = 0,
    announce: Callable[[str], None] = lambda message: None,
) -> Record:
    """Trains and attacks ``hybrid`` at each length.

    Args:
        dataset: Which of the paper's.
        quick: Three lengths.
        seed: Decides everything.
        announce: Called with what runs now.
    """
    rows = []
    columns, true = 0, 0.0
    for length in QUICK_LENGTHS if quick else LENGTHS:
        announce(f"L_RR {length}")
        options = {"dataset": dataset, "mechanism": "hybrid", "l_rr": length, "epochs": 1}
        settings = Settings.of({**options, "scheme": "clear", "seed": seed}).resolved()
        raw = load_raw(settings)
        outcome = simulate(settings.model_copy(update={"permute_labels": True}), raw, keep=True)
        batches = outcome.result.hidden_batches
        if outcome.transcript is None or batches is None:
            raise TranscriptError("the run kept no transcript")
        view = outcome_view(outcome)
        columns, true = len(view.features.columns), batches.expected_batch
        labels = outcome.data.labels_train
        verdicts = {one.attack: one.verdict for one in preflight(settings, raw).verdicts}
        rows.append(
            {
                "l_rr": batches.l_rr,
                "sparse": _share(SparseAttack().infer(view), labels),
                "known_scores": _share(
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


def _share(guess: LabelGuess, labels: LabelTable) -> Record:
    """How many rows it speaks about, and what share of those it gets right; of the certain too."""
    right = (guess.scores > 0) == (labels.values == 1)
    spoken, sure = int(guess.signal.sum()), int(guess.certain.sum())
    return {
        "spoken": spoken,
        "right": float(np.mean(right[guess.signal])) if spoken else None,
        "certain": sure / labels.rows,
        "certain_right": float(np.mean(right[guess.certain])) if sure else None,
    }
