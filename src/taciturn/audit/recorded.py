"""A real session's audit: one side's own recording, attacked from that side's seat.

Alice's side has her recording, her file and her table, and no label: it can attack and write down
its guesses. Whoever has the labels, which is Bob, can judge them. Where both sides' files lie in
one place, as in a trial, one audit does both, and trains again on shuffled labels and on coins.

**Guarantee.** An attack gets the view and nothing else. Guesses are judged only by labels of the
same rows, in the same order, and of the same session where Bob's model file says which that was.

**Assumes.** The recording is whole and honest: its hash chain shows damage, not forgery. Bob's
labels are those that he trained with; his model file has a digest of his columns, not of them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from taciturn.audit.guesses import GuessesFile
from taciturn.audit.messages import messages_to_alice
from taciturn.audit.runner import Guesses, guess_labels
from taciturn.audit.session import SHUFFLED_TRUTH, Session, look_at_ciphertexts, shuffled
from taciturn.data.prepare import Preparation
from taciturn.data.split import VerticalData
from taciturn.data.tables import LabelTable
from taciturn.deploy.config import PartyConfig
from taciturn.deploy.tables import PartyTables, load_tables
from taciturn.deploy.train import terms_of
from taciturn.engine.callbacks import SILENT, Callbacks
from taciturn.engine.transcript import Transcript
from taciturn.errors import ConfigError, DataError, FileError, RowOrderError, TranscriptError
from taciturn.faces import Hint
from taciturn.model.history import listed_models
from taciturn.model.share import ModelShare
from taciturn.privacy.statement import Statement
from taciturn.results.audit import Findings
from taciturn.results.serialise import read
from taciturn.results.session import Guessed, Judgement, Recording, SessionAudit
from taciturn.settings.agreement import Agreement, differences
from taciturn.view.alice_view import AliceView

_UNCHANGED = "give the file and the table that were used then, unchanged"


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """A side's recording with that side's file and table, which fit it."""

    recording: Recording
    config: PartyConfig
    tables: PartyTables = field(repr=False)
    view: AliceView = field(repr=False)

    @classmethod
    def read(cls, path: Path, party: Path) -> RecordedSession:
        """Reads a recording, and the file of the side that made it.

        Args:
            path: What ``taciturn party --record`` wrote.
            party: The settings file of the same side.

        Raises:
            TranscriptError: It is not a recording of that side, or of another table or agreement.
            ConfigError: The party's file is not one.
            DataError: Its table is not fit for use.
        """
        transcript, config = Transcript.load(path), PartyConfig.read(party)
        header = transcript.header
        _require_role(header, config)
        tables = load_tables(config)
        # Where Bob's seat is to be had, his view of his own recording is made here.
        view = AliceView.of(transcript, tables.train, tables.held_out)
        _require_same(header, view.agreement, config, tables)
        recording = Recording(
            session=str(transcript.footer.get("session", "")),
            recorder=config.role,
            peer=str(header.get("peer", config.link.peer)),
            started=str(header["started"]) if "started" in header else None,
            version=str(header.get("version", "")),
            rows=tables.train.rows,
            held_out_rows=0 if tables.held_out is None else tables.held_out.rows,
            columns=len(tables.train.columns),
            peer_columns=view.peer.columns,
            agreement=view.agreement.model_dump(mode="json"),
            agreement_digest=hashlib.sha256(view.agreement.canonical().encode()).hexdigest(),
            table_digest=tables.train.digest(),
            ids_digest=tables.train.ids.digest(),
            file_digest=_file_digest(path),
        )
        return cls(recording, config, tables, view)


@dataclass(frozen=True, slots=True)
class Truth:
    """Bob's labels, which fit a recording, and what his model file says of the session."""

    tables: PartyTables = field(repr=False)
    labels: LabelTable = field(repr=False)
    share: ModelShare | None = field(repr=False)

    @classmethod
    def read(cls, party: Path, recording: Recording) -> Truth:
        """Reads Bob's file, his table and, where there is one, his share of the session's model.

        Raises:
            ConfigError: It is not Bob's file.
            DataError: His table is not fit for use, of other rows, or not the one of his model.
            TranscriptError: He has models, and none of them is of the recorded session.
        """
        config = PartyConfig.read(party)
        if config.role != "bob":
            raise ConfigError(
                "guesses are judged by labels, which Alice does not have",
                setting="truth",
                hint="give Bob's file",
            )
        tables = load_tables(config)
        if tables.labels is None:
            raise FileError("the table has no labels", where=str(party))
        share = _share_of(config, recording)
        if share is not None and share.data_digest != tables.train.digest():
            raise DataError(
                "Bob's table is not the one that his model was trained on",
                where=str(config.path(config.data.file)),
                hint=_UNCHANGED,
            )
        truth = cls(tables, tables.labels, share)
        truth.require(recording)
        return truth

    def require(self, recording: Recording) -> None:
        """Insists that these are the labels of the recorded rows.

        Raises:
            RowOrderError: They are of other rows.
        """
        if self.labels.ids.digest() != recording.ids_digest:
            raise RowOrderError(
                "Bob's training rows are not those of the recording",
                hint="give the file and the list of aligned rows with which he trained then",
            )

    @property
    def ledger(self) -> Statement | None:
        """What the labels paid in that session, where his model file says it."""
        return read(Statement, self.share.ledger) if self.share and self.share.ledger else None

    def judgement(self) -> Judgement:
        """Who judged, for the report."""
        return Judgement(
            rows=self.labels.rows,
            table_digest=self.tables.train.digest(),
            same_session=self.share is not None,
            ledger=self.ledger,
        )


