"""Trains once, both parties in one process. Frames cross the codec as they would on a wire."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from tacit.arrays import FloatArray
from tacit.config import Agreement, Settings
from tacit.crypto.base import Scheme
from tacit.crypto.registry import scheme
from tacit.data.raw import RawData
from tacit.data.split import VerticalData
from tacit.data.tables import FeatureTable, LabelTable
from tacit.errors import ConfigError
from tacit.numerics.metrics import Metrics, evaluate
from tacit.privacy.base import Mechanism
from tacit.privacy.ledger import Ledger
from tacit.privacy.registry import mechanism
from tacit.protocol.alice import predict as alice_predict
from tacit.protocol.alice import train_revealed as alice_train
from tacit.protocol.batches import BatchPlan
from tacit.protocol.bob import predict as bob_predict
from tacit.protocol.bob import train_revealed as bob_train
from tacit.protocol.messages import Role
from tacit.runtime.driver import Observer, Tap, ignore
from tacit.runtime.pair import run_pair
from tacit.runtime.transcript import Header, Recorder, TranscriptFile
from tacit.simulation.coins import Coins
from tacit.simulation.outcome import Outcome, Traffic
from tacit.simulation.reference import compare
from tacit.simulation.source import arrange


def agree(settings: Settings, chosen: Scheme) -> Agreement:
    """The public part of resolved settings.

    Raises:
        ConfigError: The key size is not one the scheme offers.
    """
    bits = chosen.key_bits[0] if settings.key_bits is None else settings.key_bits
    if bits not in chosen.key_bits:
        offered = " or ".join(str(each) for each in chosen.key_bits)
        raise ConfigError(
            f"{chosen.name} has no keys of {bits} bits", where="--key-bits", hint=f"use {offered}"
        )
    shared = {name: getattr(settings, name) for name in Agreement.model_fields}
    return Agreement.of({**shared, "key_bits": bits})


def simulate(
    settings: Settings,
    raw: RawData,
    *,
    keep: bool = False,
    record: Path | None = None,
    observe: Observer = ignore,
) -> Outcome:
    """Trains once.

    Args:
        settings: Resolved settings; ``seed`` is this run's.
        raw: The rows.
        keep: Keep the transcript in memory.
        record: Write the transcript to this file.
        observe: Called with each event.
    """
    coins = Coins.for_seed(settings.seed)
    chosen, method = scheme(settings.scheme), mechanism(settings.mechanism)
    agreement = agree(settings, chosen)
    data = arrange(settings, raw, coins.data)
    data.labels_train.require_both_classes()
    header = _header(settings, agreement, coins, data)
    recorder = Recorder()
    with nullcontext() if record is None else TranscriptFile(record, header) as file:
        taps: list[Tap] = ([recorder] if keep else []) + ([file] if file is not None else [])
        outcome = _train(settings, agreement, data, chosen, method, coins, taps, observe)
        if file is not None:
            file.conclude(outcome.to_dict())
    if keep:
        return outcome.with_transcript(recorder.finish(header))
    return outcome


def _train(
    settings: Settings,
    agreement: Agreement,
    data: VerticalData,
    chosen: Scheme,
    method: Mechanism,
    coins: Coins,
    taps: list[Tap],
    observe: Observer,
) -> Outcome:
    ledger = Ledger(data.labels_train.rows, method.assumption)
    meter = _Meter(taps)
    start = time.perf_counter()
    # A diverging training overflows; the codec refuses what comes of it, in words.
    with np.errstate(over="ignore", invalid="ignore"):
        alice, bob = run_pair(
            alice_train.train(data.alice_train, agreement, chosen, coins.alice),
            bob_train.train(
                data.bob_train,
                data.labels_train,
                agreement,
                chosen,
                method,
                ledger,
                coins.bob,
                free=int(data.intercept),
            ),
            tap=meter,
            observe=observe,
        )
    seconds = time.perf_counter() - start
    plan = BatchPlan(
        bob_train.batch_seed(coins.bob),
        data.labels_train.rows,
        agreement.batch_size,
        agreement.epochs,
    )
    return Outcome(
        settings=settings,
        agreement=agreement,
        data=data,
        alice_weights=alice,
        bob_weights=bob,
        train=_joint_metrics(data.alice_train, data.bob_train, data.labels_train, alice, bob),
        test=_joint_metrics(data.alice_test, data.bob_test, data.labels_test, alice, bob),
        comparison=compare(data, agreement, plan, np.concatenate([alice, bob])),
        iterations=plan.iterations,
        seconds=seconds,
        traffic=Traffic(to_alice=meter.sent["bob"], to_bob=meter.sent["alice"]),
        ledger=ledger.statement(),
    )


class _Meter:
    """Counts bytes by sender and passes the frames on."""

    def __init__(self, taps: list[Tap]) -> None:
        self.sent: dict[Role, int] = {"alice": 0, "bob": 0}
        self._taps = taps

    def __call__(self, sender: Role, frame: bytes) -> None:
        self.sent[sender] += len(frame)
        for tap in self._taps:
            tap(sender, frame)


def _header(settings: Settings, agreement: Agreement, coins: Coins, data: VerticalData) -> Header:
    """What a transcript says of its run: enough to load the same rows and to replay Alice.

    Bob's coins are left out: they make his key.
    """
    return {
        "kind": "simulation",
        "agreement": agreement.model_dump(),
        "settings": settings.model_dump(),
        "coins": {**coins.data.to_dict(), "alice": coins.alice.key.hex()},
        "features_digest": data.alice_train.digest(),
    }


def _joint_metrics(
    alice: FeatureTable,
    bob: FeatureTable,
    labels: LabelTable,
    alice_weights: FloatArray,
    bob_weights: FloatArray,
) -> Metrics:
    """Scores rows by joint prediction, as two parties would."""
    _, scores = run_pair(
        alice_predict.predict(alice, alice_weights), bob_predict.predict(bob, bob_weights)
    )
    return evaluate(scores, labels.values)
