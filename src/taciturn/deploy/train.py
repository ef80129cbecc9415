"""Runs one side of a training: reads its file, meets the peer, trains, writes its model.

Running the same command again resumes where it stopped; after the end it only confirms to a peer
that may have missed the last words.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event as Flag
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray
from taciturn.crypto.engines import on_engine
from taciturn.deploy.agreed import require_begun_in_time, require_fit, require_signed
from taciturn.deploy.assess import Ended, assess
from taciturn.deploy.compute import engine_of
from taciturn.deploy.config import MOST_COLUMNS, PartyConfig
from taciturn.deploy.identity import identity_of
from taciturn.deploy.journal import NONCE_BYTES, Meta, Past, changed_facts
from taciturn.deploy.keep import Kept, boot, state_folder
from taciturn.deploy.link import DRY_RUN, TRAINING
from taciturn.deploy.log import Figures
from taciturn.deploy.outlook import leak_refusal, outlook, planned_ledger
from taciturn.deploy.playback import Rhythm, unheard, unnoted
from taciturn.deploy.prepared import PreparedFolder
from taciturn.deploy.score_book import Charge, score_book
from taciturn.deploy.session import Meeting, PeerSession
from taciturn.deploy.tables import PartyTables, load_tables
from taciturn.engine.callbacks import SILENT, Callbacks
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
from taciturn.mapped import MEMORY, Scratch
from taciturn.model.history import set_aside
from taciturn.model.share import ModelShare
from taciturn.numerics.convergence import UNSEEN
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.numerics.logistic import sigmoid
from taciturn.numerics.threshold import Threshold, at_probability, chosen, one_half
from taciturn.parallel import one_thread
from taciturn.privacy.registry import mechanism_class
from taciturn.protocol.agree import agree, unused
from taciturn.protocol.events import Boundary, Event, Progress
from taciturn.protocol.handshake import ANY_TABLE, PROTOCOL_VERSION, PeerTable
from taciturn.protocol.outcome import BobTrained, Trained, WeightShare
from taciturn.protocol.party import PartyResult, dry_run
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms
from taciturn.results.check import ColumnExposure
from taciturn.results.estimate import Estimate
from taciturn.results.parties import (
    ColumnImportance,
    DryRun,
    Identity,
    PartyMetrics,
    PartyRun,
    Sizes,
)
from taciturn.results.serialise import record_of
from taciturn.results.training import FeatureParty
from taciturn.rng import Entropy, KeyedEntropy, SystemEntropy
from taciturn.settings.agreement import Agreement
from taciturn.version import __version__

if TYPE_CHECKING:
    from taciturn.deploy.bob import BobSide
    from taciturn.deploy.ledger_book import Spending
    from taciturn.engine.transcript import TranscriptFile

LINGER_SECONDS = 60.0
# What a model's file says beside the figures themselves.
_VERDICT = (
    *("bob_alone", "partner_adds", "converged", "converged_reason", "diverged", "last_change"),
    "told_quality",
)
# With what a side ends that finds another one set up otherwise, or not keeping to the protocol.
_MISFITS = (RemoteProtocolError.exit_code, AgreementError.exit_code)
_UNACCEPTED = "its own settings do not accept that labels can be computed with this agreement"
# Limits that do not change what a session says.
_FREE_LIMITS = {
    "answer_milliseconds",
    "scores_per_row",
    "scores",
    "accept_leak",
    "budget_total",
    "ledger",
}


@dataclass(frozen=True, slots=True)
class Met:
    """What a dry run tells of the peer, or of all.

    Args:
        columns: How many columns it has, or all Alices together.
        widths: How many each of several Alices has.
    """

    columns: int
    widths: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Account:
    """Where a side counts, over all trainings, what it gives away.

    Args:
        require: Insists that this training is within the side's limit; counts nothing.
        charge: Counts this training, once.
    """

    require: Callable[[], None]
    charge: Callable[[], None]


class Party:
    """One side of a training, ready to meet the other.

    Args:
        config: Its settings.
        endpoint: Its way to the peer, or to each of several.
        callbacks: Who is told what happens.

    Raises:
        ConfigError: The settings do not go together.
        DataError: Its table is not fit for use.
        SignatureError: The agreement that its file names is not signed as it stands, or does not
            fit this side.
    """

    def __init__(
        self, config: PartyConfig, endpoint: Endpoints, callbacks: Callbacks = SILENT
    ) -> None:
        self.config, self.callbacks = config, callbacks
        signers = require_signed(config)
        self._session = PeerSession(config, endpoint, callbacks)
        self.log = self._session.log
        self._prepared = PreparedFolder(config.path(config.state.folder) / "prepared")
        self.tables = load_tables(config, self._prepared)
        require_fit(config, self.tables)
        if signers:
            self.log("agreement verified", file=config.agreement_file_name, signed_by=[*signers])
        self.terms = terms_of(config, self.tables)
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
    ) -> Party:
        """The same; a peer that is there is told where this side lacks the mechanism.

        Raises:
            ConfigError: The settings do not go together, or there is no such mechanism here.
            DataError: Its table is not fit for use.
        """
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
        return cls(config, endpoint, callbacks)

    def dry_run(self) -> DryRun:
        """Meets the peer, compares everything, and stops before the training.

        Raises:
            TaciturnError: The two sides do not fit, or cannot meet.
        """
        require_begun_in_time(self.config)
        tables, program = self.tables, self._dry_program()
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
            outlook=outlook(self.config, tables, self.terms),
            estimate=self._estimate(),
            columns_exposed=self._exposure(),
        )

    def _dry_program(self) -> Program[Met]:
        """The first words of a training."""
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

    def feature_parties(self, widths: tuple[int, ...]) -> tuple[FeatureParty, ...] | None:
        """Several Alices, with their columns; None with one."""
        named = zip(self.terms.agreement.parties or {}, widths, strict=True)
        return tuple(FeatureParty(name, columns) for name, columns in named) or None

    def run(self, *, record: Path | None = None, fresh: bool = False) -> PartyRun:
        """Trains, or resumes.

        Args:
            record: Write the transcript of this side to this file.
            fresh: Discard an unfinished session and start a new one.

        Raises:
            TaciturnError: This side or the peer cannot continue; says why, and what to do.
        """
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
                    training = _Training.of(self, meeting, kept, record, account)
                    with _nothing_begun(training, kept):
                        ended = training.run()
                    # Before the farewell: a stop during it must not train again.
                    kept.journal.done(ended.to_bytes(kept.shelf))
                else:
                    ended = Ended.of_bytes(past.done, kept.shelf)
                    self.log("this side has already finished; confirming to the peer")
                confirmed = meeting.finish(LINGER_SECONDS)
                # A journal of an earlier version does not name it.
                session = ended.session or meeting.name
            if not ended.assessed:
                # From here on what is done, and how long it takes, may depend on labels.
                self._session.close()
                ended = Ended(self._assess(ended, past, session))
                kept.journal.done(ended.to_bytes())
            kept.shelf.clear()
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
            threshold = self._threshold(ended.held_out_scores)
        run = replace(run, metrics=replace(run.metrics, threshold=threshold))
        self._write_held_out(ended.held_out_scores)
        record = record_of(run)
        verdict = {name: record[name] for name in _VERDICT if name in record}
        # A file that was moved meanwhile, or is another session's, is not touched.
        with suppress(FileError):
            share = ModelShare.load(Path(run.model))
            if share.session == session:
                replace(share, metrics=record["metrics"] | verdict).save(Path(run.model))
        if run.diverged:
            self.log("warning", about="the training diverged: the model is worthless")
        return run

    def _threshold(self, scores: FloatArray | None) -> Threshold:
        """Above which score Bob calls a new row a one: as he says, or as the held-out rows say."""
        output, held_out = self.config.output, self.tables.held_out_labels
        if output.threshold is not None:
            return at_probability(output.threshold, self.terms.log_odds_shift)
        if held_out is None or scores is None:
            return one_half(self.terms.log_odds_shift)
        return chosen(scores, held_out.values, output.miss_cost, self.terms.log_odds_shift)

    def _write_held_out(self, scores: FloatArray | None) -> None:
        """Bob's held-out rows with their scores, where he asks for them.

        Raises:
            OutputError: The file cannot be written.
        """
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
        """Refuses, and tells the peer, where labels would be readable and Bob has not said so.

        Raises:
            ConfigError: He has not.
            BudgetExceeded: The training would end with this error on its way.
        """
        if self.config.role == "alice":
            return
        ledger = planned_ledger(self.config, self.tables, self.terms).statement()
        problem = leak_refusal(self.config, self.terms, ledger)
        if problem is None:
            if self.config.privacy.accept_leak and math.isfinite(ledger.label_epsilon_total):
                # Left there it would accept the next agreement, which may be another one.
                self.log("note", about="accept-leak is not needed for this agreement: remove it")
            return
        # What keeps us from telling is of less interest than what is told.
        with suppress(TaciturnError):
            self._session.refuse(TRAINING, AgreementError(_UNACCEPTED))
        raise problem

    def _require(self, account: Account) -> None:
        """Refuses now, and tells the peer, what would be refused when the first release is due.

        Raises:
            BudgetExceeded: The training would open more scores of a row than she allows, or cost
                labels more than he does.
        """
        try:
            account.require()
        except BudgetExceeded as problem:
            # What keeps us from telling is of less interest than what is told.
            with suppress(TaciturnError):
                self._session.refuse(TRAINING, problem)
            raise

    def account(self, past: Past) -> Account:
        """Where this side counts what the training gives away: scores, or what labels pay."""
        book = score_book(self.config)
        if book is not None:
            charge = self.charge(past)
            return Account(partial(book.require, charge), partial(book.charge, charge))
        # Only who pays for releases loads what counts them.
        from taciturn.deploy.ledger_book import ledger_book, spending

        paid, session = ledger_book(self.config), past.meta.nonce.hex()

        def spent() -> Spending:
            # Anew each time: by then labels may have been flipped.
            return spending(self.config, self.tables, self.terms, session)

        return Account(lambda: paid.require(spent()), lambda: paid.charge(spent()))

    def charge(self, past: Past) -> Charge:
        """The scores that a whole training opens to Bob, of each row."""
        train, held_out = self.tables.train, self.tables.held_out
        counts = OpenedScores.of(self.terms, train.rows)
        rows = [(train.ids, counts.per_row)]
        if held_out is not None:
            rows.append((held_out.ids, counts.per_held_out_row))
        return Charge(tuple(rows), past.meta.nonce.hex())

    def _past(self, kept: Kept, fresh: bool) -> Past:
        facts = self._facts()
        past = None if fresh else kept.journal.resume()
        if past is None:
            # Of one that began in time the rest may follow later.
            require_begun_in_time(self.config)
            coins = KeyedEntropy.from_system().key
            kept.shelf.clear()
            self.log("session started")
            return kept.journal.begin(Meta(facts, coins, SystemEntropy().token(NONCE_BYTES)))
        changed = changed_facts(past.meta, facts)
        if changed:
            raise StateError(
                "these have changed since the session started: " + ", ".join(changed),
                where=str(self.config.path(self.config.state.folder)),
                hint=Hint("restore them, or start over on both sides with {fresh}", fresh=True),
            )
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

    @property
    def peer_table(self) -> PeerTable:
        """What Bob takes Alice's table to be; she takes his as it is."""
        if self.config.role == "alice":
            return ANY_TABLE
        return PeerTable(self.config.alice_columns, MOST_COLUMNS)

    @property
    def magnitude_bits(self) -> int:
        """The size of Alice's values, which both sides know; Bob's only where it is needed."""
        if self.terms.whole_table and self.terms.mechanism.shares_scores:
            # Loaded here: other trainings have no use for it.
            from taciturn.protocol.mutual_table import whitened_bits

            return whitened_bits(self.tables.train, self.terms)
        if self.config.role == "bob":
            if not self.terms.mechanism.shares_scores or not self.tables.train.columns:
                return 0
            return magnitude_bits(self.tables.train.largest)
        # Each side loads its own programs only.
        from taciturn.protocol.alice.whitened import largest_bits

        return largest_bits(self.tables.train, self.terms)

    @property
    def iterations(self) -> int:
        """How many there are, unless the training ends early."""
        return self.terms.agreement.epochs * self.terms.per_epoch(self.tables.train.rows)

    def program(
        self,
        coins: Entropy,
        bob: BobSide | None,
        resume: TrainingState | None = None,
        scratch: Scratch = MEMORY,
    ) -> Program[PartyResult]:
        """This side's program, from the first word to the last.

        Args:
            coins: This side's coins.
            bob: Bob's labels and ledger; None at Alice.
            resume: The state from which to resume; None to begin.
            scratch: Where long arrays lie.
        """
        tables, terms = self.tables, self.terms
        memory = self.config.compute.table_memory << 20
        if bob is not None:
            return bob.program(tables, terms, coins, resume, self.peer_table, memory, scratch)
        # Each side loads its own programs only.
        from taciturn.protocol.alice.inputs import AliceInputs
        from taciturn.protocol.alice.party import alice_program

        return alice_program(
            AliceInputs(
                tables.train,
                terms,
                coins,
                resume,
                tables.held_out,
                memory,
                scratch,
                identity_of(self.config),
            )
        )

    @property
    def name(self) -> str:
        """Which of several Alices this side is; empty elsewhere."""
        identity = identity_of(self.config)
        return "" if identity is None else identity.name

    def bob_side(self, coins: Entropy, spent: dict[str, Any] | None = None) -> BobSide | None:
        """Bob's labels and ledger, the latter as it stood at the checkpoint; None at Alice."""
        if self.tables.labels is None:
            return None
        # Each side loads its own programs only.
        from taciturn.deploy.bob import BobSide

        return BobSide.of(self.config, self.tables.labels, self.terms, coins, spent)

    def identity(self) -> Identity:
        """What the party's result says of it, however it went."""
        held_out = self.tables.held_out
        return Identity(
            role=self.config.role,
            peer=self.config.peer,
            mechanism=self.terms.agreement.mechanism,
            scheme=self.terms.agreement.scheme,
            key_bits=self.terms.agreement.key_bits,
            columns=len(self.tables.train.columns),
            rows=self.tables.train.rows,
            held_out_rows=0 if held_out is None else held_out.rows,
            version=__version__,
        )

    def _exposure(self) -> ColumnExposure | None:
        """What Bob can learn of her columns: for Alice to know before she begins."""
        if self.config.role == "bob":
            return None
        train, held_out = self.tables.train, self.tables.held_out
        held_out_rows = 0 if held_out is None else held_out.rows
        exposed = column_exposure(self.terms, train.rows, train, held_out_rows)
        return replace(
            exposed, warning=f"{exposed.warning}. {self._counted(exposed.scores_per_row)}"
        )

    def _counted(self, opens: int) -> str:
        """What Bob was given before, and may be given, in this training too."""
        book = score_book(self.config)
        given = 0 if book is None else book.most_given()
        limit = self.config.privacy.scores_per_row
        bound = "no limit is set (scores-per-row)"
        if limit is not None:
            refused = given + opens > limit
            bound = f"the limit is {limit:,}"
            bound += " and a new training of these rows is refused" if refused else ""
        return f"So far {self.config.peer} was given up to {given:,} of a row; {bound}"

    def _estimate(self) -> Estimate | None:
        """How long it will take; only Alice has the columns that decide it."""
        if self.config.role == "bob":
            return None
        # Loaded here: a training makes no forecast.
        from taciturn.engine.forecast import forecast

        memory = self.config.compute.table_memory << 20
        return forecast(self.terms, self.tables.train, table_memory=memory)


