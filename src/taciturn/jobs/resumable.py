"""``ResumableSide``: a side that keeps a journal, so that running the job again resumes it.

The state folder is locked for the whole run. The journal says whether a session begins, resumes or
has ended; after its end a run only confirms to a peer that may have missed the last message.

**Guarantee.** Consent comes before the first message: what this side's own file does not accept,
and what its budget does not allow, is refused before a session with the peer begins. The budget is
charged before the first message that the charge is for. A frame is in the journal before it is sent
(``party.link``), and the outcome before the last message is confirmed. What depends on labels is
computed after the connection is closed, from what the journal holds.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from taciturn.errors import (
    AgreementError,
    PeerStopped,
    RemoteProtocolError,
    StateError,
)
from taciturn.jobs.base import PreparedSide, RunContext, SessionFacts, Task
from taciturn.party.agreement_check import require_begun_in_time
from taciturn.party.config import PartyConfig
from taciturn.party.journal import NONCE_BYTES, Meta, Past, changed_facts
from taciturn.party.log import Figures, Log
from taciturn.party.resume import CheckpointPolicy
from taciturn.party.session import Meeting, PeerSession
from taciturn.party.state_store import SessionState, locked_state_folder, state_folder
from taciturn.party.telemetry import MetricsPublisher
from taciturn.protocol.events import Boundary, Event, HeldOutDecided
from taciturn.protocol.state import TrainingState
from taciturn.results.parties import PartyFigures, Setup
from taciturn.rng import KeyedEntropy, SystemEntropy
from taciturn.setting_syntax import Hint

T = TypeVar("T")
R = TypeVar("R")
# Exit codes of a side that finds another one set up otherwise, or not keeping to the protocol.
_MISFITS = (RemoteProtocolError.exit_code, AgreementError.exit_code)


@dataclass(frozen=True, slots=True)
class BudgetCheck:
    """Check of this side's budget over all sessions.

    ``require`` raises BudgetExceeded where the session exceeds the limit, and counts nothing; it
    returns whether scores of the held-out rows may be opened. ``charge`` counts the session, once,
    with the name of its model (empty if not known), and with these scores if they are opened.
    """

    require: Callable[[], bool]
    charge: Callable[[str, bool], None]


class SessionOutcome(Protocol):
    """Outcome of a session, for its journal."""

    @property
    def figures(self) -> PartyFigures:
        """The figures of the session."""

    @property
    def assessed(self) -> bool:
        """Whether nothing is left to compute."""


O = TypeVar("O", bound=SessionOutcome)  # noqa: E741 - the outcome


class JournaledSession:
    """State of a session in a journal, from its last checkpoint.

    ``begun`` becomes true once the sides have found that they fit. ``opens_held_out`` is whether
    scores of the held-out rows are opened.
    """

    meeting: Meeting
    outcome: Any = None

    def __init__(
        self,
        side: ResumableSide[Any, Any],
        config: PartyConfig,
        session: PeerSession,
        state: SessionState,
        publisher: MetricsPublisher,
    ) -> None:
        self.session, self.state, self.publisher, self._side = session, state, publisher, side
        self.journal, self.begun, self.opens_held_out = state.journal, False, True
        for warning in state.warnings:
            session.log("warning", about=warning)
        self.past: Past = _past(side, config, state, session.log)
        self._budget = side.budget(self.past.meta.charge_name)
        points = config.state.checkpoint_iterations, config.state.checkpoint_seconds
        self._policy = CheckpointPolicy(*points)
        if self.past.done is not None:
            self.outcome = side.from_record(self.past.done, state)
            session.log("this side has already finished; confirming to the peer")
            return
        self.opens_held_out = self._budget.require()
        if self.checkpoint is not None:
            self.opens_held_out = self.checkpoint["opens_held_out"]

    @property
    def entropy(self) -> KeyedEntropy:
        """This side's randomness, the same after every restart."""
        return KeyedEntropy(self.past.meta.entropy)

    @property
    def checkpoint(self) -> dict[str, Any] | None:
        """Value of ``freeze`` at the last checkpoint; None at the beginning."""
        body = self.past.checkpoint.body
        return json.loads(body) if body else None

    def figures(self, figures: Figures) -> PartyFigures:
        """The figures so far, with the traffic of all links."""
        return figures.so_far(self.meeting.traffic)

    def follow(self, figures: Figures) -> None:
        """Publish these figures from now on."""
        self.publisher.follow(partial(self.figures, figures))

    def _name_at(self, state: TrainingState) -> str:
        """The name of the session in model files."""
        shape = state.group_shape
        return shape.session if shape.widths else self.meeting.name

    def task_in(self, meeting: Meeting) -> Task[Any, Any]:
        """The side's task, from its last checkpoint; a session that resumes is charged already."""
        self.meeting = meeting
        resumed = bool(self.past.checkpoint.body)
        if resumed:
            # Into a store that was not there when the session began; before a task opens files.
            self._budget.charge("", self.opens_held_out)
            meeting.begun = True
        task = self._side.task(self)

        def observed(event: Event) -> None:
            if isinstance(event, HeldOutDecided):
                self.opens_held_out = event.opened
            if isinstance(event, Boundary) and not self.begun:
                self.begun = True
                if not resumed:
                    # Before the first score or release leaves; a session is charged once.
                    self._budget.charge(self._name_at(event.state), self.opens_held_out)
                meeting.begun = True
            self.publisher.require_written()
            task.hooks.observe(event)

        def frozen(at: TrainingState) -> bytes:
            # The checkpoint before this one is on the disk: what it does not name is of no use.
            self.state.array_store.sweep()
            body = task.hooks.freeze(at)
            self.publisher.checkpointed()
            return body

        hooks = replace(task.hooks, observe=observed, freeze=frozen, policy=self._policy)
        return replace(task, hooks=hooks)

    def end(self, outcome: SessionOutcome) -> None:
        """Record the outcome."""
        if self.outcome is None:
            self.outcome = outcome
            self._record(outcome)
        # The farewell is no part of the figures.
        self.publisher.follow(lambda: outcome.figures)

    def conclude(self, outcome: SessionOutcome, session: SessionFacts) -> Any:  # noqa: ANN401 - R
        """Assess what depends on labels, and remove what the session needed."""
        if not outcome.assessed:
            # From here on what is done, and how long it takes, may depend on labels.
            self.session.close()
            outcome = self._side.assess(outcome, self.state, self.entropy)
            self._record(outcome)
        self.state.clear()
        if not session.confirmed:
            session.log("the peer has not confirmed the last message; run again if it lacks it")
        return self._side.conclude(outcome, session)

    def _record(self, outcome: SessionOutcome) -> None:
        self.state.journal.done(self._side.to_record(outcome, self.state))


