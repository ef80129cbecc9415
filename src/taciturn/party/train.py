"""Trains one party's share of the model: connects to the peer, runs the protocol, saves the model.

Running the same command again resumes where it stopped; after the end it only confirms to a peer
that may have missed the last words.
"""

from __future__ import annotations

import json
import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event as Flag
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray
from taciturn.crypto.engines import on_engine
from taciturn.data.tables import LabelTable
from taciturn.engine.callbacks import SILENT, Callbacks, unpublished
from taciturn.engine.channel import Endpoints
from taciturn.engine.exposure import OpenedScores, column_exposure
from taciturn.errors import (
    AgreementError,
    BudgetExceeded,
    ConfigError,
    ExtensionError,
    FileError,
    PeerStopped,
    RemoteProtocolError,
    StateError,
    TaciturnError,
    shown_by,
)
from taciturn.faces import Hint
from taciturn.files import write_private
from taciturn.model.share import ModelShare
from taciturn.numerics.convergence import UNSEEN
from taciturn.numerics.logistic import sigmoid
from taciturn.numerics.threshold import Threshold, at_probability, chosen, one_half
from taciturn.parallel import one_thread
from taciturn.party.agreed import require_begun_in_time, require_fit, require_signed
from taciturn.party.assess import Ended, assess
from taciturn.party.bulletin import Bulletin
from taciturn.party.compute import engine_of
from taciturn.party.config import MOST_COLUMNS, PartyConfig
from taciturn.party.consent.budget import Charge
from taciturn.party.consent.score_budget import ScoreBudget, ScoreCharge, opening_facts
from taciturn.party.identity import identity_of
from taciturn.party.journal import NONCE_BYTES, Meta, Past, changed_facts
from taciturn.party.keep import Kept, boot, locked_state_folder, state_folder
from taciturn.party.link import DRY_RUN, TRAINING
from taciturn.party.log import Figures, Log
from taciturn.party.model_file import keep_scores, model_share, save_model, suspected_wraps
from taciturn.party.outlook import exposure_refusal, leak_refusal, outlook, planned_ledger
from taciturn.party.playback import Rhythm, unheard, unnoted
from taciturn.party.prepared import PreparedFolder
from taciturn.party.session import Meeting, PeerSession
from taciturn.party.side import Side, terms_of
from taciturn.party.tables import PartyTables, load_tables
from taciturn.privacy.registry import mechanism_class
from taciturn.privacy.statement import Statement
from taciturn.protocol.agree import unused
from taciturn.protocol.events import Boundary, Event, Progress
from taciturn.protocol.handshake import PROTOCOL_VERSION
from taciturn.protocol.party import dry_run
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms
from taciturn.results.check import ColumnExposure
from taciturn.results.estimate import Estimate
from taciturn.results.live import QUALITY_LEARNT, LedgerPlanned, ScoresOpened, Setup
from taciturn.results.outlook import Outlook
from taciturn.results.parties import (
    ColumnImportance,
    DryRun,
    PartyFigures,
    PartyMetrics,
    PartyRun,
    Sizes,
)
from taciturn.results.serialise import record_of
from taciturn.rng import KeyedEntropy, SystemEntropy
from taciturn.version import __version__

if TYPE_CHECKING:
    from taciturn.engine.transcript import TranscriptFile
    from taciturn.party.bob import BobSide
    from taciturn.party.consent.label_budget import LabelCharge
    from taciturn.results.study import StudyRun

LINGER_SECONDS = 60.0
# What a model's file says beside the figures themselves.
_VERDICT = (
    *("bob_alone", "partner_adds", "converged", "converged_reason", "diverged", "last_change"),
    *("told_quality", "symmetry"),
)
# With what a side ends that finds another one set up otherwise, or not keeping to the protocol.
_MISFITS = (RemoteProtocolError.exit_code, AgreementError.exit_code)
# What the peer is told where a side's file lacks its consent, by the role of that side.
_UNACCEPTED = {
    "alice": "its own settings do not accept that columns can be reconstructed with this agreement",
    "bob": "its own settings do not accept that labels can be computed with this agreement",
}
# Limits that do not change what a session says.
_FREE_LIMITS = {
    "answer_milliseconds",
    "scores_per_row",
    "accept_leak",
    "accept_flips_key",
    "accept_column_exposure",
    "budget_total",
}


