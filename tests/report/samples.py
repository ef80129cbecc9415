"""Results of a training, with figures of a real run of breast-cancer."""

from __future__ import annotations

import math

from taciturn.numerics.metrics import AddedAuc, CalibrationBin, Metrics
from taciturn.privacy.events import Statement
from taciturn.results.parties import Identity, PartyFigures
from taciturn.results.training import TrainingRun


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
    dataset="breast-cancer",
    mechanism="none",
    epsilon=None,
    noise=None,
    variant=None,
    b1=None,
    b2=None,
    bob_update=None,
    base_mechanism=None,
    budget=None,
    scheme="bfv",
    key_bits=128,
    encrypted=True,
    seed=7,
    permute_labels=False,
    solver="sgd",
    passes=None,
    epochs=10,
    batch_size=16,
    learning_rate=0.1,
    l2=0.0,
    class_weight=None,
    iterations=290,
    stopped=None,
    hidden_batches=None,
    sealed=None,
    alice_columns=30,
    bob_columns=0,
    intercept=False,
    rows_train=455,
    rows_test=114,
    train=metrics(0.9868, 0.9981),
    test=metrics(0.9561, 0.98997),
    centralised=metrics(0.9561, 0.98997),
    bob_alone=metrics(0.6403, 0.5),
    partner_adds=AddedAuc(0.48997, 0.471, 0.5),
    converged=False,
    last_change=0.0004,
    optimum=None,
    max_weight_difference=2.04e-06,
    weight_bound=0.00214,
    seconds=3.4,
    bytes_to_alice=57735471,
    bytes_to_bob=23948893,
    ledger=ledger(
        math.inf, math.inf, math.inf, 10, "no protection: Alice sees the gradient of every batch"
    ),
    preparation=tuple(
        f"column {place}: numeric; minus 14.03, divided by 3.485" for place in range(30)
    ),
    notes=("batches of 16 rows are no larger than Alice's 30 columns",),
)