def audit_recording(
    session: RecordedSession,
    truth: Path | None = None,
    *,
    write_guesses: Path | None = None,
    callbacks: Callbacks = SILENT,
    canary: bool = True,
    shuffle_truth: bool = False,
) -> SessionAudit:
    """Attacks a recorded session; judges where Bob's file is here too.

    Args:
        session: The recording, with its side's table.
        truth: Bob's file, where both sides' files lie in one place.
        write_guesses: Where to write what the attacks say, for Bob to judge.
        callbacks: Who is told.
        canary: Also train on shuffled labels and on coins, where both tables are here, and look at
            ciphertexts, where they are all that Alice receives.
        shuffle_truth: Judge against labels shuffled after the run.

    Raises:
        TaciturnError: With what is wrong, where, and the way out.
    """
    view = session.view
    # Before the work: a file that does not fit is said at once.
    judge = None if truth is None else Truth.read(truth, session.recording)
    guesses = guess_labels(view, announce=callbacks.announce, progress=callbacks.progress)
    wanted = canary and not shuffle_truth
    file = GuessesFile(
        recording=session.recording,
        guesses=guesses,
        messages=tuple(messages_to_alice(view)),
        distinguisher=look_at_ciphertexts(view, callbacks=callbacks) if wanted else None,
    )
    if write_guesses is not None:
        file.save(write_guesses)
    if judge is None:
        return _unjudged(file)
    audit = audit_guesses(file, judge, shuffle_truth=shuffle_truth)
    if audit.findings is None or not wanted:
        return audit
    claim = np.inf if judge.ledger is None else judge.ledger.label_epsilon_total
    trial = Session(_both_tables(session.tables, judge), callbacks)
    beside = trial.surroundings(session.config.settings(), audit.findings, claim)
    return replace(
        audit,
        canary=beside.canary,
        over_epochs=beside.over_epochs,
        evidence=beside.evidence,
    )