@dataclass(frozen=True, slots=True)
class Met:
    """The peer's number of columns, or that of all Alices together and of each (``widths``)."""

    columns: int
    widths: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Account:
    """Where a side counts, over all trainings, what it gives away.

    ``require`` insists that this training is within the side's limit and counts nothing; ``charge``
    counts it, once.
    """

    require: Callable[[], None]
    charge: Callable[[], None]


class Ending(Protocol):
    """What a session ends with, for its journal."""

    @property
    def run(self) -> Any:  # noqa: ANN401 - the result of one training, or of several
        """What this side has."""

    @property
    def session(self) -> str:
        """The name that its model's file has."""

    @property
    def assessed(self) -> bool:
        """Whether nothing is left to do."""


class Work(Protocol):
    """The task that runs inside a session, resumable from a checkpoint."""

    @property
    def begun(self) -> Flag:
        """Set once the sides have found that they fit."""

    def run(self) -> Ending:
        """Runs the task; what depends on labels is left for later."""


class Trainer(Side):
    """One side of a session that trains, ready to meet the other."""

    def __init__(
        self, config: PartyConfig, endpoint: Endpoints, callbacks: Callbacks = SILENT
    ) -> None:
        self.callbacks = callbacks
        signers = require_signed(config)
        self.bulletin = Bulletin.of(config, callbacks.publish)
        heard = replace(callbacks, publish=self.bulletin.hear)
        self._session = PeerSession(config, endpoint, heard)
        self.log = self._session.log
        self._prepared = PreparedFolder(config.path(config.state.folder) / "prepared")
        tables = self._load_tables(config)
        require_fit(config, tables)
        if signers:
            self.log("agreement verified", file=config.agreement_file_name, signed_by=[*signers])
        super().__init__(config, tables, terms_of(config, tables))
        for note in (
            *self.tables.notes,
            *unused(config.settings()),
            *_unpinned(config),
            *_unlimited(config),
        ):
            self.log("note", about=note)

    @classmethod
    def of(
        cls, config: PartyConfig, endpoint: Endpoints, callbacks: Callbacks, *, dry_run: bool
    ) -> Trainer:
        """The trainer of a party's file; tells the peer where this side lacks the mechanism."""
        name = config.agreed["mechanism"]
        try:
            with shown_by(config.face):
                mechanism_class(name)
        except ConfigError as problem:
            # What keeps us from telling is of less interest than what is told.
            with suppress(TaciturnError):
                session = PeerSession(config, endpoint, callbacks)
                session.refuse(DRY_RUN if dry_run else TRAINING, _lack(name, problem))
            raise
        if config.study is not None:
            # Loaded here: most sessions train one model.
            from taciturn.party.study import StudyParty

            return StudyParty(config, endpoint, callbacks)
        return Party(config, endpoint, callbacks)

    def dry_run(self) -> DryRun:
        """Meets the peer, compares everything, and stops before the training."""
        require_begun_in_time(self.config)
        tables, program = self.tables, self._dry_program()
        self.bulletin.begin(self._setup())
        start = time.perf_counter()
        # A cluster that cannot be used is said now.
        with engine_of(self.config, self.log), self._session.meet(DRY_RUN) as meeting:
            met = meeting.run(program)
            meeting.finish(self._session.patience.opening)
        self.log("dry run passed", seconds=round(time.perf_counter() - start, 3))
        return DryRun(
            identity=self.identity(),
            peer_columns=met.columns,
            parties=self.feature_parties(met.widths),
            agreement=Sizes(self._alice_columns(met), tables.train.rows),
            outlook=self._outlook(),
            estimate=self._estimate(met),
            columns_exposed=self._exposure(),
        )

    def _dry_opening(self) -> Program[None]:
        """What is said before the first words of a training."""
        yield from ()

    def _dry_program(self) -> Program[Met]:
        yield from self._dry_opening()
        tables, bits, coins = self.tables, self.magnitude_bits, KeyedEntropy.from_system()
        train, held_out, peer = tables.train, tables.held_out, self.peer_table
        if self.terms.agreement.parties is None:
            hello = yield from dry_run(
                self.config.role, self.terms, train, held_out, bits, self.peer_table
            )
            return Met(hello.columns)
        # Each side loads its own programs only.
        if self.config.role == "bob":
            from taciturn.protocol.bob.party import dry_run as bobs

            names = tuple(self.terms.agreement.parties)
            state = yield from bobs(self.terms, train, held_out, peer, names, coins)
            return Met(state.columns, state.widths)
        from taciturn.protocol.alice.inputs import AliceInputs
        from taciturn.protocol.alice.party import dry_run as alices

        inputs = AliceInputs(
            train, self.terms, coins, held_out=held_out, identity=identity_of(self.config)
        )
        state = yield from alices(inputs)
        return Met(state.columns, state.widths)

    def _alice_columns(self, met: Met) -> int:
        """Those of all Alices, as ``[agreement]`` may hold their number."""
        if met.widths:
            return sum(met.widths)
        return met.columns if self.config.role == "bob" else len(self.tables.train.columns)

    def _load_tables(self, config: PartyConfig) -> PartyTables:
        return load_tables(config, self._prepared)

    @abstractmethod
    def run(self, *, record: Path | None = None, fresh: bool = False) -> PartyRun | StudyRun:
        """Trains, or resumes.

        ``record`` is the file of this side's transcript; ``fresh`` discards an unfinished session.
        """

    @abstractmethod
    def _work(self, meeting: Meeting, kept: Kept, record: Path | None, account: Account) -> Work:
        """What is to be done, as the checkpoint left it."""

    @abstractmethod
    def _ended(self, record: bytes, kept: Kept) -> Ending:
        """With what the session ended, from the journal."""

    @abstractmethod
    def _record(self, ended: Any, kept: Kept) -> bytes:  # noqa: ANN401 - of this class's kind
        """The same for the journal."""

    @abstractmethod
    def _assessed(self, ended: Any, past: Past, session: str) -> Ending:  # noqa: ANN401 - likewise
        """Bob's end, with what depends on labels."""

    def _conduct(self, record: Path | None, fresh: bool) -> Any:  # noqa: ANN401 - a kind of result
        # First of all: the files of a training that runs are not this start's to write.
        with locked_state_folder(self.config):
            self.bulletin.begin(self._setup())
            with self.bulletin.running():
                return self._met(record, fresh)

    def _met(self, record: Path | None, fresh: bool) -> Any:  # noqa: ANN401 - a kind of result
        self._require_accepted()
        with state_folder(self.config) as kept:
            for warning in kept.warnings:
                self.log("warning", about=warning)
            past = self._past(kept, fresh)
            account = self.account(past)
            if past.done is None:
                self._require(account)
            with (
                self._at_work() if past.done is None else nullcontext(),
                self._session.meet(TRAINING, past, kept.journal) as meeting,
            ):
                if past.done is None:
                    training = self._work(meeting, kept, record, account)
                    with _nothing_begun(training, kept, self.log):
                        ended = training.run()
                    # Before the farewell: a stop during it must not train again.
                    kept.journal.done(self._record(ended, kept))
                else:
                    ended = self._ended(past.done, kept)
                    self.bulletin.follow(partial(_final, ended.run.run))
                    self.log("this side has already finished; confirming to the peer")
                confirmed = meeting.finish(LINGER_SECONDS)
                # A journal of an earlier version does not name it.
                session = ended.session or meeting.name
            if not ended.assessed:
                # From here on what is done, and how long it takes, may depend on labels.
                self._session.close()
                ended = self._assessed(ended, past, session)
                kept.journal.done(self._record(ended, kept))
            kept.clear()
            self._prepared.clear()
            if not confirmed:
                self.log("the peer has not confirmed the last message; run again if it lacks it")
            return replace(ended.run, peer_confirmed=confirmed)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """With what computes for this side; it may be another after a stop."""
        terms = self.terms
        with engine_of(self.config, self.log) as engine:
            self.terms = replace(terms, scheme=on_engine(terms.scheme, engine))
            try:
                yield
            finally:
                self.terms = terms

    def _assess(self, ended: Ended, past: Past, session: str) -> PartyRun:
        """Bob's figures, which go into his model's file too."""
        with np.errstate(over="ignore", invalid="ignore"), one_thread():
            run = assess(ended, self.tables, self.terms, KeyedEntropy(past.meta.coins))
            labels = self.tables.held_out_labels
            threshold = self.threshold_of(labels, ended.held_out_scores, self.terms)
        run = replace(run, metrics=replace(run.metrics, threshold=threshold))
        self._write_held_out(ended.held_out_scores)
        record = record_of(run)
        verdict = {name: record[name] for name in _VERDICT if name in record}
        # A file that was moved meanwhile, or is another session's, is not touched.
        with suppress(FileError):
            share = ModelShare.load(Path(run.model))
            if share.session == session:
                replace(share, metrics=record["metrics"] | verdict).save(Path(run.model))
                scores = (ended.train_scores, ended.held_out_scores)
                keep_scores(Path(run.model), session, self.tables, *scores, self.log)
        if run.diverged:
            self.log("warning", about="the training diverged: the model is worthless")
        if run.symmetry is not None and not run.symmetry.passed:
            # On this side alone: Alice must not learn what became of an answer that she altered.
            self.log("warning", about="the scores of the passes do not come from one table")
        return run

    def threshold_of(
        self, held_out: LabelTable | None, scores: FloatArray | None, terms: Terms
    ) -> Threshold:
        """Above which score Bob calls a new row a one: as he says, or as the held-out rows say."""
        output, shift = self.config.output, terms.log_odds_shift
        if output.threshold is not None:
            return at_probability(output.threshold, shift)
        if held_out is None or scores is None:
            return one_half(shift)
        return chosen(scores, held_out.values, output.miss_cost, shift)

    def _write_held_out(self, scores: FloatArray | None) -> None:
        """Bob's held-out rows with their scores, where he asks for them."""
        tables, name = self.tables, self.config.output.held_out_scores
        labels = tables.held_out_labels
        if name is None or scores is None or labels is None:
            return
        columns = {
            "id": tables.held_out_ids.series,
            "score": scores,
            "probability": sigmoid(scores - self.terms.log_odds_shift),
            "label": labels.values,
        }
        write_private(self.config.path(name), pl.DataFrame(columns).write_csv())
        self.log("held-out scores written", file=name, rows=len(scores))

    def _require_accepted(self) -> None:
        """Refuses, and tells the peer, what this side's own file does not consent to."""
        problem = self._unaccepted()
        if problem is None:
            return
        # What keeps us from telling is of less interest than what is told.
        with suppress(TaciturnError):
            self._session.refuse(TRAINING, AgreementError(_UNACCEPTED[self.config.role]))
        raise problem

    def _unaccepted(self) -> TaciturnError | None:
        limits = self.config.privacy
        if self.config.role == "alice":
            problem: TaciturnError | None = exposure_refusal(self.config, self.terms)
            line, unneeded = limits.accept_column_exposure, self.terms.mechanism.shares_scores
            name = "accept-column-exposure"
        else:
            ledger = self._planned()
            self.callbacks.publish(LedgerPlanned(ledger, limits.budget))
            problem = self._ledger_refusal(ledger)
            line, unneeded = limits.accept_leak, math.isfinite(ledger.label_epsilon_total)
            name = "accept-leak"
        if problem is None and line and unneeded:
            # Left there it would accept the next agreement, which may be another one.
            self.log("note", about=f"{name} is not needed for this agreement: remove it")
        return problem

    def _planned(self) -> Statement:
        return planned_ledger(self.config, self.tables, self.terms).statement()

    def _ledger_refusal(self, ledger: Statement) -> TaciturnError | None:
        return leak_refusal(self.config, self.terms, ledger)

    def _require(self, account: Account) -> None:
        """Refuses now, and tells the peer, what would be refused when the first release is due."""
        try:
            account.require()
        except BudgetExceeded as problem:
            # What keeps us from telling is of less interest than what is told.
            with suppress(TaciturnError):
                self._session.refuse(TRAINING, problem)
            raise

    def account(self, past: Past) -> Account:
        """Where this side counts what the training gives away: scores, or what labels pay."""
        scores = ScoreBudget.from_config(self.config)
        if scores is not None:
            charge = self.charge(past)
            self.tell_scores(scores)
            return Account(partial(scores.require, charge), partial(scores.charge, charge))
        # Only who pays for releases loads what counts them.
        from taciturn.party.consent.label_budget import LabelBudget, training_charge

        labels, session = LabelBudget.from_config(self.config), past.meta.charge_name

        def label_charge() -> LabelCharge:
            # Anew each time: by then labels may have been flipped.
            return training_charge(self.config, self.tables, self.terms, session)

        return Account(
            lambda: labels.require(label_charge()), lambda: labels.charge(label_charge())
        )

    def tell_scores(self, budget: ScoreBudget) -> None:
        """Publishes what is opened to Bob, beside what he was given before."""
        if self.callbacks.publish is unpublished:
            return
        counts = self._opened()
        opened = ScoresOpened(counts.per_row, counts.in_all, budget.most_given(), budget.limit)
        self.callbacks.publish(opened)

    def charge(self, past: Past) -> ScoreCharge:
        """The scores that a whole training opens to Bob, of each row."""
        train, held_out = self.tables.train, self.tables.held_out
        counts = OpenedScores.of(self.terms, train.rows)
        rows = [(train.ids, counts.per_row)]
        if held_out is not None:
            rows.append((held_out.ids, counts.per_held_out_row))
        facts = opening_facts(self.terms, counts)
        return Charge(tuple(rows), past.meta.charge_name, facts)

    def _past(self, kept: Kept, fresh: bool) -> Past:
        facts = self._facts()
        past = None if fresh else kept.journal.resume()
        changed = [] if past is None else changed_facts(past.meta, facts)
        if changed:
            raise StateError(
                "these have changed since the session started: " + ", ".join(changed),
                where=str(self.config.path(self.config.state.folder)),
                hint=Hint("restore them, or start over on both sides with {fresh}", fresh=True),
            )
        if past is None or past.met_nobody:
            # Of one that began in time the rest may follow later.
            require_begun_in_time(self.config)
            kept.clear()
            self.log("session started")
            # Randomness of a journal that has met nobody may have been used since, if the journal
            # is a copy that was put back. Its name stays: a peer may have noted it already.
            nonce = SystemEntropy().token(NONCE_BYTES) if past is None else past.meta.nonce
            return kept.journal.begin(Meta(facts, KeyedEntropy.from_system().key, nonce))
        sent, received = zip(*(link.counts for link in (past, *past.further)), strict=True)
        self.log("session resumed", frames_sent=sum(sent), frames_received=sum(received))
        return past

    def _facts(self) -> dict[str, Any]:
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
        }

    def _outlook(self) -> Outlook:
        return outlook(self.config, self.tables, self.terms)

    def _opened(self) -> OpenedScores:
        held_out = self.tables.held_out
        rows = 0 if held_out is None else held_out.rows
        return OpenedScores.of(self.terms, self.tables.train.rows, rows)

    def _setup(self) -> Setup:
        return Setup(self.identity(), self.terms.agreement.solver)

    def _exposure(self) -> ColumnExposure | None:
        """What Bob can learn of her columns: for Alice to know before she begins."""
        if self.config.role == "bob":
            return None
        train = self.tables.train
        exposed = column_exposure(self.terms, train.rows, train, opened=self._opened())
        return replace(
            exposed, warning=f"{exposed.warning}. {self._counted(exposed.scores_per_row)}"
        )

    def _counted(self, opens: int) -> str:
        """What Bob was given before, and may be given, in this training too."""
        budget = ScoreBudget.from_config(self.config)
        given = 0 if budget is None else budget.most_given()
        limit = self.config.privacy.scores_per_row
        bound = "no limit is set (scores-per-row)"
        if limit is not None:
            refused = given + opens > limit
            bound = f"the limit is {limit:,}"
            bound += " and a new training of these rows is refused" if refused else ""
        return f"So far {self.config.peer} was given up to {given:,} of a row; {bound}"

    def _estimate(self, met: Met) -> Estimate | None:
        """Duration and traffic; only Alice has the columns that decide them."""
        if self.config.role == "bob":
            return None
        # Loaded here: a training measures no sample, and loads its own side only.
        from taciturn.engine.estimate import estimate_cost

        self.log("measuring time and traffic")
        train, compute = self.tables.train, self.config.compute
        # Several Alices know each other's number of columns, and not Bob's.
        alices, bob = (met.widths, 1) if met.widths else ([train], met.columns)
        memory = compute.table_memory << 20
        return estimate_cost(
            self.terms, train.rows, alices, bob, table_memory=memory, cores=compute.cores
        )