class ResumableSide(PreparedSide[O, R]):
    """One party's part in a job with a journal; O is what the session ends with.

    ``fresh`` discards an unfinished session.
    """

    fresh = False

    @property
    @abstractmethod
    def setup(self) -> Setup:
        """Metrics published before the peer is contacted."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Facts that must not change while a session is unfinished."""

    @abstractmethod
    def require_accepted(self) -> None:
        """Raise where this side's own file does not accept what the session discloses."""

    @abstractmethod
    def budget(self, session: str) -> BudgetCheck:
        """The budget that the session is charged to, under its name."""

    @abstractmethod
    def task(self, session: JournaledSession) -> Task[Any, O]:
        """The task, from the last checkpoint; what depends on labels is left for ``assess``."""

    @abstractmethod
    def to_record(self, outcome: O, state: SessionState) -> bytes:
        """The outcome for the journal."""

    @abstractmethod
    def from_record(self, record: bytes, state: SessionState) -> O:
        """The outcome from the journal."""

    @abstractmethod
    def conclude(self, outcome: O, session: SessionFacts) -> R:
        """The result, of an outcome that is assessed."""

    @abstractmethod
    def assess(self, outcome: O, state: SessionState, entropy: KeyedEntropy) -> O:
        """The outcome with what depends on labels; the connection is closed."""

    @contextmanager
    def store(self, context: RunContext) -> Iterator[JournaledSession]:
        """The journal of this side's state folder, which is locked meanwhile."""
        config = context.config
        # Before anything is written: the files of a session that runs are not this start's.
        with locked_state_folder(config):
            publisher = MetricsPublisher.from_config(config, context.callbacks.publish)
            publisher.begin(self.setup)
            with publisher.running():
                session = context.session(publisher.hear)
                self.require_accepted()
                with state_folder(config) as state:
                    journaled = JournaledSession(self, config, session, state, publisher)
                    with _discarding_misfits(journaled):
                        yield journaled


def _past(
    side: ResumableSide[Any, Any], config: PartyConfig, state: SessionState, log: Log
) -> Past:
    """The session so far, from the journal, or a new one."""
    facts = side.facts()
    past = None if side.fresh else state.journal.resume()
    changed = [] if past is None else changed_facts(past.meta, facts)
    if changed:
        raise StateError(
            "these have changed since the session started: " + ", ".join(changed),
            where=str(config.path(config.state.folder)),
            hint=Hint("restore them, or start over on both sides with {fresh}", fresh=True),
        )
    if past is None or past.met_nobody:
        # A session that began in time may end later.
        if config.agreement_file is not None:
            require_begun_in_time(config)
        state.clear()
        log("session started")
        # Randomness of a journal that has met nobody may have been used since, if the journal
        # is a copy that was put back. Its name stays: a peer may have noted it already.
        nonce = SystemEntropy().token(NONCE_BYTES) if past is None else past.meta.nonce
        return state.journal.begin(Meta(facts, KeyedEntropy.from_system().key, nonce))
    sent, received = zip(*(link.counts for link in (past, *past.further)), strict=True)
    log("session resumed", frames_sent=sum(sent), frames_received=sum(received))
    return past


@contextmanager
def _discarding_misfits(session: JournaledSession) -> Iterator[None]:
    """Discard a session whose sides do not fit: nothing was released, and nobody can resume it.

    Otherwise the next run would play back the greeting that did not fit.
    """
    try:
        yield
    except (RemoteProtocolError, PeerStopped) as problem:
        code = problem.code if isinstance(problem, PeerStopped) else problem.exit_code
        if code in _MISFITS and not session.begun and session.outcome is None:
            session.state.journal.discard()
            session.session.log("the sides do not fit; the next run starts a new session")
        raise
