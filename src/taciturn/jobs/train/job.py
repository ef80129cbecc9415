"""``TrainJob``: one side of a training; ``DryRunJob`` compares the sides and stops before it.

``JournaledTraining``: what one side of a training and one side of a study have in common.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray, LabelArray
from taciturn.crypto.bfv.workers import Engine
from taciturn.data.tables import LabelTable
from taciturn.engine.callbacks import SILENT, Callbacks
from taciturn.errors import (
    ConfigError,
    FileError,
    rendering_errors_as,
)
from taciturn.files import require_writable, write_private
from taciturn.jobs.base import Job, SessionFacts, Side
from taciturn.jobs.resumable import BudgetCheck, JournaledSession, ResumableSide, SessionOutcome
from taciturn.jobs.train.declaration import DRY_RUN, TRAINING
from taciturn.jobs.train.evaluation import FinishedTraining, assess
from taciturn.jobs.train.plan import TrainingPlan
from taciturn.jobs.train.result import DryRun, PartyRun, Sizes
from taciturn.jobs.train.task import TrainingTask
from taciturn.model.share import ModelShare
from taciturn.numerics.logistic import sigmoid
from taciturn.numerics.threshold import Threshold, chosen, even_odds, threshold_at
from taciturn.parallel import one_thread
from taciturn.party.agreement_check import require_begun_in_time, require_fit, require_signed
from taciturn.party.compute import engine_of
from taciturn.party.config import PartyConfig
from taciturn.party.credentials import identity_of
from taciturn.party.log import Log
from taciturn.party.model_file import keep_scores
from taciturn.party.observers import require_observers
from taciturn.party.session import OPENING_SECONDS
from taciturn.party.state_store import SessionState, boot
from taciturn.party.tables import PartyTables, PreparedCache, load_tables
from taciturn.privacy.registry import mechanism_class
from taciturn.protocol.party import dry_run
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms
from taciturn.results.parties import Setup
from taciturn.results.serialise import record_of
from taciturn.rng import Entropy, KeyedEntropy
from taciturn.setting_syntax import Hint
from taciturn.version import PROTOCOL_VERSION, __version__

R = TypeVar("R")
O = TypeVar("O", bound=SessionOutcome)  # noqa: E741 - the outcome
# Limits that do not change what a session says.
_FREE_LIMITS = {
    "answer_interval_milliseconds",
    "scores_per_row",
    "repetitions_per_row",
    "trainings_per_row",
    "accept_leak",
    "accept_flips_key",
    "accept_column_exposure",
    "budget_total",
}


class JournaledTraining(ResumableSide[O, R]):
    """One side of a session that trains, prepared; O is what the session ends with."""

    def __init__(self, config: PartyConfig, *, fresh: bool = False) -> None:
        self.fresh = fresh
        self.engine: Engine | None = None
        self.log, self.callbacks = Log.from_config(config, SILENT.announce), SILENT
        signed = config.agreement_file is not None
        self._signers = require_signed(config) if signed else {}
        self._prepared = PreparedCache(config.path(config.state.folder) / "prepared")
        tables = load_tables(config.first, self._prepared)
        if signed:
            require_fit(config, tables)
        self.plan = TrainingPlan.from_config(config, tables)
        self.plan.require_labels()
        self.plan.require_rarest_value()

    @property
    def config(self) -> PartyConfig:
        """The settings; those of a study's first combination."""
        return self.plan.config

    @property
    def tables(self) -> PartyTables:
        """This side's rows."""
        return self.plan.tables

    @property
    def terms(self) -> Terms:
        """The terms; those of a study's first combination."""
        return self.plan.terms

    @property
    def setup(self) -> Setup:
        """Who trains, with which solver."""
        return Setup(self.plan.identity(), self.terms.agreement.solver.name)

    def begin(self, log: Log, callbacks: Callbacks) -> None:
        """Log what the preparation found."""
        self.log, self.callbacks, config = log, callbacks, self.config
        if self._signers:
            log("agreement verified", file=config.agreement_file_name, signed_by=[*self._signers])
        for note in (*self.tables.notes, *self.plan.consent.notes()):
            log("note", about=note)

    @contextmanager
    def at_work(self, config: PartyConfig, log: Log) -> Iterator[None]:
        """With this side's engine; after a stop it may be another one."""
        with engine_of(self.config, log) as self.engine:
            try:
                yield
            finally:
                self.engine = None

    def facts(self) -> dict[str, Any]:
        """Role, terms, versions, digests and limits."""
        labels = self.tables.labels
        return {
            "role": self.config.role,
            "terms": self.terms.agreement.canonical(),
            "protocol": PROTOCOL_VERSION,
            "version of taciturn": __version__,
            # Without sync a stop of the machine can lose what was sent already.
            "start of the machine (sync = false)": "" if self.config.state.sync else boot(),
            "table": self.tables.train.digest(),
            "held-out table": self.tables.held_out.digest() if self.tables.held_out else "",
            "labels": "" if labels is None else labels.digest(),
            # When answers leave may change at any time; what they say may not.
            # Nor what is counted elsewhere: the session was charged when it began.
            "limits": self.config.privacy.model_dump(exclude=_FREE_LIMITS),
            **self.plan.facts(),
        }

    def require_accepted(self) -> None:
        """Raise where this side's file does not accept the exposure of its columns or labels."""
        consent = self.plan.consent
        consent.publish(self.callbacks.publish)
        problem = consent.refusal()
        if problem is not None:
            raise problem
        if consent.superfluous:
            # Left there it would accept the next agreement, which may be another one.
            self.log("note", about=f"{consent.line} is not needed for this agreement: remove it")

    def budget(self, session: str) -> BudgetCheck:
        """Alice's budget of scores, or Bob's of labels."""
        return self.plan.consent.budget(session, self.log)

    def threshold_of(
        self, held_out: LabelTable | None, scores: FloatArray | None, terms: Terms
    ) -> Threshold | None:
        """Decision threshold for new rows: from Bob's file, or from the held-out rows.

        None where labels have no classes.
        """
        if not terms.agreement.kind.has_classes:
            return None
        output, shift = self.config.output, terms.log_odds_shift
        if output.threshold is not None:
            return threshold_at(output.threshold, shift)
        if held_out is None or scores is None:
            return even_odds(shift)
        return chosen(scores, held_out.values, output.false_negative_cost, shift)

    def opening(self) -> Program[None]:
        """Comparison of both sides before the first message of a training."""
        yield from ()

    def clear_prepared(self) -> None:
        """Remove the prepared tables: the session is over."""
        self._prepared.clear()