class Party(Trainer):
    """One side of one training, ready to meet the other."""

    def run(self, *, record: Path | None = None, fresh: bool = False) -> PartyRun:
        """Trains one model, or resumes."""
        result: PartyRun = self._conduct(record, fresh)
        return result

    def _work(self, meeting: Meeting, kept: Kept, record: Path | None, account: Account) -> Work:
        return _Training.of(self, meeting, kept, record, account)

    def _ended(self, record: bytes, kept: Kept) -> Ended:
        return Ended.of_bytes(record, kept.shelf, kept.scratch)

    def _record(self, ended: Ended, kept: Kept) -> bytes:
        return ended.to_bytes(kept.shelf)

    def _assessed(self, ended: Ended, past: Past, session: str) -> Ended:
        return Ended(self._assess(ended, past, session))


def _final(figures: PartyFigures) -> PartyFigures:
    """The figures of a training that has ended: they do not change any more."""
    return figures


@dataclass(frozen=True, slots=True, repr=False)
class _Training:
    """One training, from its checkpoint to its model file.

    ``begun`` is set once the sides have found that they fit.
    """

    party: Party
    meeting: Meeting
    kept: Kept
    coins: KeyedEntropy
    bob: BobSide | None
    resume: TrainingState | None
    figures: Figures
    recording: TranscriptFile | None
    account: Account
    begun: Flag = field(default_factory=Flag)

    @classmethod
    def of(
        cls, party: Party, meeting: Meeting, kept: Kept, record: Path | None, account: Account
    ) -> _Training:
        past = meeting.past
        body = json.loads(past.checkpoint.body) if past.checkpoint.body else None
        coins = KeyedEntropy(past.meta.coins)
        figures = Figures(
            party.tables.labels,
            party.terms.per_epoch(party.tables.train.rows),
            party.log,
            party.terms.agreement.class_weight,
        )
        if body is not None:
            figures.restore(body["figures"])
        party.bulletin.follow(lambda: figures.so_far(meeting.traffic))
        return cls(
            party,
            meeting,
            kept,
            coins,
            party.bob_side(coins, None if body is None else body["ledger"]),
            None if body is None else TrainingState.of_bytes(body["state"].encode(), kept.shelf),
            figures,
            None if record is None else _recording(party, record, body, coins),
            account,
        )

    def run(self) -> Ended:
        """Trains and writes the model; what depends on labels is left for later."""
        config, state, recording = self.party.config, self.party.config.state, self.recording
        scratch = self.kept.scratch
        program = self.party.program(self.coins, self.bob, self.resume, scratch)
        # A diverging training overflows; the programs refuse what comes of it, in words.
        quiet = np.errstate(over="ignore", invalid="ignore")
        # On one thread the same numbers come out on every machine and in every run.
        with recording or nullcontext(), quiet, one_thread():
            if self.resume is not None:
                # A checkpoint of a version that did not count.
                self.account.charge()
            result = self.meeting.run(
                program,
                observe=self._observe,
                freeze=self._freeze,
                rhythm=Rhythm(state.every_iterations, state.every_seconds),
                tap=recording or unheard,
                # What Alice saw is told without her key: it stays out of the file.
                note=unnoted if recording is None or self.bob is None else recording.kept,
            )
            self.figures.finish(result.trained)
            share = model_share(self.party, self.bob, result, self.meeting.name)
            save_model(share, config.path(config.output.model), self.party.log)
            if recording is not None:
                recording.conclude({"session": share.session})
        self.party.log("model written", file=config.output.model)
        if result.quality is not None:
            quality = record_of(result.quality)
            figures = {name: value for name, value in quality.items() if value is not None}
            self.party.log("quality told" if self.bob else QUALITY_LEARNT, **figures)
        for note in () if self.bob is None else self.bob.ledger.notes():
            self.party.log("note", about=note)
        stopped, curve = result.trained.stopped, self.figures.so_far(self.meeting.traffic).curve
        run = PartyRun(
            identity=self.party.identity(),
            model=str(config.path(config.output.model)),
            parties=self.party.feature_parties(result.trained.company.widths),
            stopped=None if stopped is None else stopped.value,
            metrics=PartyMetrics(curve=curve or None),
            suspected_wraps=suspected_wraps(self.party.terms, result.trained),
            converged_reason=UNSEEN if self.party.terms.mechanism.shares_scores else None,
            told_quality=result.quality,
            importance=self._importance(result.trained.weights),
            ledger=None if self.bob is None else self.bob.ledger.statement(),
            run=self.figures.so_far(self.meeting.traffic),
        )
        # The farewell is no part of the training.
        self.party.bulletin.follow(partial(_final, run.run))
        return Ended.of(run, result, share.session)

    def _observe(self, event: Event) -> None:
        self.figures.observe(event)
        self.party.bulletin.require_written()
        self.party.callbacks.observe(event)
        if isinstance(event, Boundary):
            self.begun.set()
        if isinstance(event, Boundary) and not event.state.iteration:
            # Before the first score or release leaves; a session is charged once.
            self.account.charge()
        if self.party.config.role == "alice" and isinstance(event, Boundary):
            # Her program says where she stands, and not out of how many.
            self._observe(Progress(event.state.iteration, self.party.iterations))

    def _freeze(self, at: TrainingState) -> bytes:
        """What a checkpoint holds; long arrays are on the disk before it is."""
        # By now the checkpoint before this one is, and what it does not name is of no use.
        self.kept.shelf.sweep()
        values = {
            "state": at.to_bytes(self.kept.shelf).decode("ascii"),
            "ledger": None if self.bob is None else self.bob.ledger.to_json(),
            "recorded": None if self.recording is None else self.recording.position(),
            "figures": self.figures.to_json(),
        }
        self.party.bulletin.checkpointed()
        return json.dumps(values).encode()

    def _importance(self, weights: FloatArray) -> tuple[ColumnImportance, ...] | None:
        """Alice's columns, the most important first; None where she has no weights of them.

        Bob's weights depend on labels, and how long they take to sort too: his file has them.
        """
        if self.bob is not None or not len(weights):
            return None
        table = self.party.tables.train
        sizes = (np.abs(weights) * table.deviations()).tolist()
        named = zip(table.columns, weights.tolist(), sizes, strict=True)
        columns = (ColumnImportance(name, weight, size) for name, weight, size in named)
        return tuple(sorted(columns, key=lambda column: -column.importance))


