"""Audit of a real session from one side's recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from taciturn.privacy.events import Statement
from taciturn.results.figures import ledger_values
from taciturn.results.serialise import OMITTED, Result, Subject
from taciturn_audit.results.audit import (
    AfterEpochs,
    Distinguisher,
    Evidence,
    Findings,
    MessageSeen,
    Skipped,
)
from taciturn_audit.results.columns import BobSeat
from taciturn_audit.results.figures import adversary_values, leakage_values

if TYPE_CHECKING:
    from taciturn.report.blocks import Block, Page
    from taciturn.results.figures import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A real session as the side that recorded it knows it.

    ``started`` is when the recording began, in UTC; recordings of earlier versions have no such
    time. ``table_digest`` is of the recorder's prepared training table, ``ids_digest`` of the
    training rows' ids in order, ``file_digest`` of the recording itself.
    """

    session: str
    recorder: Literal["alice", "bob"]
    peer: str
    started: str | None
    version: str
    rows: int
    held_out_rows: int
    columns: int
    peer_columns: int
    agreement: Mapping[str, object] = field(repr=False)
    agreement_digest: str
    table_digest: str
    ids_digest: str
    file_digest: str

    @property
    def mechanism(self) -> str:
        """Mechanism that protected the labels."""
        return str(self.agreement["mechanism"])

    @property
    def encryption(self) -> str:
        """The scheme and its strength."""
        return f"{self.agreement['scheme']}, {self.agreement['key_bits']} bits"


@dataclass(frozen=True, slots=True)
class Guessed:
    """Guess of an attack before it is judged.

    ``spoken`` counts the rows that it has something to say about, ``certain`` those that it calls
    solved. ``limited`` says that a limit on its work ended it, and is absent otherwise.
    """

    name: str
    spoken: int
    certain: int
    seconds: float
    remark: str
    limited: bool | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class Estimated:
    """Estimate of a column attack before it is judged, with no row known.

    ``columns`` counts those of the estimate. ``explains`` is the share of the variance of the
    scores that Bob saw which it explains, fitted on every second row and judged on the others: it
    says whether the estimate holds together, not whether it is right.
    """

    name: str
    columns: int
    explains: float
    seconds: float
    remark: str
    limited: bool | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Judgement by the side that did not record, from its own table.

    ``table_digest`` is of its prepared training table. ``ledger`` is that of Bob's model file,
    where he judged and it is of this session.
    """

    rows: int
    table_digest: str
    same_session: bool
    ledger: Statement | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAudit(Result):
    """Audit of a real session: what the recorder learns about the other side's secret.

    Without a ``judgement`` there are guesses and no ``findings``. ``canary`` and what goes with it
    need both sides' tables. At Bob's seat there are ``estimates`` of Alice's columns in place of
    guesses, and ``bob_seat`` in place of findings, where her columns judged. ``notes`` say why an
    attack that a reader may look for does not apply.
    """

    kind: ClassVar[str] = "audit-session"
    known_by: ClassVar[str] = "recording"

    seat: Literal["alice", "bob"]
    recording: Recording
    guesses: tuple[Guessed, ...]
    skipped: tuple[Skipped, ...]
    judgement: Judgement | None
    shuffle_truth: bool
    findings: Findings | None
    canary: Findings | None
    over_epochs: tuple[AfterEpochs, ...]
    evidence: Evidence | None
    messages: tuple[MessageSeen, ...]
    distinguisher: Distinguisher | None = field(default=None, metadata=OMITTED)
    estimates: tuple[Estimated, ...] | None = field(default=None, metadata=OMITTED)
    bob_seat: BobSeat | None = field(default=None, metadata=OMITTED)
    notes: tuple[str, ...] | None = field(default=None, metadata=OMITTED)
    audited: str | None = field(default=None, metadata=OMITTED)
    version: str | None = field(default=None, metadata=OMITTED)
    command: str | None = field(default=None, metadata=OMITTED)

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        from taciturn_audit.report.session import session_blocks

        return session_blocks(self)

    def page(self, made: str = "") -> Page:
        """The audit's report."""
        from taciturn_audit.report.session import session_page

        return session_page(self)

    def subject(self) -> Subject:
        """The recorded session's rows, columns and mechanism."""
        recording = self.recording
        sides = ("alice", "bob") if recording.recorder == "alice" else ("bob", "alice")
        columns = dict(zip(sides, (recording.columns, recording.peer_columns), strict=True))
        return Subject(None, recording.mechanism, recording.rows, recording.held_out_rows, columns)

    def parts(self, bare: Part) -> tuple[Part, ...]:
        """One run, with what the best attack told."""
        from taciturn_audit.verdict import (
            before_judgement,
            conclude_columns_of,
            conclude_session,
            leakage,
        )

        recording = self.recording
        ledger = None if self.judgement is None else self.judgement.ledger
        entry = replace(
            bare.entry,
            mechanism=recording.mechanism,
            label_epsilon=None if ledger is None else ledger.label_epsilon_total,
        )
        values = {**ledger_values(ledger), **adversary_values(self.bob_seat)}
        conclusion = None if self.seat == "bob" else conclude_session(self)
        if conclusion is None:
            summary = conclude_columns_of(self) if self.seat == "bob" else before_judgement(self)
            entry = replace(entry, verdict=summary.headline)
            return (replace(bare, entry=entry, values=values),)
        true = leakage(conclusion.run, shuffled=False)
        shuffled = None if conclusion.canary is None else leakage(conclusion.canary, shuffled=True)
        entry = replace(entry, leakage=shuffled or true, verdict=conclusion.headline)
        values = {**values, **leakage_values(true), **leakage_values(shuffled)}
        return (replace(bare, entry=entry, values=values),)