LINGER_SECONDS = 60.0
# What a model's file says beside the figures themselves.
_VERDICT = (
    *("bob_alone", "partner_adds", "converged", "converged_reason", "diverged", "last_change"),
    *("last_row_change", "told_quality", "symmetry", "opened_change", "scores_beyond_range"),
)


def training_job(
    config: PartyConfig, *, record: Path | None = None, fresh: bool = False
) -> Job[Any]:
    """The job of a party's file: one training, or a study of several."""
    if config.study is None:
        return TrainJob(record, fresh)
    if record is not None:
        raise ConfigError(
            "a transcript holds one training, and a study has many",
            setting="record",
            hint=Hint("leave {record} out; train the chosen model alone to record it"),
        )
    # Loaded here: most sessions train one model.
    from taciturn.jobs.study.job import StudyJob

    return StudyJob(fresh)


@dataclass(frozen=True, slots=True)
class TrainJob(Job[PartyRun]):
    """Train one model, or resume.

    ``record`` is the file of this side's transcript; ``fresh`` discards an unfinished session.
    """

    record: Path | None = None
    fresh: bool = False
    purpose = TRAINING
    reads_labels = True
    opens_first = True
    farewell_seconds = LINGER_SECONDS

    def check_files(self, config: PartyConfig) -> None:
        """Raise where an output cannot be written."""
        require_writable(*map(config.path, config.output.files), self.record)

    def prepare(self, config: PartyConfig) -> TrainSide:
        """Read this side's table."""
        require_mechanism(config)
        return TrainSide(config, record=self.record, fresh=self.fresh)


