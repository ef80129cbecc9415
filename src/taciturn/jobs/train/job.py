"""``TrainJob``: one side of a training, or of a study: several trainings with one journal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.crypto.bfv.workers import Engine
from taciturn.engine.callbacks import SILENT, Callbacks
from taciturn.errors import ConfigError, rendering_errors_as
from taciturn.files import require_writable
from taciturn.jobs.base import Job, SessionFacts, Task
from taciturn.jobs.resumable import BudgetCheck, JournaledSession, ResumableSide
from taciturn.jobs.train.declaration import TRAINING
from taciturn.jobs.train.finished import FinishedTraining, training_run
from taciturn.jobs.train.plan import TrainingPlan
from taciturn.jobs.train.result import PartyRun
from taciturn.jobs.train.task import TrainingTask
from taciturn.parallel import one_thread
from taciturn.party.agreement_check import require_fit, require_signed
from taciturn.party.compute import engine_of
from taciturn.party.config import PartyConfig
from taciturn.party.log import Log
from taciturn.party.prepared_cache import PreparedCache
from taciturn.party.state_store import SessionState, boot
from taciturn.party.tables import PartyTables, load_tables
from taciturn.privacy.registry import mechanism_class
from taciturn.protocol.terms import Terms
from taciturn.results.parties import Setup
from taciturn.results.reading import read
from taciturn.results.serialise import Result, record_of
from taciturn.rng import KeyedEntropy
from taciturn.setting_syntax import Hint
from taciturn.version import PROTOCOL_VERSION, __version__

if TYPE_CHECKING:
    from taciturn.jobs.study.result import StudyRun

LINGER_SECONDS = 60.0
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


@dataclass(frozen=True, slots=True)
class TrainJob(Job["PartyRun | StudyRun"]):
    """Train one model, or all models of a study; or resume.

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
        """Read this side's table, and plan the trainings."""
        if config.study is not None and self.record is not None:
            raise ConfigError(
                "a transcript holds one training, and a study has many",
                setting="record",
                hint=Hint("leave {record} out; train the chosen model alone to record it"),
            )
        side = prepared_side(config, self.record, fresh=self.fresh)
        # Before hours of work, and not after the first model.
        side.require_outputs()
        return side


def prepared_side(
    config: PartyConfig, record: Path | None = None, *, fresh: bool = False
) -> TrainSide:
    """The side of one training or of a study, whose table is read."""
    require_mechanism(config)
    if config.study is None:
        return TrainSide(config, record, fresh=fresh)
    # Loaded here: most sessions train one model.
    from taciturn.jobs.study.job import StudySide

    return StudySide(config, record, fresh=fresh)


class TrainSide(ResumableSide[FinishedTraining, "PartyRun | StudyRun"]):
    """One side of a session that trains, prepared."""

    # The kind of the session's result.
    kind: ClassVar[type[Result]] = PartyRun

    def __init__(
        self, config: PartyConfig, record: Path | None = None, *, fresh: bool = False
    ) -> None:
        self.fresh, self._record = fresh, record
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
        for note in self.plan.notes():
            log("note", about=note)

    @contextmanager
    def at_work(self, config: PartyConfig, log: Log) -> Iterator[None]:
        """With this side's engine; after a stop it may be another one."""
        # A diverging training overflows, and the programs refuse the result.
        computing = np.errstate(over="ignore", invalid="ignore")
        with engine_of(self.config, log) as self.engine, computing, one_thread():
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

    def require_outputs(self) -> None:
        """Raise where the session could not write its results, besides the file's own outputs."""

    def task(self, session: JournaledSession) -> Task[None, FinishedTraining]:
        """The trainings of the session, from its last checkpoint."""
        engine, record = self.engine, self._record
        return TrainingTask(self.plan, session, self.log, self.callbacks, engine, record).task()

    def to_record(self, outcome: FinishedTraining, state: SessionState) -> bytes:
        """The outcome for the journal."""
        result = record_of(self._result_of(outcome)) if outcome.assessed else None
        return json.dumps({**record_of(replace(outcome, result=None)), "result": result}).encode()

    def from_record(self, record: bytes, state: SessionState) -> FinishedTraining:
        """The outcome from the journal."""
        values = json.loads(record)
        result = values.pop("result")
        finished = read(FinishedTraining, values)
        return finished if result is None else replace(finished, result=read(self.kind, result))

    def assess(
        self, outcome: FinishedTraining, state: SessionState, entropy: KeyedEntropy
    ) -> FinishedTraining:
        """The outcome with its result; Bob's metrics go into the models' files too."""
        if self.tables.labels is None:
            return replace(outcome, result=self.result(outcome))
        with np.errstate(over="ignore", invalid="ignore"), one_thread():
            result = self.assessed(outcome, state, entropy)
        tests = [model.symmetry for model in outcome.trained if model.symmetry is not None]
        if not all(test.passed for test in tests):
            # On this side alone: Alice must not learn what became of an answer that she altered.
            self.log("warning", about="the scores of the passes do not come from one table")
        return replace(outcome, result=result)

    def result(self, outcome: FinishedTraining) -> PartyRun | StudyRun:
        """The result without what depends on labels."""
        return training_run(self.plan, outcome)

    def assessed(
        self, outcome: FinishedTraining, state: SessionState, entropy: KeyedEntropy
    ) -> PartyRun | StudyRun:
        """Bob's result."""
        # Bob alone loads what needs labels.
        from taciturn.jobs.train.evaluation import assessed_training

        return assessed_training(self.plan, outcome, partial(scores_of, state), entropy, self.log)

    def _result_of(self, outcome: FinishedTraining) -> PartyRun | StudyRun:
        return cast("PartyRun | StudyRun", outcome.result)

    def conclude(self, outcome: FinishedTraining, session: SessionFacts) -> PartyRun | StudyRun:
        """The result, and whether the peer has confirmed the last message."""
        self._prepared.clear()
        return replace(self._result_of(outcome), peer_confirmed=session.confirmed)


def scores_of(state: SessionState, reference: object) -> FloatArray | None:
    """Scores that a trained model's record names; None where it names none."""
    return None if reference is None else state.results.get(reference)()


def require_mechanism(config: PartyConfig) -> None:
    """Raise where this side lacks the agreed mechanism."""
    with rendering_errors_as(config.syntax):
        mechanism_class(config.agreed["mechanism"])