@dataclass(frozen=True, slots=True, repr=False)
class _Training:
    """One training, from its checkpoint to its model file.

    Args:
        party: Whose it is.
        meeting: With the peer.
        kept: The state folder.
        coins: This side's coins.
        bob: Bob's labels and ledger; None at Alice.
        resume: The state at the checkpoint; None to begin.
        figures: How it goes.
        recording: The transcript of this side, where one is asked for.
        account: Where this side counts what it gives away.
        begun: Set once the sides have found that they fit.
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
        """The training as the checkpoint left it.

        Raises:
            StateError: What the checkpoint needs is not there, or not what it was.
        """
        past, metrics = meeting.past, party.config.output.metrics
        body = json.loads(past.checkpoint.body) if past.checkpoint.body else None
        coins = KeyedEntropy(past.meta.coins)
        figures = Figures(
            party.config.path(metrics) if metrics else None,
            party.tables.labels,
            party.terms.per_epoch(party.tables.train.rows),
            party.log,
            party.terms.agreement.class_weight,
        )
        if body is not None:
            figures.restore(body["figures"])
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
        if self.resume is not None:
            # A checkpoint of a version that did not count.
            self.account.charge()
        config, state, recording = self.party.config, self.party.config.state, self.recording
        scratch = self.kept.scratch
        program = self.party.program(self.coins, self.bob, self.resume, scratch)
        # A diverging training overflows; the programs refuse what comes of it, in words.
        quiet = np.errstate(over="ignore", invalid="ignore")
        # On one thread the same numbers come out on every machine and in every run.
        with recording or nullcontext(), quiet, one_thread():
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
            share = self._share(result)
            self._save(share)
            if recording is not None:
                recording.conclude({"session": share.session})
        self.figures.write(self.meeting.traffic, force=True)
        self.party.log("model written", file=config.output.model)
        if result.quality is not None:
            quality = record_of(result.quality)
            figures = {name: value for name, value in quality.items() if value is not None}
            self.party.log("quality told" if self.bob else "quality learnt", **figures)
        for note in self._ledger_notes():
            self.party.log("note", about=note)
        stopped, curve = result.trained.stopped, self.figures.so_far(self.meeting.traffic).curve
        run = PartyRun(
            identity=self.party.identity(),
            model=str(config.path(config.output.model)),
            parties=self.party.feature_parties(result.trained.company.widths),
            stopped=None if stopped is None else stopped.value,
            metrics=PartyMetrics(curve=curve or None),
            suspected_wraps=self._suspected_wraps(result.trained),
            converged_reason=UNSEEN if self.party.terms.mechanism.shares_scores else None,
            told_quality=result.quality,
            importance=self._importance(result.trained.weights),
            ledger=None if self.bob is None else self.bob.ledger.statement(),
            run=self.figures.so_far(self.meeting.traffic),
        )
        return Ended.of(run, result, share.session)

    def _save(self, share: ModelShare) -> None:
        """Writes the model; one of an earlier session keeps a name of its own."""
        path = self.party.config.path(self.party.config.output.model)
        kept = set_aside(path, share.session)
        if kept is not None:
            self.party.log("earlier model kept", file=kept.name)
        share.save(path)

    def _observe(self, event: Event) -> None:
        self.figures.observe(event)
        self.figures.write(self.meeting.traffic)
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
        return json.dumps(values).encode()

    def _share(self, result: PartyResult) -> ModelShare:
        """This side's share of the model, for its file."""
        tables, terms, trained = self.party.tables, self.party.terms, result.trained
        several, names = trained.company.widths, terms.agreement.parties or {}
        return ModelShare(
            role=self.party.config.role,
            columns=tables.train.columns,
            weights=trained.weights,
            preparation=tables.preparation,
            agreement=terms.agreement.model_dump(),
            session=trained.company.session if several else self.meeting.name,
            rows=tables.train.rows,
            data_digest=tables.train.digest(),
            metrics={} if result.quality is None else {"told_quality": record_of(result.quality)},
            ledger={} if self.bob is None else record_of(self.bob.ledger.statement()),
            notes=(*tables.notes, *self._ledger_notes()),
            share=_values(trained.share),
            bob_share=_values(trained.bob_share),
            bob_bits=0 if trained.bob_share is None else trained.bob_share.magnitude_bits,
            scales={} if trained.share is None else trained.share.scales.to_json(),
            magnitude_bits=0 if trained.share is None else trained.share.magnitude_bits,
            whitening=_whitening_of(trained.share) or _whitening_of(trained.bob_share),
            name=self.party.name,
            parties=dict(zip(names, several, strict=True)),
        )

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

    def _suspected_wraps(self, trained: Trained) -> int | None:
        """What Bob counted from the first iteration on; None where no score can wrap."""
        if trained.share is None or not isinstance(trained, BobTrained):
            return None
        if self.party.terms.mechanism.shares_scores:
            # Nobody sees a score, so nobody can suspect one.
            return None
        return trained.suspected_wraps

    def _ledger_notes(self) -> tuple[str, ...]:
        return () if self.bob is None else self.bob.ledger.notes()