class TrainSide(JournaledTraining[FinishedTraining, PartyRun]):
    """One side of one training."""

    def __init__(
        self, config: PartyConfig, *, record: Path | None = None, fresh: bool = False
    ) -> None:
        super().__init__(config, fresh=fresh)
        self._record = record

    def run_task(self, session: JournaledSession) -> FinishedTraining:
        """Train, and write the model."""
        inputs, observe = self.plan.on(self.engine), self.callbacks.observe
        finished = TrainingTask.resume(inputs, session, self.log, observe, self._record).train()
        if session.opens_held_out:
            return finished
        why = self.plan.consent.unscored_text()
        self.log("warning", about=why)
        return replace(finished, run=replace(finished.run, held_out_unscored=why))

    def to_record(self, outcome: FinishedTraining, state: SessionState) -> bytes:
        """The outcome for the journal."""
        return outcome.to_bytes(state.array_store)

    def from_record(self, record: bytes, state: SessionState) -> FinishedTraining:
        """The outcome from the journal."""
        return FinishedTraining.from_bytes(record, state.array_store, state.scratch)

    def assess(self, outcome: FinishedTraining, entropy: KeyedEntropy) -> FinishedTraining:
        """Bob's figures, which go into his model's file too."""
        with np.errstate(over="ignore", invalid="ignore"), one_thread():
            run = assess(outcome, self.tables, self.terms, entropy)
            labels = self.tables.held_out_labels
            threshold = self.threshold_of(labels, outcome.held_out_scores, self.terms)
        run = replace(run, metrics=replace(run.metrics, threshold=threshold))
        self._write_held_out(outcome.held_out_scores)
        record = record_of(run)
        verdict = {name: record[name] for name in _VERDICT if name in record}
        # A file that was moved meanwhile, or is another session's, is not touched.
        with suppress(FileError):
            share = ModelShare.load(Path(run.model))
            if share.session == outcome.session:
                replace(share, metrics=record["metrics"] | verdict).save(Path(run.model))
                scores = (outcome.train_scores, outcome.held_out_scores)
                keep_scores(Path(run.model), outcome.session, self.tables, *scores, self.log)
        if run.diverged:
            self.log("warning", about="the training diverged: the model is worthless")
        if run.symmetry is not None and not run.symmetry.passed:
            # On this side alone: Alice must not learn what became of an answer that she altered.
            self.log("warning", about="the scores of the passes do not come from one table")
        return FinishedTraining(run)

    def conclude(self, outcome: FinishedTraining, *, confirmed: bool) -> PartyRun:
        """The result, and whether the peer has confirmed the last message."""
        self.clear_prepared()
        return replace(outcome.run, peer_confirmed=confirmed)

    def _write_held_out(self, scores: FloatArray | None) -> None:
        """Bob's held-out rows with their scores, where he asks for them."""
        tables, name = self.tables, self.config.output.held_out_scores
        labels = tables.held_out_labels
        if name is None or scores is None or labels is None:
            return
        columns = {"id": tables.held_out_ids.series, **self._shown(scores, labels)}
        write_private(self.config.path(name), pl.DataFrame(columns).write_csv())
        self.log("held-out scores written", file=name, rows=len(scores))

    def _shown(self, scores: FloatArray, labels: LabelTable) -> dict[str, LabelArray]:
        if labels.kind.has_classes:
            chances = sigmoid(scores - self.terms.log_odds_shift)
            return {"score": scores, "probability": chances, "label": labels.values}
        predictor = labels.response.predictor(scores)
        if labels.exposure is not None:
            predictor = predictor + np.log(labels.exposure)
        return {"score": predictor, "mean": labels.kind.mean(predictor), "label": labels.values}


