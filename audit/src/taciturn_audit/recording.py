"""A side's own recording of a real session, with that side's file and table; and the other side's.

**Guarantee.** A recording is read only with the table, the held-out rows and the agreement that it
was made with. The other side judges only where its rows are the same, in the same order, and its
model file, where it has one, is of the same session and of its table.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path

from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import Preparation
from taciturn.data.split import VerticalData
from taciturn.engine.transcript import Transcript
from taciturn.errors import ConfigError, DataError, FileError, RowOrderError, TranscriptError
from taciturn.model.archive import listed_models
from taciturn.model.share import ModelShare
from taciturn.party.config import PartyConfig
from taciturn.party.tables import PartyTables, load_tables
from taciturn.party.training_inputs import party_terms
from taciturn.privacy.events import Statement
from taciturn.privacy.registry import mechanism
from taciturn.protocol.messages import Role
from taciturn.protocol.outcome import HeldOut
from taciturn.results.reading import read
from taciturn.setting_syntax import Hint
from taciturn.settings.agreement import Agreement, differences
from taciturn_audit.results.session import Judgement, Recording
from taciturn_audit.views.alice_view import AliceView
from taciturn_audit.views.bob_view import BobView

_UNCHANGED = "give the file and the table that were used then, unchanged"


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """A side's recording with that side's file and table, which fit it."""

    recording: Recording
    config: PartyConfig
    tables: PartyTables = field(repr=False)
    view: AliceView | BobView = field(repr=False)

    @classmethod
    def read(cls, path: Path, party: Path) -> RecordedSession:
        """Read what ``taciturn party --record`` wrote, with the settings file of the same side.

        Raises ``TranscriptError`` where the recording is of another side, table or agreement.
        """
        transcript, config = Transcript.load(path), PartyConfig.read(party)
        header = transcript.header
        _require_role(header, config)
        tables = load_tables(config)
        view: AliceView | BobView
        if config.role == "alice":
            view = AliceView.from_transcript(transcript, tables.train, tables.held_out)
            peer_columns = view.peer.columns
        else:
            view = _bob_view(transcript, config, tables)
            peer_columns = view.columns
        _require_same(header, view.agreement, config, tables)
        if isinstance(view, BobView):
            view = view.with_scores()
        recording = Recording(
            session=str(transcript.footer.get("session", "")),
            recorder=config.role,
            peer=str(header.get("peer", config.peer)),
            started=str(header["started"]) if "started" in header else None,
            version=str(header.get("version", "")),
            rows=tables.train.rows,
            held_out_rows=0 if tables.held_out is None else tables.held_out.rows,
            columns=len(tables.train.columns),
            peer_columns=peer_columns,
            agreement=view.agreement.model_dump(mode="json"),
            agreement_digest=hashlib.sha256(view.agreement.canonical().encode()).hexdigest(),
            table_digest=tables.train.digest(),
            ids_digest=tables.train.ids.digest(),
            file_digest=_file_digest(path),
        )
        return cls(recording, config, tables, view)


@dataclass(frozen=True, slots=True)
class OtherSide:
    """The table of the side that did not record, which fits, and its share of the model."""

    role: Role
    tables: PartyTables = field(repr=False)
    share: ModelShare | None = field(repr=False)

    @classmethod
    def read(cls, party: Path, recording: Recording) -> OtherSide:
        """Read the side's file, its table and, where there is one, its share of the model.

        Raises ``TranscriptError`` where it has models, and none of them is of the recorded session.
        """
        config = PartyConfig.read(party)
        if config.role == recording.recorder:
            raise _wrong_judge(config.role)
        tables = load_tables(config)
        if config.role == "bob" and tables.labels is None:
            raise FileError("the table has no labels", where=str(party))
        share, name = _share_of(config, recording), config.role.capitalize()
        if share is not None and share.data_digest != tables.train.digest():
            raise DataError(
                f"{name}'s table is not the one that the model there was trained on",
                where=config.table().where,
                hint=_UNCHANGED,
            )
        other = cls(config.role, tables, share)
        other.require(recording)
        return other

    def require(self, recording: Recording) -> None:
        """Raise ``RowOrderError`` unless its rows are the recorded ones."""
        if self.tables.train.ids.digest() != recording.ids_digest:
            raise RowOrderError(
                f"{self.role.capitalize()}'s training rows are not those of the recording",
                setting="truth",
                hint="give the file and the list of aligned rows of the training then",
            )

    @property
    def ledger(self) -> Statement | None:
        """The label ledger of that session, where Bob's model file has it."""
        return read(Statement, self.share.ledger) if self.share and self.share.ledger else None

    def judgement(self) -> Judgement:
        """The judging side, for the report."""
        return Judgement(
            rows=self.tables.train.rows,
            table_digest=self.tables.train.digest(),
            same_session=self.share is not None,
            ledger=self.ledger,
        )


