"""Trains once, all parties in one process. Frames cross the codec as they would on a wire."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TypeAlias

import numpy as np

from taciturn.arrays import FloatArray, IndexArray, LabelArray
from taciturn.crypto.base import DEFAULT_TABLE_MEMORY
from taciturn.crypto.bfv.workers import LocalEngine
from taciturn.crypto.registry import cluster_on_this_machine, on_engine, scheme
from taciturn.data.split import VerticalData
from taciturn.data.tables import FeatureTable
from taciturn.engine.callbacks import Observer, ignore
from taciturn.engine.pair import run_pair, run_star
from taciturn.engine.transcript import Recorder, TranscriptFile
from taciturn.numerics.convergence import assess_convergence
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.logistic import training_loss
from taciturn.numerics.metrics import added_auc, evaluate
from taciturn.parallel import one_thread, usable_cores
from taciturn.privacy.base import Mechanism
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import mechanism, mechanism_class
from taciturn.protocol.agree import agree
from taciturn.protocol.alice import predict as alice_predict
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.registry import TRAININGS as ALICE
from taciturn.protocol.alice.score_noise import noise_key
from taciturn.protocol.bob import predict as bob_predict
from taciturn.protocol.bob.alone import AloneModel
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.labels import released_labels
from taciturn.protocol.bob.registry import TRAININGS as BOB
from taciturn.protocol.events import ClusterJoined, Event, Progress, SimulatedStep
from taciturn.protocol.messages import Role
from taciturn.protocol.outcome import BobTrained, Trained
from taciturn.protocol.steps import ONLY, Program
from taciturn.protocol.terms import Terms
from taciturn.results.training import HiddenBatches
from taciturn.settings.schema import Settings
from taciturn.simulation.coins import Coins
from taciturn.simulation.outcome import Measured, Outcome, hidden_batches, training_run
from taciturn.simulation.record import footer_of, header_of
from taciturn.simulation.reference import Comparison, compare
from taciturn.simulation.shared import Shared
from taciturn.simulation.source import Source, arrange

LinkTap: TypeAlias = Recorder | TranscriptFile
"""What keeps the frames of every link."""


def simulate(
    settings: Settings,
    raw: Source,
    *,
    keep: bool = False,
    record: Path | None = None,
    observe: Observer = ignore,
    coins: Coins | None = None,
) -> Outcome:
    """Trains once.

    ``keep`` keeps the transcript in memory, ``record`` writes it to a file. None for ``coins``
    takes the seed's, or the operating system's.
    """
    coins = coins or Coins.for_seed(settings.seed)
    # A name that is unknown is said before a large file is read.
    mechanism_class(settings.mechanism), scheme(settings.scheme)
    data = arrange(settings, raw, coins.data)
    terms = terms_of(settings, data, coins)
    header = header_of(settings, terms.agreement, coins, data)
    links = terms.agreement.alices
    recorder = Recorder(links)
    with (
        one_thread(),
        nullcontext() if record is None else TranscriptFile(record, header, links=links) as file,
    ):
        taps: list[LinkTap] = ([recorder] if keep else []) + ([file] if file is not None else [])
        with _at_work(settings, terms, observe) as terms_at_work:
            outcome = _Run(settings, terms_at_work, data, coins).outcome(taps, observe)
        if file is not None:
            file.conclude(footer_of(outcome.result, data.labels_train))
    return outcome.with_transcript(recorder.finish(header)) if keep else outcome


def terms_of(settings: Settings, data: VerticalData, coins: Coins) -> Terms:
    """What the parties of a simulation share, the keys of several Alices included."""
    pins = coins.pins([name for name, _ in data.alices])
    columns, rows = len(data.alice_train.columns), data.labels_train.rows
    return agree(settings, columns, rows, parties=pins)


@contextmanager
def _at_work(settings: Settings, terms: Terms, observe: Observer) -> Iterator[Terms]:
    if settings.engine == "local":
        engine = LocalEngine(settings.cores)
        yield replace(terms, scheme=on_engine(terms.scheme, engine))
        return
    if not terms.scheme.protects:
        # Nothing is encrypted: there is nothing to share.
        yield terms
        return
    with cluster_on_this_machine(settings.workers or usable_cores()) as cluster:
        observe(ClusterJoined(len(cluster.workers), cluster.dashboard))
        yield replace(terms, scheme=on_engine(terms.scheme, cluster))


@dataclass(frozen=True, slots=True)
class _Run:
    settings: Settings
    terms: Terms
    data: VerticalData
    coins: Coins

    def outcome(self, taps: list[LinkTap], observe: Observer) -> Outcome:
        data, terms = self.data, self.terms
        start = time.perf_counter()
        weights = terms.agreement.class_weight
        per_epoch = terms.per_epoch(data.labels_train.rows)
        batches = _Batches(observe, data.labels_train.values, weights, per_epoch)
        (alices, bob), ledger, meter = self._converse(taps, batches)
        seconds = time.perf_counter() - start
        shared = Shared.of(alices.values(), bob)
        own = np.concatenate([alice.weights for alice in alices.values()])
        hers = own if shared is None else shared.weights
        his = bob.weights if shared is None or shared.bob_weights is None else shared.bob_weights
        noise = self._noise_keys()
        train, test = (
            joint_scores(alice_rows, bob_rows, hers, his, terms.score_grid, noise)
            for alice_rows, bob_rows in (
                (data.alice_train, data.bob_train),
                (data.alice_test, data.bob_test),
            )
        )
        comparison = compare(data, terms, batches.rows, np.concatenate([hers, his]))
        alone = AloneModel.fit(data.bob_train, data.labels_train, terms, self.coins.bob)
        held_out, alone_scores = data.labels_test.values, alone.scores(data.bob_test)
        losses = batches.losses()
        # Where nobody sees a score on the way, a simulation still knows the end.
        end = training_loss(train, data.labels_train.values, weights)
        measured = Measured(
            train=evaluate(train, data.labels_train.values, terms.log_odds_shift),
            test=evaluate(test, held_out, terms.log_odds_shift),
            comparison=comparison,
            bob_alone=evaluate(alone_scores, held_out, terms.log_odds_shift),
            partner_adds=added_auc(test, alone_scores, held_out),
            arrival=assess_convergence(losses, self._gap(comparison), end),
            iterations=bob.iterations,
            stopped=None if bob.stopped is None else bob.stopped.value,
            hidden_batches=self._hidden_batches(batches.rows, bob.redraws),
            sealed=None if shared is None else shared.describe(terms, data.bob_train),
            seconds=seconds,
            bytes_to_alice=meter.sent["bob"],
            bytes_to_bob=meter.sent["alice"],
            ledger=ledger.statement(),
            ledger_notes=ledger.notes(),
            symmetry=None if bob.opened is None else bob.opened.symmetry(),
        )
        result = training_run(self.settings, terms, data, measured)
        return Outcome(result, terms, data, hers, his, noise, tuple(batches.rows))

    def _noise_keys(self) -> tuple[tuple[slice, bytes], ...]:
        alices = self.data.alices or ((ONLY, slice(0, len(self.data.alice_train.columns))),)
        return tuple((place, noise_key(self.coins.of_alice(name))) for name, place in alices)

    def _converse(
        self, taps: list[LinkTap], observe: _Batches
    ) -> tuple[tuple[dict[str, Trained], BobTrained], Ledger, _Meter]:
        method = mechanism(self.terms.agreement)
        rows, settings = self.data.labels_train.rows, self.settings
        ledger = Ledger(rows, self._assumption(method), settings.budget, settings.delta)
        memory = settings.table_memory << 20
        alices, bob = programs(self.data, self.terms, self.coins, method, ledger, memory)
        meter = observe.meter = _Meter([*alices], taps)
        # A diverging training overflows; the programs refuse what comes of it, in words.
        with np.errstate(over="ignore", invalid="ignore"):
            return run_star(alices, bob, tap=meter, observe=observe), ledger, meter

    def _assumption(self, method: Mechanism) -> str:
        if self.terms.agreement.noise == "continuous":
            return f"noise without rounding, which this is not; {method.assumption}"
        return method.assumption

    def _gap(self, comparison: Comparison) -> tuple[float, float] | None:
        """The distance to the optimum, where noise does not keep the training from it."""
        best = comparison.optimum
        if best is None or not mechanism(self.terms.agreement).lossless:
            return None
        return best.gap, best.loss

    def _hidden_batches(self, batches: list[IndexArray], redraws: int) -> HiddenBatches | None:
        design = mechanism(self.terms.agreement).hidden_batch
        if design is None:
            return None
        fewest = self.terms.too_few(len(self.data.alice_train.columns))
        return hidden_batches(design, fewest, batches, redraws)


def programs(
    data: VerticalData,
    terms: Terms,
    coins: Coins,
    method: Mechanism,
    ledger: Ledger,
    table_memory: int = DEFAULT_TABLE_MEMORY,
) -> tuple[dict[str, Program[Trained]], Program[BobTrained]]:
    """Each Alice's training by her name, and Bob's, ready to be driven."""
    alices = {
        name: AliceInputs(
            table,
            terms,
            coins.of_alice(name),
            table_memory=table_memory,
            identity=coins.identity_of(name),
        )
        for name, table in (data.alice_train_parts or {ONLY: data.alice_train}).items()
    }
    labels = released_labels(data.labels_train, method, ledger, coins.bob)
    bob = BobInputs(
        data.bob_train,
        labels,
        terms,
        method,
        ledger,
        coins.bob,
        table_memory=table_memory,
        partners=tuple(alices),
    )
    train = ALICE[terms.conversation]
    hers = {name: train(inputs) for name, inputs in alices.items()}
    return hers, BOB[terms.conversation](bob)


class _Batches:
    """Notes the true batch of each iteration, which only Bob knows, and passes events on.

    After an iteration it also tells what crossed so far, and at the end of an epoch its loss.
    """

    def __init__(
        self,
        observe: Observer,
        labels: LabelArray,
        class_weight: tuple[float, float] | None,
        per_epoch: int,
    ) -> None:
        self._observe, self._labels, self._class_weight = observe, labels, class_weight
        self._per_epoch = per_epoch
        self.rows: list[IndexArray] = []
        self._losses: dict[int, list[float]] = {}
        self.meter: _Meter | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, Progress):
            everyone = np.arange(len(self._labels))
            self.rows.append(everyone if event.rows is None else event.rows)
            # An empty batch has no loss, so that losses are kept by epoch.
            if len(event.scores):
                loss = training_loss(event.scores, event.of_batch(self._labels), self._class_weight)
                self._losses.setdefault(self._epoch(event), []).append(loss)
        self._observe(event)
        if isinstance(event, Progress) and self.meter is not None:
            self._observe(self._step(event, self.meter))

    def _step(self, event: Progress, meter: _Meter) -> SimulatedStep:
        losses = self._losses.get(self._epoch(event))
        ended = event.done % self._per_epoch == 0
        return SimulatedStep(
            event.done,
            bytes_to_alice=meter.sent["bob"],
            bytes_to_bob=meter.sent["alice"],
            frames_to_alice=meter.frames["bob"],
            frames_to_bob=meter.frames["alice"],
            train_loss=fmean(losses) if losses and ended else None,
        )

    def _epoch(self, event: Progress) -> int:
        return (event.done - 1) // self._per_epoch

    def losses(self) -> list[float]:
        """The mean loss of each epoch, of its batches as they were met."""
        return [fmean(losses) for losses in self._losses.values()]


class _Meter:
    """Counts bytes and frames by sender, over all links, and passes the frames on."""

    def __init__(self, alices: Sequence[str], taps: list[LinkTap]) -> None:
        self.sent: dict[Role, int] = {"alice": 0, "bob": 0}
        self.frames: dict[Role, int] = {"alice": 0, "bob": 0}
        self._numbers = {name: number for number, name in enumerate(alices)}
        self._taps = taps

    def __call__(self, link: str, sender: Role, frame: bytes) -> None:
        self.sent[sender] += len(frame)
        self.frames[sender] += 1
        for tap in self._taps:
            tap(sender, frame, self._numbers[link])


def joint_scores(
    alice: FeatureTable,
    bob: FeatureTable,
    alice_weights: FloatArray,
    bob_weights: FloatArray,
    grid: FixedPoint,
    noise_keys: Sequence[tuple[slice, bytes]],
) -> FloatArray:
    """Scores rows by joint prediction, as the parties would, noise included.

    So with several Alices too: their masks cancel, and leave what each of them rounds and adds.

    ``noise_keys`` has, for each Alice, where her columns stand, and her key.
    """
    total = np.zeros(alice.rows)
    with np.errstate(over="ignore", invalid="ignore"):
        for place, key in noise_keys:
            hers = alice.select(alice.columns[place])
            _, scores = run_pair(
                alice_predict.predict(hers, alice_weights[place], key, grid),
                bob_predict.predict(bob, bob_weights),
            )
            total += scores
            bob, bob_weights = bob.select(()), np.empty(0)
    return total
