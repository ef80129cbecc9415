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
from pathlib import Path
from statistics import fmean
from typing import TypeAlias, cast

import numpy as np

from taciturn.arrays import FloatArray, IndexArray
from taciturn.crypto.base import DEFAULT_TABLE_MEMORY
from taciturn.crypto.bfv.workers import LocalEngine
from taciturn.crypto.registry import cluster_on_this_machine, on_engine, scheme
from taciturn.data.prepare import RawData
from taciturn.data.split import VerticalData
from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.engine.callbacks import Observer, noop
from taciturn.engine.pair import run_star
from taciturn.engine.transcript import Recorder, Transcript, TranscriptFile
from taciturn.errors import DivergenceError
from taciturn.jobs.train.estimate import estimate_cost
from taciturn.jobs.train.exposure import sums_alone
from taciturn.jobs.train.record import footer_of, header_of
from taciturn.jobs.train.reference import Comparison, SharedModel, compare
from taciturn.numerics.convergence import FEW_ROWS, Opened, RowChanges, assess_convergence
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.logistic import row_products
from taciturn.numerics.regression_metrics import (
    RegressionMetrics,
    added_by_partner,
    evaluate_labels,
    labels_loss,
    most_loss,
)
from taciturn.numerics.whitening import centring_offset
from taciturn.parallel import one_thread, usable_cores
from taciturn.privacy.base import Mechanism
from taciturn.privacy.batch_response import acceptance, conditioning
from taciturn.privacy.events import ExposedColumns
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import mechanism_class
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.party import alice_program
from taciturn.protocol.alice.score_noise import ScoreNoise
from taciturn.protocol.batches import seed_of
from taciturn.protocol.bob.baseline import LabelPartyBaseline
from taciturn.protocol.bob.inputs import BobInputs, released_labels
from taciturn.protocol.bob.party import bob_program
from taciturn.protocol.events import ClusterJoined, Event, Progress, SimulatedStep
from taciturn.protocol.messages import Role
from taciturn.protocol.opened_scores import OpenedScores
from taciturn.protocol.outcome import BobTrained, HeldOut
from taciturn.protocol.party import PartyResult
from taciturn.protocol.scores import at_scale, require_finite
from taciturn.protocol.steps import ONLY, Program
from taciturn.protocol.terms import SummedLosses, Terms, agree
from taciturn.results.cost_preview import Estimate
from taciturn.results.training import FeatureParty, HiddenBatches, TrainingRun
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
            yield replace(self, terms=terms.of_model(number))._outcome(trained, bob, spoken)

    def _outcome(
        self, alices: dict[str, PartyResult], bobs: PartyResult, spoken: _Spoken
    ) -> Outcome:
        data, terms, batches = self.data, self.terms, spoken.batches
        ledger, meter, weights = spoken.ledger, spoken.meter, terms.agreement.class_weight
        bob = cast(BobTrained, bobs.trained)
        shared = SharedModel.from_trained([alice.trained for alice in alices.values()], bob)
        trained_weights = np.concatenate([alice.trained.weights for alice in alices.values()])
        alice_weights = trained_weights if shared is None else shared.weights
        bob_weights = (
            bob.weights if shared is None or shared.bob_weights is None else shared.bob_weights
        )
        places = [place for _, place in data.alices] or [slice(0, len(alice_weights))]
        if terms.centred:
            # In the whole model Bob's intercept absorbs the means of all columns.
            bob_weights = bob_weights.copy()
            for place, alice in zip(places, alices.values(), strict=True):
                bob_weights[-1] += centring_offset(alice_weights[place], alice.trained.means)
        keys = (alice.noise_key for alice in alices.values())
        noise = tuple(zip(places, keys, strict=True))
        weights_and_noise = alice_weights, bob_weights, terms.score_grid, noise
        train, test = bobs.train_scores, bobs.held_out_scores
        if train is None:
            train = joint_scores(data.alice_train, data.bob_train, *weights_and_noise)
        if test is None:
            # Without held-out rows the test tables are the training tables.
            test = train
            if data.held_out:
                test = joint_scores(data.alice_test, data.bob_test, *weights_and_noise)
        whole, wanted = np.concatenate([alice_weights, bob_weights]), self.settings.compare_optimum
        seed = seed_of(self.entropy.alice, self.entropy.bob)
        comparison = compare(data, terms, batches.rows, whole, seed, wanted)
        labels, held_out, shift = data.labels_train, data.labels_test, terms.log_odds_shift
        alone = LabelPartyBaseline.fit(data.bob_train, labels, terms, self.entropy.bob).scores(
            data.bob_test
        )
        # Where no loss is seen on the way, a simulation still knows the end.
        end = labels_loss(train, labels, weights)
        losses = bob.losses or batches.losses()
        opened = None
        if terms.shares_scores:
            opened = Opened(
                bob.opened_change,
                bob.scores_beyond_range,
                few_rows=labels.rows < FEW_ROWS * len(whole),
            )
        gap = self._gap(comparison)
        row_gap = None if gap is None or comparison.optimum is None else comparison.optimum.row_gap
        arrived = assess_convergence(
            losses,
            gap,
            end,
            batches.row_changes,
            row_gap,
            most_loss(labels),
            opened,
            () if bob.losses else batches.objectives,
        )
        settings, agreed = self.settings, terms.agreement
        sgd = None if terms.whole_table else agreed.sgd
        result = TrainingRun(
            dataset=settings.source,
            mechanism=agreed.mechanism,
            epsilon=agreed.epsilon,
            noise=agreed.noise,
            variant=agreed.variant,
            b1=agreed.b1,
            b2=agreed.b2,
            bob_update=agreed.bob_update,
            base_mechanism=agreed.base_mechanism,
            mechanism_settings=agreed.mechanism_settings,
            budget=settings.budget,
            scheme=agreed.scheme,
            key_bits=agreed.key_bits,
            encrypted=terms.scheme.protects,
            seed=settings.seed,
            permute_labels=settings.permute_labels,
            permute_rows=settings.permute_rows,
            solver=agreed.solver.name,
            passes=terms.rounds if sgd is None else None,
            epochs=None if sgd is None else sgd.epochs,
            batch_size=None if sgd is None else sgd.batch_size,
            learning_rate=None if sgd is None else sgd.learning_rate,
            l2=agreed.l2,
            family=None if agreed.kind.has_classes else agreed.family,
            class_weight=weights,
            iterations=bob.iterations,
            stopped=None if bob.stopped is None else bob.stopped.value,
            hidden_batches=self._hidden_batches(batches.rows, bob.redraws),
            sealed=None if shared is None else shared.describe(terms, data.bob_train),
            alice_columns=len(data.alice_train.columns),
            parties=feature_parties(data),
            bob_columns=len(data.bob_train.columns) - int(data.intercept),
            intercept=data.intercept,
            rows_train=labels.rows,
            rows_test=held_out.rows if data.held_out else 0,
            train=evaluate_labels(train, labels, shift),
            test=evaluate_labels(test, held_out, shift),
            centralised=comparison.centralised,
            bob_alone=evaluate_labels(alone, held_out, shift),
            partner_adds=added_by_partner(test, alone, held_out),
            converged=arrived.converged,
            converged_reason=arrived.reason,
            diverged=bool(arrived.diverged),
            last_change=arrived.last_change,
            last_row_change=arrived.row_change,
            opened_change=bob.opened_change,
            scores_beyond_range=bob.scores_beyond_range,
            symmetry=None if bob.opened is None else bob.opened.symmetry(),
            optimum=comparison.optimum,
            max_weight_difference=comparison.max_weight_difference,
            weight_bound=comparison.weight_bound,
            seconds=spoken.seconds,
            bytes_to_alice=meter.sent["bob"],
            bytes_to_bob=meter.sent["alice"],
            ledger=replace(ledger.statement(), columns=_exposed(terms, data)),
            preparation=tuple(data.preparation.describe()),
            notes=(
                *data.notes,
                *_weighing(weights),
                *terms.mechanism.notes(),
                *sums_alone(terms),
                *_unhidden(terms, shared),
                *ledger.notes(),
            ),
        )
        return Outcome(
            result,
            terms,
            data,
            alice_weights,
            bob_weights,
            train,
            noise,
            tuple(batches.rows),
            held_out_scores=bobs.held_out_scores,
            loss_shares=_loss_shares(alices, bobs),
        )

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

    def _gap(self, comparison: Comparison) -> tuple[float, float] | None:
        """The distance to the optimum, where noise does not keep the training from it."""
        best = comparison.optimum
        if best is None or not self.terms.mechanism.lossless:
            return None
        return best.gap, best.loss

    def _hidden_batches(self, batches: list[IndexArray], redraws: int) -> HiddenBatches | None:
        design = self.terms.mechanism.hidden_batch
        if design is None:
            return None
        fewest = self.terms.too_few(len(self.data.alice_train.columns))
        sizes = [len(rows) for rows in batches]
        return HiddenBatches(
            epsilon=design.epsilon,
            subset_size=design.subset,
            marked=design.marked,
            l_rr=design.asked_rows,
            expected_batch=design.true_rows,
            mean_batch=fmean(sizes),
            empty_batches=sizes.count(0),
            rejected=1.0 - acceptance(design, fewest),
            redraws=redraws,
            conditioning=conditioning(design, fewest),
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
    if not run.diverged or not mechanism_class(run.mechanism).lossless:
        return
    out = "standardise or clip the columns"
    if run.solver == "sgd":
        out += ", lower {learning_rate}, or use {solver}"
    reached = (
        f"log loss on the training rows is {run.train.loss:.4g}, where 0.6931 is that of saying "
        "one half of every row"
    )
    if isinstance(run.train, RegressionMetrics):
        reached = (
            f"mean deviance on the training rows is {run.train.deviance:.4g}, more than twice that "
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
    alices, bob = inputs_of(data, terms, entropy, ledger, table_memory)
    return {name: alice_program(inputs) for name, inputs in alices.items()}, bob_program(bob)


def inputs_of(
    data: VerticalData,
    terms: Terms,
    entropy: RunEntropy,
    ledger: Ledger,
    table_memory: int = DEFAULT_TABLE_MEMORY,
) -> tuple[dict[str, AliceInputs], BobInputs[Mechanism]]:
    """Training inputs of each Alice, by name, and of Bob."""
    train = data.alice_train_parts or {ONLY: data.alice_train}
    test = data.alice_test_parts or {ONLY: data.alice_test}
    alices = {
        name: AliceInputs(
            table,
            terms,
            entropy.of_alice(name),
            held_out=test[name] if data.held_out else None,
            table_memory=table_memory,
            identity=entropy.identity_of(name),
        )
        for name, table in train.items()
    }
    method = terms.mechanism
    return alices, BobInputs(
        data.bob_train,
        released_labels(data.labels_train, method, ledger, entropy.bob),
        terms,
        method,
        ledger,
        entropy.bob,
        held_out=HeldOut(data.bob_test, data.labels_test) if data.held_out else None,
        table_memory=table_memory,
        partners=tuple(alices),
    )


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