def audit_guesses(file: GuessesFile, truth: Truth, *, shuffle_truth: bool = False) -> SessionAudit:
    """Judges what Alice's side wrote down.

    Args:
        file: Her guesses.
        truth: Bob's labels.
        shuffle_truth: Judge against labels shuffled after the run.

    Raises:
        RowOrderError: They are of other rows.
    """
    truth.require(file.recording)
    labels = shuffled(truth.labels) if shuffle_truth else truth.labels
    findings: Findings = file.guesses.judged(labels)
    if shuffle_truth:
        findings = replace(findings, verdict=f"{SHUFFLED_TRUTH} {findings.verdict}")
    return replace(
        _unjudged(file),
        judgement=truth.judgement(),
        shuffle_truth=shuffle_truth,
        findings=findings,
        distinguisher=None if shuffle_truth else file.distinguisher,
    )


def _unjudged(file: GuessesFile) -> SessionAudit:
    return SessionAudit(
        seat=file.recording.recorder,
        recording=file.recording,
        guesses=_summaries(file.guesses),
        skipped=file.guesses.skipped,
        judgement=None,
        shuffle_truth=False,
        findings=None,
        canary=None,
        over_epochs=(),
        evidence=None,
        messages=file.messages,
        distinguisher=file.distinguisher,
    )


def _summaries(guesses: Guesses) -> tuple[Guessed, ...]:
    return tuple(
        Guessed(
            name,
            int(np.count_nonzero(guess.signal)),
            int(np.count_nonzero(guess.certain)),
            guesses.seconds[name],
            guess.remark,
            guess.limited or None,
        )
        for name, guess in guesses.attacks.items()
    )


def _both_tables(alice: PartyTables, truth: Truth) -> VerticalData:
    """What both sides trained on, for a training in one process."""
    bob, held_out = truth.tables, alice.held_out
    rest = (alice.train, bob.train, truth.labels)
    if held_out is not None and bob.held_out is not None and bob.held_out_labels is not None:
        rest = (held_out, bob.held_out, bob.held_out_labels)
    return VerticalData(
        alice.train,
        bob.train,
        truth.labels,
        *rest,
        preparation=Preparation(()),
        notes=(),
        held_out=rest[0] is not alice.train,
    )


def _require_role(header: dict[str, object], config: PartyConfig) -> None:
    if header.get("kind") != "party":
        raise TranscriptError(
            "this is a recording of a simulation, which needs no party's file",
            hint=Hint("leave {party} out"),
        )
    role = header.get("role")
    if role == "bob":
        raise TranscriptError(
            "this is Bob's recording: it shows what he sees, and labels are told from what Alice "
            "sees",
            hint="give the recording of Alice's side",
        )
    if role != config.role:
        raise TranscriptError(
            f"this is the recording of {str(role)[:20]}, and the file is {config.role}'s",
            hint=Hint("give with {party} the file of the side that recorded"),
        )


def _require_same(
    header: dict[str, object], agreement: Agreement, config: PartyConfig, tables: PartyTables
) -> None:
    """Insists that file and held-out rows are those of the recording, as the table is.

    Raises:
        TranscriptError: They are others.
    """
    held_out = "" if tables.held_out is None else tables.held_out.digest()
    if header.get("held_out_digest", held_out) != held_out:
        raise TranscriptError(
            "the transcript was recorded with other held-out rows", hint=_UNCHANGED
        )
    now = terms_of(config, tables).agreement
    apart = differences(now.canonical(), agreement.canonical())
    if apart:
        raise TranscriptError(
            "the file's agreement is not the recording's: " + "; ".join(apart),
            where=f"{config.where}, [agreement]",
            hint=_UNCHANGED,
        )


def _share_of(config: PartyConfig, recording: Recording) -> ModelShare | None:
    """Bob's share of the session's model, among those that he kept; None where he has no model.

    Raises:
        TranscriptError: All that he has are of other sessions.
    """
    path = config.path(config.output.model)
    try:
        models = listed_models(path).models
    except FileError:
        return None
    for model in models:
        if model.session == recording.session:
            return ModelShare.load(Path(model.file))
    raise TranscriptError(
        f"the recording is of session {recording.session[:12]}, and none of Bob's models is",
        where=str(path),
        hint="give a file of Bob's whose model is that session's, or one that has no model yet",
    )


def _file_digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