@dataclass(frozen=True, slots=True)
class PeerShape:
    """The peer's number of columns, or that of all Alices together and of each (``widths``)."""

    columns: int
    widths: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DryRunJob(Job[DryRun]):
    """Connect to the peer, compare everything, and stop before the training.

    ``record`` is the file of the training's transcript, which nothing is written to.
    """

    record: Path | None = None
    purpose = DRY_RUN
    reads_labels = True
    opens_first = True
    farewell_seconds = OPENING_SECONDS

    def check_files(self, config: PartyConfig) -> None:
        """Raise where an output cannot be written."""
        require_observers(config)
        require_writable(*map(config.path, config.output.files), self.record)

    def prepare(self, config: PartyConfig) -> DryRunSide:
        """Read this side's table, as a training does."""
        require_mechanism(config)
        if config.study is None:
            training: JournaledTraining[Any, Any] = TrainSide(config)
        else:
            # Loaded here: most sessions train one model.
            from taciturn.jobs.study.job import StudySide

            training = StudySide(config)
        require_begun_in_time(config)
        return DryRunSide(training)


@dataclass(frozen=True, slots=True)
class DryRunSide(Side[PeerShape, DryRun]):
    """One side of a dry run."""

    training: JournaledTraining[Any, Any]

    @property
    def setup(self) -> Setup:
        """Who would train, with which solver."""
        return self.training.setup

    def begin(self, log: Log, callbacks: Callbacks) -> None:
        """Log what the preparation found."""
        self.training.begin(log, callbacks)

    def at_work(self, config: PartyConfig, log: Log) -> AbstractContextManager[None]:
        """With this side's engine: a cluster that cannot be used is reported now."""
        return self.training.at_work(config, log)

    def program(self, entropy: Entropy) -> Program[PeerShape]:
        """The first messages of the training."""
        yield from self.training.opening()
        inputs = self.training.plan
        config, tables, terms = inputs.config, inputs.tables, inputs.terms
        train, held_out, peer = tables.train, tables.held_out, inputs.peer_table
        if terms.agreement.parties is None:
            bits = inputs.magnitude_bits
            hello = yield from dry_run(config.role, terms, train, held_out, bits, peer)
            return PeerShape(hello.columns)
        # Each side loads its own programs only.
        if config.role == "bob":
            from taciturn.protocol.bob.party import dry_run as bobs

            names = tuple(terms.agreement.parties)
            state = yield from bobs(terms, train, held_out, peer, names, entropy)
            return PeerShape(state.columns, state.widths)
        from taciturn.protocol.alice.inputs import AliceInputs
        from taciturn.protocol.alice.party import dry_run as alices

        identity = identity_of(config)
        state = yield from alices(
            AliceInputs(train, terms, entropy, held_out=held_out, identity=identity)
        )
        return PeerShape(state.columns, state.widths)

    def conclude(self, outcome: PeerShape, session: SessionFacts) -> DryRun:
        """Cost and disclosure of the training."""
        training, tables = self.training, self.training.tables
        session.log("dry run passed", seconds=round(session.seconds, 3))
        consent = training.plan.consent
        alice_columns = sum(outcome.widths) or consent.alice_columns(outcome.columns)
        return DryRun(
            identity=training.plan.identity(),
            peer_columns=outcome.columns,
            parties=training.plan.feature_parties(outcome.widths),
            agreement=Sizes(alice_columns, tables.train.rows),
            outlook=training.plan.outlook(),
            estimate=consent.estimate(outcome.columns, outcome.widths, session.log),
            columns_exposed=consent.exposure(),
        )


def require_mechanism(config: PartyConfig) -> None:
    """Raise where this side lacks the agreed mechanism."""
    with rendering_errors_as(config.syntax):
        mechanism_class(config.agreed["mechanism"])
