"""Whole trainings: seconds, the share of encryption, traffic, beside the paper's hours.

At most ``MOST_ITERATIONS`` iterations of each dataset are run, both parties in one process, and
scaled to an epoch and to our default number of epochs. The paper does not say how many epochs its
times are for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from taciturn.crypto.registry import scheme
from taciturn.data.tables import FeatureTable
from taciturn.engine.pair import run_pair
from taciturn.errors import DatasetUnavailable
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.unprotected import Unprotected
from taciturn.protocol.agree import agree
from taciturn.protocol.alice import train_revealed as alice
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.bob import train_revealed as bob
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.messages import Role
from taciturn.settings.schema import Settings
from taciturn.simulation.coins import Coins
from taciturn.simulation.source import arrange, load_raw
from taciturn_paper.clock import TimedScheme

MOST_ITERATIONS = 200
PAPER_SECONDS = {
    "breast-cancer": 554.2,
    "sklearn-digits": 2415.8,
    "census-income": 74049.6,
    "give-me-some-credit": 88321.9,
}


@dataclass(frozen=True, slots=True)
class Training:
    """One dataset's training with one scheme."""

    dataset: str
    scheme: str
    iterations_measured: int
    iterations_per_epoch: int
    ms_per_iteration: float
    encryption_share: float
    epoch_seconds: float
    bytes_to_alice_per_epoch: int
    bytes_to_bob_per_epoch: int
    epochs: int
    training_seconds: float
    paper_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The row for JSON."""
        return asdict(self)


def measure(dataset: str, scheme_name: str = "bfv") -> Training:
    """Runs the first iterations of a dataset's training.

    Raises:
        DatasetUnavailable: Its file is not here.
    """
    papers = {"dataset": dataset, "mechanism": "none", "solver": "sgd"}
    defaults = Settings.of(papers).resolved()
    settings = Settings.of({**papers, "scheme": scheme_name, "epochs": 1, "seed": 1}).resolved()
    timed = TimedScheme(scheme(scheme_name))
    coins = Coins.for_seed(1)
    data = arrange(settings, load_raw(settings), coins.data)
    terms = agree(settings, len(data.alice_train.columns), data.labels_train.rows, timed)
    whole = terms.plan(bytes(32), data.labels_train.rows).iterations
    kept = np.arange(min(data.labels_train.rows, MOST_ITERATIONS * terms.agreement.batch_size))
    features, labels = data.alice_train.take(kept), data.labels_train.take(kept)
    nothing = FeatureTable(features.ids, (), np.empty((len(kept), 0)))
    sent: dict[Role, int] = {"alice": 0, "bob": 0}

    def count(sender: Role, frame: bytes) -> None:
        sent[sender] += len(frame)

    start = time.perf_counter()
    run_pair(
        alice.train(AliceInputs(features, terms, coins.alice)),
        bob.train(
            BobInputs(nothing, labels, terms, Unprotected(), Ledger(len(kept), ""), coins.bob)
        ),
        tap=count,
    )
    seconds = time.perf_counter() - start
    run = terms.plan(bytes(32), len(kept)).iterations
    epochs = defaults.epochs or 1
    return Training(
        dataset=dataset,
        scheme=scheme_name,
        iterations_measured=run,
        iterations_per_epoch=whole,
        ms_per_iteration=1e3 * seconds / run,
        encryption_share=timed.clock.total / seconds,
        epoch_seconds=seconds / run * whole,
        bytes_to_alice_per_epoch=round(sent["bob"] / run * whole),
        bytes_to_bob_per_epoch=round(sent["alice"] / run * whole),
        epochs=epochs,
        training_seconds=seconds / run * whole * epochs,
        paper_seconds=PAPER_SECONDS[dataset],
    )


def measure_all(announce: Callable[[str], None]) -> list[Training]:
    """Every dataset of the paper that is here."""
    measured = []
    for dataset in PAPER_SECONDS:
        announce(f"training {dataset}")
        try:
            measured.append(measure(dataset))
        except DatasetUnavailable:
            continue
    return measured