@contextmanager
def _nothing_begun(training: Work, kept: Kept, log: Log) -> Iterator[None]:
    """Forgets a session whose sides do not fit: nothing was released, and nobody can resume it.

    Without this the greeting that did not fit would be played back the next time, too.
    """
    try:
        yield
    except (RemoteProtocolError, PeerStopped) as problem:
        code = problem.code if isinstance(problem, PeerStopped) else problem.exit_code
        if code in _MISFITS and not training.begun.is_set():
            kept.journal.discard()
            log("the sides do not fit; the next run starts a new session")
        raise


def _lack(name: str, problem: ConfigError) -> AgreementError:
    if isinstance(problem, ExtensionError):
        return AgreementError(f"its package of the mechanism {name} is broken")
    return AgreementError(f"it does not have the mechanism {name}")


def _recording(
    party: Party, record: Path, body: dict[str, Any] | None, coins: KeyedEntropy
) -> TranscriptFile:
    """The transcript of this side, new or continued at the checkpoint."""
    # Loaded here: few trainings are recorded.
    from taciturn.engine.transcript import TranscriptFile

    if body is not None and body["recorded"] is None:
        raise StateError(
            "the session started without a transcript, and a partial one is of little use",
            setting="record",
            hint=Hint("leave {record} out, or start over on both sides with {fresh}", fresh=True),
        )
    held_out = party.tables.held_out
    header = {
        "kind": "party",
        "role": party.config.role,
        "peer": party.config.peer,
        "version": __version__,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "agreement": party.terms.agreement.model_dump(),
        "coins": {party.config.role: coins.key.hex()},
        "features_digest": party.tables.train.digest(),
        "held_out_digest": "" if held_out is None else held_out.digest(),
    }
    at = None if body is None else body["recorded"]
    # Bob records what he says to each of several Alices.
    links = len(party.config.peers)
    return TranscriptFile(record, header, at=at, keep=True, links=links)


def _unlimited(config: PartyConfig) -> tuple[str, ...]:
    """A note where Alice sets no limit to what Bob may learn of her columns."""
    if config.role == "bob" or config.privacy.scores_per_row is not None:
        return ()
    return (f"scores-per-row is not set: scores for {config.peer} are counted, not limited",)


def _unpinned(config: PartyConfig) -> tuple[str, ...]:
    """A note where Bob does not know how many columns to expect."""
    if config.role == "alice" or config.alice_columns is not None:
        return ()
    return (f"alice-columns is not agreed on: up to {MOST_COLUMNS:,} columns are accepted",)
