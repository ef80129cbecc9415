"""Train once, all parties in one process, by the programs that parties run between machines.

Messages, bytes and transcripts are those of a session: the handshake, the training, and the scores
of rows at its end. Only what no party could compute is computed in the clear, after the last
message: the weights where they stay shared, with them the scores of the training rows, which such a
session does not open, and the comparison with centralised training.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TypeAlias, cast

import numpy as np

from taciturn.arrays import FloatArray, IndexArray
from taciturn.crypto.base import DEFAULT_TABLE_MEMORY
from taciturn.crypto.bfv.workers import LocalEngine
from taciturn.crypto.registry import cluster_on_this_machine, on_engine, scheme
from taciturn.crypto.signatures import KeyIdentity
from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import RawData
from taciturn.data.split import VerticalData
from taciturn.data.tables import FeatureTable, SideTables
from taciturn.engine.callbacks import Observer, noop
from taciturn.engine.pair import run_star
from taciturn.engine.transcript import Recorder, Transcript, TranscriptFile
from taciturn.errors import DivergenceError
from taciturn.jobs.train.consent import asked_of
from taciturn.jobs.train.disclosure_text import disclosure_text
from taciturn.jobs.train.estimate import estimate_cost
from taciturn.jobs.train.exposure import sums_alone
from taciturn.jobs.train.model_quality import baseline_of, model_metrics
from taciturn.jobs.train.record import footer_of, header_of
from taciturn.jobs.train.reference import SharedModel, compare
from taciturn.numerics.convergence import FEW_ROWS, Convergence, Opened, assess_convergence
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.label_metrics import (
    labels_loss,
    most_loss,
)
from taciturn.numerics.regression_metrics import RegressionMetrics
from taciturn.numerics.row_changes import RowChanges
from taciturn.numerics.row_products import row_products
from taciturn.numerics.whitening import centring_offset
from taciturn.parallel import one_thread, usable_cores
from taciturn.party.bob_inputs import BobTrainingInputs
from taciturn.party.side_inputs import SideInputs
from taciturn.privacy.batch_response import acceptance, conditioning
from taciturn.privacy.events import ExposedColumns
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import mechanism_class
from taciturn.protocol.agree import agree
from taciturn.protocol.alice.score_noise import ScoreNoise
from taciturn.protocol.bob.forecast import forecast
from taciturn.protocol.bob.inputs import released_labels
from taciturn.protocol.events import ClusterJoined, Event, Progress, SimulatedStep
from taciturn.protocol.joint_seed import seed_of
from taciturn.protocol.messages import Role
from taciturn.protocol.opened_scores import OpenedScores
from taciturn.protocol.outcome import BobTrained
from taciturn.protocol.party import PartyResult
from taciturn.protocol.scores import at_scale, require_finite
from taciturn.protocol.steps import ONLY, Program
from taciturn.protocol.terms import SummedLosses, Terms
from taciturn.results.cost_preview import Cost, Estimate
from taciturn.results.training import (
    Comparison,
    DataFacts,
    FeatureParty,
    HiddenBatches,
    RunMetrics,
    TrainingRun,
)
from taciturn.setting_syntax import Hint
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, Source, arrange

LinkTap: TypeAlias = Recorder | TranscriptFile
"""What keeps the frames of every link."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: its result, both tables, both parties' weights, and the conversation.

    ``train_scores`` are those of the training rows, with the noise of a joint prediction, and
    ``held_out_scores`` those that Bob's program received, if any. ``noise_keys`` has, of each
    Alice, where her columns stand and the key of her scores' noise. ``loss_shares`` are Alice's and
    Bob's shares of the sum of the held-out rows' losses, where a study judges by it.
    """

    result: TrainingRun
    terms: Terms
    data: VerticalData = field(repr=False)
    alice_weights: FloatArray = field(repr=False)
    bob_weights: FloatArray = field(repr=False)
    train_scores: FloatArray = field(repr=False)
    noise_keys: tuple[tuple[slice, bytes], ...] = field(repr=False)
    batches: tuple[IndexArray, ...] = field(default=(), repr=False)
    transcript: Transcript | None = field(default=None, repr=False)
    held_out_scores: FloatArray | None = field(default=None, repr=False)
    loss_shares: tuple[int, int] | None = field(default=None, repr=False)


def simulate_training(
    settings: Settings,
    raw: Source,
    *,
    keep: bool = False,
    record: Path | None = None,
    observe: Observer = noop,
    entropy: RunEntropy | None = None,
    summed: SummedLosses | None = None,
) -> Outcome:
    """Train once.

    ``keep`` keeps the transcript in memory, ``record`` writes it to a file. None for ``entropy``
    takes the seed's, or the operating system's. ``summed`` is that of a study's training.
    """
    entropy = entropy or RunEntropy.for_seed(settings.seed)
    # A name that is unknown is said before a large file is read.
    mechanism_class(settings.mechanism), scheme(settings.scheme)
    data = arrange(settings, raw, entropy.data)
    terms = simulated_terms(settings, data, entropy)
    terms = terms if summed is None else terms.with_sum(summed)
    header = header_of(settings, terms.agreement, entropy, data)
    recorder = Recorder(terms.agreement.alices)
    with (
        one_thread(),
        nullcontext() if record is None else TranscriptFile(record, header) as file,
    ):
        taps: list[LinkTap] = ([recorder] if keep else []) + ([file] if file is not None else [])
        with _at_work(settings, terms, observe) as terms_at_work:
            (outcome,) = _Run(settings, terms_at_work, data, entropy).outcomes(taps, observe)
        if file is not None:
            file.conclude(footer_of(outcome.result, data.labels_train))
    return replace(outcome, transcript=recorder.finish(header)) if keep else outcome


def simulate_search(
    settings: Settings, data: VerticalData, entropy: RunEntropy, penalties: Sequence[float]
) -> list[TrainingRun]:
    """Train a model for each of several penalties, in one search; ``settings`` have the rest."""
    terms = simulated_terms(settings, data, entropy).over(penalties)
    with one_thread(), _at_work(settings, terms, noop) as terms_at_work:
        outcomes = _Run(settings, terms_at_work, data, entropy).outcomes([], noop)
        return [outcome.result for outcome in outcomes]


def simulated_terms(settings: Settings, data: VerticalData, entropy: RunEntropy) -> Terms:
    """Terms of a simulation, with the keys of several Alices."""
    pins = entropy.pins([name for name, _ in data.alices])
    columns, rows = len(data.alice_train.columns), data.labels_train.rows
    # Tables that are given as they are know it better than the settings.
    settings = settings.model_copy(update={"intercept": data.intercept})
    return agree(settings, columns, rows, parties=pins)


def estimate(settings: Settings, raw: RawData) -> Estimate:
    """Duration and traffic, measured on a sample of the rows or in the first iterations."""
    entropy = RunEntropy.for_seed(settings.seed)
    data = arrange(settings, raw, entropy.data)
    return estimate_cost(
        simulated_terms(settings, data, entropy),
        data.labels_train.rows,
        [*data.alice_train_parts.values()] or [data.alice_train],
        data.bob_train,
        held_out=data.labels_test.rows if data.held_out else 0,
        table_memory=settings.table_memory << 20,
        cores=settings.cores,
    )


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
    entropy: RunEntropy

    def outcomes(self, taps: list[LinkTap], observe: Observer) -> Iterator[Outcome]:
        """One for each model that the conversation trains."""
        data, terms = self.data, self.terms
        start = time.perf_counter()
        weights = terms.agreement.class_weight
        per_epoch = terms.per_epoch(data.labels_train.rows)
        batches = _Batches(observe, data.labels_train, weights, per_epoch)
        (alices, bobs), ledger, meter = self._converse(taps, batches)
        spoken = _Spoken(batches, ledger, meter, time.perf_counter() - start)
        for number, bob in enumerate(bobs.models):
            trained = {name: alice.models[number] for name, alice in alices.items()}
            yield _TrainedModel(self, terms.of_model(number), trained, bob, spoken).outcome()

    def _converse(
        self, taps: list[LinkTap], observe: _Batches
    ) -> tuple[tuple[dict[str, PartyResult], PartyResult], Ledger, _Meter]:
        rows, settings = self.data.labels_train.rows, self.settings
        ledger = Ledger(rows, self._assumption, settings.budget, settings.delta)
        memory = settings.table_memory << 20
        alices, bob = programs(self.data, self.terms, self.entropy, ledger, memory)
        meter = observe.meter = _Meter([*alices], taps)
        # A diverging training overflows; the programs refuse what comes of it, in words.
        with np.errstate(over="ignore", invalid="ignore"):
            return run_star(alices, bob, tap=meter, observe=observe), ledger, meter

    @property
    def _assumption(self) -> str:
        assumption = self.terms.mechanism.assumption
        if self.terms.agreement.noise == "continuous":
            return f"noise without rounding, which this is not; {assumption}"
        return assumption


@dataclass(frozen=True)
class _TrainedModel:
    """One model of a conversation that has ended, with what all parties have of it."""

    run: _Run
    terms: Terms
    alices: dict[str, PartyResult]
    bobs: PartyResult
    spoken: _Spoken

    def outcome(self) -> Outcome:
        alice_weights, bob_weights = self.weights
        return Outcome(
            self._result(),
            self.terms,
            self.run.data,
            alice_weights,
            bob_weights,
            self.scores[0],
            self.noise_keys,
            tuple(self.spoken.batches.rows),
            held_out_scores=self.bobs.held_out_scores,
            loss_shares=_loss_shares(self.alices, self.bobs),
        )

    @cached_property
    def bob(self) -> BobTrained:
        return cast(BobTrained, self.bobs.trained)

    @cached_property
    def shared(self) -> SharedModel | None:
        return SharedModel.from_trained([alice.trained for alice in self.alices.values()], self.bob)

    @cached_property
    def places(self) -> list[slice]:
        """Where the columns of each Alice stand."""
        return [place for _, place in self.run.data.alices] or [
            slice(0, len(self.run.data.alice_train.columns))
        ]

    @cached_property
    def weights(self) -> tuple[FloatArray, FloatArray]:
        """The Alices' weights and Bob's; shares are put together, which no party can."""
        alice = np.concatenate([alice.trained.weights for alice in self.alices.values()])
        bob = self.bob.weights
        if self.shared is not None:
            alice = self.shared.weights
            bob = bob if self.shared.bob_weights is None else self.shared.bob_weights
        if self.terms.centred:
            # In the whole model Bob's intercept absorbs the means of all columns.
            bob = bob.copy()
            for place, party in zip(self.places, self.alices.values(), strict=True):
                bob[-1] += centring_offset(alice[place], party.trained.means)
        return alice, bob

    @cached_property
    def noise_keys(self) -> tuple[tuple[slice, bytes], ...]:
        keys = (alice.noise_key for alice in self.alices.values())
        return tuple(zip(self.places, keys, strict=True))

    @cached_property
    def scores(self) -> tuple[FloatArray, FloatArray]:
        """Of the training rows and of the held-out ones; those that no program opened, in clear."""
        data, whole = self.run.data, (*self.weights, self.terms.score_grid, self.noise_keys)
        train, test = self.bobs.train_scores, self.bobs.held_out_scores
        if train is None:
            train = joint_scores(data.alice_train, data.bob_train, *whole)
        if test is None:
            # Without held-out rows the test tables are the training tables.
            test = train
            if data.held_out:
                test = joint_scores(data.alice_test, data.bob_test, *whole)
        return train, test

    @cached_property
    def comparison(self) -> Comparison:
        entropy, rows = self.run.entropy, self.spoken.batches.rows
        seed, wanted = seed_of(entropy.alice, entropy.bob), self.run.settings.compare_optimum
        return compare(self.run.data, self.terms, rows, np.concatenate(self.weights), seed, wanted)

    def _result(self) -> TrainingRun:
        settings, data, terms = self.run.settings, self.run.data, self.terms
        ledger, meter, facts = self.spoken.ledger, self.spoken.meter, _facts(settings, data)
        columns = len(data.bob_train.columns)
        planned = forecast(terms, facts.rows, columns, delta=settings.delta).statement()
        return TrainingRun(
            data=facts,
            agreement=terms.agreement,
            budget=settings.budget,
            encrypted=terms.scheme.protects,
            seed=settings.seed,
            permute_labels=settings.permute_labels,
            permute_rows=settings.permute_rows,
            stopped=None if self.bob.stopped is None else self.bob.stopped.value,
            hidden_batches=self._hidden_batches(),
            sealed=None if self.shared is None else self.shared.describe(terms, data.bob_train),
            comparison=self.comparison,
            metrics=self._metrics(),
            cost=Cost(
                self.bob.iterations, self.spoken.seconds, meter.sent["bob"], meter.sent["alice"]
            ),
            ledger=replace(ledger.statement(), columns=_exposed(terms, data)),
            preparation=tuple(data.preparation.describe()),
            notes=(
                *data.notes,
                *_weighing(terms.agreement.class_weight),
                *terms.mechanism.notes(),
                *sums_alone(terms),
                *_unhidden(terms, self.shared),
                *ledger.notes(),
            ),
            convergence=self._convergence(),
            opened_change=self.bob.opened_change,
            scores_beyond_range=self.bob.scores_beyond_range,
            symmetry=None if self.bob.opened is None else self.bob.opened.symmetry(),
            learns=disclosure_text(terms, facts.rows, facts.held_out_rows),
            asked=asked_of(terms, data.labels_train, facts.held_out_rows, planned),
        )

    def _metrics(self) -> RunMetrics:
        data, terms, (train, test) = self.run.data, self.terms, self.scores
        # Without held-out rows the test tables are the training tables.
        bob = SideTables(data.bob_train, data.labels_train, data.bob_test, data.labels_test)
        alone, added = baseline_of(test, bob, terms, self.run.entropy.bob)
        return RunMetrics(
            train=model_metrics(train, data.labels_train, terms),
            test=model_metrics(test, data.labels_test, terms),
            bob_alone=alone,
            partner_adds=added,
        )

    def _convergence(self) -> Convergence:
        labels, batches, best = self.run.data.labels_train, self.spoken.batches, None
        if self.terms.mechanism.lossless:
            # Where noise does not keep the training from the optimum.
            best = self.comparison.optimum
        opened = None
        if self.terms.shares_scores:
            columns = sum(map(len, self.weights))
            opened = Opened(
                self.bob.opened_change,
                self.bob.scores_beyond_range,
                few_rows=labels.rows < FEW_ROWS * columns,
            )
        arrived = assess_convergence(
            self.bob.losses or batches.losses(),
            None if best is None else (best.gap, best.loss),
            # Where no loss is seen on the way, a simulation still knows the end.
            labels_loss(self.scores[0], labels, self.terms.agreement.class_weight),
            batches.row_changes,
            None if best is None else best.row_gap,
            most_loss(labels),
            opened,
            () if self.bob.losses else batches.objectives,
        )
        return replace(arrived, diverged=bool(arrived.diverged))

    def _hidden_batches(self) -> HiddenBatches | None:
        design = self.terms.mechanism.hidden_batch
        if design is None:
            return None
        fewest = self.terms.too_few(len(self.run.data.alice_train.columns))
        sizes = [len(rows) for rows in self.spoken.batches.rows]
        return HiddenBatches(
            epsilon=design.epsilon,
            subset_size=design.subset,
            marked=design.marked,
            l_rr=design.asked_rows,
            expected_batch=design.true_rows,
            mean_batch=fmean(sizes),
            empty_batches=sizes.count(0),
            rejected=1.0 - acceptance(design, fewest),
            redraws=self.bob.redraws,
            conditioning=conditioning(design, fewest),
        )


def _facts(settings: Settings, data: VerticalData) -> DataFacts:
    return DataFacts(
        dataset=settings.source,
        rows=data.labels_train.rows,
        held_out_rows=data.labels_test.rows if data.held_out else 0,
        alice_columns=len(data.alice_train.columns),
        parties=feature_parties(data),
        bob_columns=len(data.bob_train.columns) - data.bob_train.free,
    )


def _exposed(terms: Terms, data: VerticalData) -> ExposedColumns:
    held_out = data.labels_test.rows if data.held_out else 0
    opened = OpenedScores.from_terms(terms, data.labels_train.rows, held_out)
    return ExposedColumns(opened.per_row, opened.in_all)


def _unhidden(terms: Terms, shared: SharedModel | None) -> tuple[str, ...]:
    """Said where the ledger rests on an encryption that this run did not have."""
    if shared is None or terms.scheme.protects:
        return ()
    return (f"the ledger is that of a scheme that encrypts: {terms.scheme.name} hides nothing",)


def _weighing(class_weight: tuple[float, float] | None) -> list[str]:
    if class_weight is None:
        return []
    negative, positive = class_weight
    known = (
        f"a row of label 0 counts {negative:g}, one of label 1 {positive:g}; both parties know it"
    )
    if not (negative and positive):
        return [known, "probabilities are none: the model has learnt from one class only"]
    edge = negative / (negative + positive)
    return [
        known,
        "probabilities are corrected for the class weights, which put the edge between the classes "
        f"at a probability of {edge:.4g}",
    ]


def feature_parties(data: VerticalData) -> tuple[FeatureParty, ...] | None:
    """Several Alices with their columns, for a result; None where there is one."""
    pairs = ((name, place.stop - place.start) for name, place in data.alices)
    return tuple(FeatureParty(*pair) for pair in pairs) or None


def raise_if_diverged(run: TrainingRun) -> None:
    """Refuses a model that is worse than none, unless noise has made it so."""
    if not run.convergence.diverged or not mechanism_class(run.agreement.mechanism).lossless:
        return
    out = "standardise or clip the columns"
    if run.agreement.solver.name == "sgd":
        out += ", lower {learning_rate}, or use {solver}"
    figures = run.metrics.train
    reached = (
        f"log loss on the training rows is {figures.loss:.4g}, where 0.6931 is that of saying "
        "one half of every row"
    )
    if isinstance(figures, RegressionMetrics):
        reached = (
            f"mean deviance on the training rows is {figures.deviance:.4g}, more than twice that "
            "of no model at all"
        )
    raise DivergenceError(
        f"the training diverged: its {reached}",
        where="the training rows",
        hint=Hint(out, solver="newton"),
    )


def programs(
    data: VerticalData,
    terms: Terms,
    entropy: RunEntropy,
    ledger: Ledger,
    table_memory: int = DEFAULT_TABLE_MEMORY,
) -> tuple[dict[str, Program[PartyResult]], Program[PartyResult]]:
    """Each Alice's session by her name, and Bob's, from the first message to the last."""
    alices, bob = sides_of(data, terms, entropy, table_memory)
    labels = released_labels(data.labels_train, terms.mechanism, ledger, entropy.bob)
    return (
        {name: side.program(entropy.of_alice(name), None) for name, side in alices.items()},
        bob.program(entropy.bob, BobTrainingInputs(labels, ledger)),
    )


@dataclass(frozen=True, slots=True)
class SimulatedSide(SideInputs):
    """One side of a simulated run, without a party's file."""

    tables: SideTables
    terms: Terms
    table_memory: int
    signer: KeyIdentity | None = None