@contextmanager
def _nothing_begun(training: _Training, kept: Kept) -> Iterator[None]:
    """Forgets a session whose sides do not fit: nothing was released, and nobody can resume it.

    Without this the greeting that did not fit would be played back the next time, too.
    """
    try:
        yield
    except (RemoteProtocolError, PeerStopped) as problem:
        code = problem.code if isinstance(problem, PeerStopped) else problem.exit_code
        if code in _MISFITS and not training.begun.is_set():
            kept.journal.discard()
            training.party.log("the sides do not fit; the next run starts a new session")
        raise


def _values(share: WeightShare | None) -> tuple[int, ...]:
    return () if share is None else tuple(share.values.tolist())


def _whitening_of(share: WeightShare | None) -> tuple[float, ...]:
    """The coordinates of a side's own weights, where they are shared and not its columns'."""
    return () if share is None or share.whitening is None else share.whitening.to_numbers()


def _lack(name: str, problem: ConfigError) -> AgreementError:
    """What the peer is told of a mechanism that this side cannot use."""
    if isinstance(problem, ExtensionError):
        return AgreementError(f"its package of the mechanism {name} is broken")
    return AgreementError(f"it does not have the mechanism {name}")


def _recording(
    party: Party, record: Path, body: dict[str, Any] | None, coins: KeyedEntropy
) -> TranscriptFile:
    """The transcript of this side, new or continued at the checkpoint.

    Raises:
        StateError: The session began without one.
    """
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


