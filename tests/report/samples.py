"""Results of a training, with figures of a real run of breast-cancer."""

from __future__ import annotations

import math

from taciturn.numerics.convergence import Convergence
from taciturn.numerics.metrics import AddedAuc, CalibrationBin, Metrics
from taciturn.privacy.events import Statement
from taciturn.results.cost_preview import Cost
from taciturn.results.parties import Identity, PartyFigures
from taciturn.results.training import Comparison, DataFacts, RunMetrics, TrainingRun
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import Sgd


def metrics(accuracy: float, auc: float) -> Metrics:
    return Metrics(
        rows=114,
        accuracy=accuracy,
        balanced_accuracy=accuracy - 0.004,
        auc=auc,
        pr_auc=0.993,
        ks=0.9619,
        brier=0.0303,
        loss=0.1151,
        calibration_error=0.0441,
        calibration=(CalibrationBin(0.1, 0.0, 37),),
        base_rate=0.6403,
        calibration_ratio=1.02,
        accuracy_low=accuracy - 0.04,
        accuracy_high=min(1.0, accuracy + 0.03),
        auc_low=auc - 0.05,
        auc_high=1.0,
        pr_auc_low=0.9,
        pr_auc_high=0.999,
        ks_low=0.91,
        ks_high=1.0,
        loss_low=0.04,
        loss_high=0.19,
        calibration_ratio_low=0.89,
        calibration_ratio_high=1.17,
    )


def ledger(
    claimed: float, residue: float, label: float, releases: int, assumption: str
) -> Statement:
    total = label * releases
    return Statement(
        claimed, residue, label, releases, residue * releases, total, total, 1e-6, assumption
    )


IDENTITY = Identity(
    role="bob",
    peer="alice",
    mechanism="add",
    scheme="clear",
    key_bits=0,
    columns=3,
    rows=10,
    held_out_rows=2,
    version="1",
)


FIGURES = PartyFigures(
    iterations=3,
    iterations_total=3,
    loss_recent=0.5,
    curve=(),
    seconds=1.0,
    waiting_seconds=0.5,
    computing_seconds=0.5,
    frames_sent=1,
    frames_received=1,
    bytes_sent=10,
    bytes_received=10,
    links=1,
)


TRAINING = TrainingRun(
    data=DataFacts(
        dataset="breast-cancer", rows=455, held_out_rows=114, alice_columns=30, bob_columns=0
    ),
    agreement=Agreement(
        mechanism="none",
        scheme="bfv",
        key_bits=128,
        solver=Sgd(epochs=10, batch_size=16, learning_rate=0.1),
        l2=0.0,
        feature_bits=16,
        residue_bits=16,
    ),
    budget=None,
    encrypted=True,
    seed=7,
    permute_labels=False,
    stopped=None,
    hidden_batches=None,
    sealed=None,
    metrics=RunMetrics(
        train=metrics(0.9868, 0.9981),
        test=metrics(0.9561, 0.98997),
        bob_alone=metrics(0.6403, 0.5),
        partner_adds=AddedAuc(0.48997, 0.471, 0.5),
    ),
    comparison=Comparison(
        centralised=metrics(0.9561, 0.98997),
        max_weight_difference=2.04e-06,
        weight_bound=0.00214,
    ),
    cost=Cost(290, 3.4, bytes_to_alice=57735471, bytes_to_bob=23948893),
    convergence=Convergence(converged=False, diverged=False, last_change=0.0004),
    ledger=ledger(
        math.inf, math.inf, math.inf, 10, "no protection: Alice sees the gradient of every batch"
    ),
    preparation=tuple(
        f"column {place}: numeric; minus 14.03, divided by 3.485" for place in range(30)
    ),
    notes=("batches of 16 rows are no larger than Alice's 30 columns",),
)