def sides_of(
    data: VerticalData,
    terms: Terms,
    entropy: RunEntropy,
    table_memory: int = DEFAULT_TABLE_MEMORY,
) -> tuple[dict[str, SimulatedSide], SimulatedSide]:
    """Each Alice by her name, and Bob."""
    train = data.alice_train_parts or {ONLY: data.alice_train}
    test = data.alice_test_parts or {ONLY: data.alice_test}
    alices = {
        name: SimulatedSide(
            SideTables(table, None, test[name] if data.held_out else None, None),
            terms,
            table_memory,
            entropy.identity_of(name),
        )
        for name, table in train.items()
    }
    held_out = (data.bob_test, data.labels_test) if data.held_out else (None, None)
    bob = SideTables(data.bob_train, data.labels_train, *held_out)
    return alices, SimulatedSide(bob, terms, table_memory)


def _loss_shares(alices: Mapping[str, PartyResult], bobs: PartyResult) -> tuple[int, int] | None:
    """Both sides' shares of the sum of losses; with one Alice alone."""
    hers = next(iter(alices.values())).loss_share
    return None if hers is None or bobs.loss_share is None else (hers, bobs.loss_share)


class _Batches:
    """Notes the true batch of each iteration, which only Bob knows, and passes events on.

    After an iteration it also tells what crossed so far, and at the end of an epoch its loss.
    """

    def __init__(
        self,
        observe: Observer,
        labels: LabelTable,
        class_weight: tuple[float, float] | None,
        per_epoch: int,
    ) -> None:
        self._observe, self._labels, self._class_weight = observe, labels, class_weight
        self._per_epoch = per_epoch
        self.rows: list[IndexArray] = []
        self._losses: dict[int, list[float]] = {}
        self._changes = RowChanges(labels.family)
        self.row_changes: list[float] = []
        self.objectives: list[float] = []
        self.meter: _Meter | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, Progress):
            everyone = np.arange(self._labels.rows)
            self.rows.append(everyone if event.rows is None else event.rows)
            # An empty batch has no loss, so that losses are kept by epoch.
            if len(event.scores):
                loss = labels_loss(event.scores, self._labels, self._class_weight, event.rows)
                self._losses.setdefault(self._epoch(event), []).append(loss)
                change = None if event.rows is not None else self._changes.note(event.scores)
                if change is not None:
                    self.row_changes.append(change)
                if event.objective is not None:
                    self.objectives.append(event.objective)
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


@dataclass(frozen=True, slots=True)
class _Spoken:
    """A conversation that has ended."""

    batches: _Batches
    ledger: Ledger
    meter: _Meter
    seconds: float


def joint_scores(
    alice: FeatureTable,
    bob: FeatureTable,
    alice_weights: FloatArray,
    bob_weights: FloatArray,
    grid: FixedPoint,
    noise_keys: Sequence[tuple[slice, bytes]],
) -> FloatArray:
    """The scores of rows as a joint prediction would open them, computed in the clear.

    Each Alice rounds her part of a score, with noise. ``noise_keys`` has, for each of them, where
    her columns stand, and her key.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = row_products(bob.values, bob_weights)
        for place, key in noise_keys:
            values, weights = alice.values[:, place], alice_weights[place]
            noise = ScoreNoise(key, weights).reals(alice.ids, values, grid)
            scores = at_scale(row_products(values, weights) + noise, grid)
            total = total + require_finite(scores)
    return total