def terms_of(config: PartyConfig, tables: PartyTables) -> Terms:
    """The terms of a party's training, from its file and its table.

    Raises:
        ConfigError: The mechanism cannot be had with these settings.
        PrivacyError: Nor with these limits.
        AgreementError: This side's table has another size than was agreed.
    """
    settings, known = config.settings(), config.alice_columns
    own, rows = len(tables.train.columns), config.agreed.get("rows", tables.train.rows)
    columns = own if known is None else known
    with shown_by(config.face):
        if rows != tables.train.rows:
            raise AgreementError(
                f"rows is {rows}, and this side's table has {tables.train.rows} to train on",
                setting="rows",
                hint=Hint("write {rows} on both sides", rows=tables.train.rows),
            )
        alone = config.role == "alice" and not config.parties
        if alone and known is not None and known != own:
            raise AgreementError(
                f"alice-columns is {known}, and her prepared table has {own}",
                setting="alice_columns",
                hint=Hint("write {alice_columns} on both sides", alice_columns=own),
            )
        common = agree(settings, columns, tables.train.rows, parties=config.parties or None)
    beside = {k: v for k, v in config.beside().items() if k in Agreement.model_fields}
    if config.agreement_file is not None:
        # Two sides with two files notice when they meet; a model's file has which one it was.
        beside["file_digest"] = config.agreement_file.digest
    return Terms(Agreement.of({**common.agreement.model_dump(), **beside}), common.scheme)


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