def labels_of(tables: PartyTables) -> LabelTable:
    """Bob's labels; ``FileError`` where there are none."""
    if tables.labels is None:
        raise FileError("the table has no labels")
    return tables.labels


def both_tables(alice: PartyTables, bob: PartyTables) -> VerticalData:
    """The tables of both sides, for a training in one process."""
    labels, held_out = labels_of(bob), alice.held_out
    rest = (alice.train, bob.train, labels)
    if held_out is not None and bob.held_out is not None and bob.held_out_labels is not None:
        rest = (held_out, bob.held_out, bob.held_out_labels)
    return VerticalData(
        alice.train,
        bob.train,
        labels,
        *rest,
        preparation=Preparation(()),
        notes=(),
        held_out=rest[0] is not alice.train,
    )


def _bob_view(transcript: Transcript, config: PartyConfig, tables: PartyTables) -> BobView:
    labels, held_out = labels_of(tables), None
    if tables.held_out is not None and tables.held_out_labels is not None:
        held_out = HeldOut(tables.held_out, tables.held_out_labels)
    budget = config.privacy.budget
    view = BobView.from_session(transcript, tables.train, labels, held_out=held_out, budget=budget)
    flips = mechanism(view.agreement).label_flips
    if flips is None:
        return view
    # Loaded here: most mechanisms flip nothing.
    from taciturn.party.consent.label_flips import LabelFlipStore

    return replace(view, used=LabelFlipStore.from_config(config, flips, b"").recall(labels))


def _wrong_judge(recorder: Role) -> ConfigError:
    if recorder == "alice":
        return ConfigError(
            "guesses are judged by labels, which Alice does not have",
            setting="truth",
            hint="give Bob's file",
        )
    return ConfigError(
        "estimates are judged by Alice's columns, which Bob does not have",
        setting="truth",
        hint="give Alice's file",
    )


def _require_role(header: dict[str, object], config: PartyConfig) -> None:
    if header.get("kind") != "party":
        raise TranscriptError(
            "this is a recording of a simulation, which needs no party's file",
            setting="party",
            hint=Hint("leave {party} out"),
        )
    role = header.get("role")
    if role != config.role:
        raise TranscriptError(
            f"this is the recording of {str(role)[:20]}, and the file is {config.role}'s",
            setting="party",
            hint=Hint("give with {party} the file of the side that recorded"),
        )


def _require_same(
    header: dict[str, object], agreement: Agreement, config: PartyConfig, tables: PartyTables
) -> None:
    held_out = "" if tables.held_out is None else tables.held_out.digest()
    if header.get("held_out_digest", held_out) != held_out:
        raise TranscriptError(
            "the transcript was recorded with other held-out rows",
            setting="party",
            hint=_UNCHANGED,
        )
    now = party_terms(config, tables).agreement
    apart = differences(now.canonical(), agreement.canonical())
    if apart:
        raise TranscriptError(
            "the file's agreement is not the recording's: " + "; ".join(apart),
            where=f"{config.where}, [agreement]",
            hint=_UNCHANGED,
        )


def _share_of(config: PartyConfig, recording: Recording) -> ModelShare | None:
    path, name = config.path(config.output.model), config.role.capitalize()
    try:
        models = listed_models(path).models
    except FileError:
        return None
    for model in models:
        if model.session == recording.session:
            return ModelShare.load(Path(model.file))
    raise TranscriptError(
        f"the recording is of session {recording.session[:12]}, and none of {name}'s models is",
        where=str(path),
        hint=f"give a file of {name}'s whose model is that session's, or one that has no model yet",
    )


def _file_digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
