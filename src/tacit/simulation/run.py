"""Trains once, both parties in one process. Frames cross the codec as they would on a wire."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass
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
from tacit.privacy.ledger import Ledger
from tacit.privacy.registry import mechanism, require_mechanism
from tacit.protocol.alice import predict as alice_predict
from tacit.protocol.alice.registry import TRAININGS as ALICE
from tacit.protocol.bob import predict as bob_predict
from tacit.protocol.bob.batch_seed import batch_seed
from tacit.protocol.bob.registry import TRAININGS as BOB
from tacit.protocol.messages import Role
from tacit.protocol.terms import Terms
from tacit.runtime.driver import Observer, Tap, ignore
from tacit.runtime.pair import run_pair
from tacit.runtime.transcript import Recorder, TranscriptFile
from tacit.simulation.coins import Coins
from tacit.simulation.outcome import Outcome, Traffic
from tacit.simulation.record import footer_of, header_of
from tacit.simulation.reference import compare
from tacit.simulation.source import arrange


def agree(settings: Settings, chosen: Scheme) -> Agreement:
    """The public part of resolved settings.

    Raises:
        ConfigError: The key size is not one the scheme offers, or the mechanism is unknown.
    """
    require_mechanism(settings.mechanism)
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
    chosen = scheme(settings.scheme)
    terms = Terms(agree(settings, chosen), chosen)
    data = arrange(settings, raw, coins.data)
    header = header_of(settings, terms.agreement, coins, data)
    recorder = Recorder()
    with nullcontext() if record is None else TranscriptFile(record, header) as file:
        taps: list[Tap] = ([recorder] if keep else []) + ([file] if file is not None else [])
        outcome = _Run(settings, terms, data, coins).outcome(taps, observe)
        if file is not None:
            file.conclude(footer_of(outcome.to_dict(), data.labels_train))
    return outcome.with_transcript(recorder.finish(header)) if keep else outcome


@dataclass(frozen=True, slots=True)
class _Run:
    """Everything a run needs, put together."""

    settings: Settings
    terms: Terms
    data: VerticalData
    coins: Coins

    def outcome(self, taps: list[Tap], observe: Observer) -> Outcome:
        data, terms = self.data, self.terms
        start = time.perf_counter()
        (alice, bob), ledger, meter = self._converse(taps, observe)
        seconds = time.perf_counter() - start
        plan = terms.plan(batch_seed(self.coins.bob), data.labels_train.rows)
        return Outcome(
            settings=self.settings,
            terms=terms,
            data=data,
            alice_weights=alice,
            bob_weights=bob,
            train=_joint_metrics(data.alice_train, data.bob_train, data.labels_train, alice, bob),
            test=_joint_metrics(data.alice_test, data.bob_test, data.labels_test, alice, bob),
            comparison=compare(data, terms, plan, np.concatenate([alice, bob])),
            iterations=plan.iterations,
            seconds=seconds,
            traffic=Traffic(to_alice=meter.sent["bob"], to_bob=meter.sent["alice"]),
            ledger=ledger.statement(),
        )

    def _converse(
        self, taps: list[Tap], observe: Observer
    ) -> tuple[tuple[FloatArray, FloatArray], Ledger, _Meter]:
        method = mechanism(self.terms.agreement)
        ledger, meter = Ledger(self.data.labels_train.rows, method.assumption), _Meter(taps)
        alice = ALICE[method.conversation](self.data.alice_train, self.terms, self.coins.alice)
        bob = BOB[method.conversation](
            self.data.bob_train,
            self.data.labels_train,
            self.terms,
            method,
            ledger,
            self.coins.bob,
        )
        # A diverging training overflows; the programs refuse what comes of it, in words.
        with np.errstate(over="ignore", invalid="ignore"):
            return run_pair(alice, bob, tap=meter, observe=observe), ledger, meter


class _Meter:
    """Counts bytes by sender and passes the frames on."""

    def __init__(self, taps: list[Tap]) -> None:
        self.sent: dict[Role, int] = {"alice": 0, "bob": 0}
        self._taps = taps

    def __call__(self, sender: Role, frame: bytes) -> None:
        self.sent[sender] += len(frame)
        for tap in self._taps:
            tap(sender, frame)


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
