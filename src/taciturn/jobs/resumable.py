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
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from taciturn.engine.callbacks import noop
from taciturn.errors import (
    AgreementError,
    PeerStopped,
    RemoteProtocolError,
    StateError,
)
from taciturn.jobs.base import PreparedSide, RunContext
from taciturn.parallel import one_thread
from taciturn.party.agreement_check import require_begun_in_time
from taciturn.party.config import PartyConfig
from taciturn.party.journal import NONCE_BYTES, Meta, Past, changed_facts
from taciturn.party.log import Figures, Log
from taciturn.party.resume import CheckpointPolicy, LinkTap, RunHooks
from taciturn.party.session import Meeting
from taciturn.party.state_store import SessionState, locked_state_folder, state_folder
from taciturn.party.telemetry import MetricsPublisher
from taciturn.protocol.events import Boundary, Event, HeldOutDecided
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program
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


@dataclass(slots=True)
class JournaledSession:
    """A session with a journal, in which a side runs its program from the last checkpoint.

    ``begun`` becomes true once the sides have found that they fit. ``opens_held_out`` is whether
    scores of the held-out rows are opened.
    """

    meeting: Meeting
    state: SessionState
    publisher: MetricsPublisher
    budget: BudgetCheck
    policy: CheckpointPolicy
    opens_held_out: bool = True
    begun: bool = False

    def __post_init__(self) -> None:
        if self.checkpoint is not None:
            self.opens_held_out = self.checkpoint["opens_held_out"]

    @property
    def entropy(self) -> KeyedEntropy:
        """This side's randomness, the same after every restart."""
        return KeyedEntropy(self.meeting.past.meta.entropy)

    @property
    def checkpoint(self) -> dict[str, Any] | None:
        """Value of ``freeze`` at the last checkpoint; None at the beginning."""
        body = self.meeting.past.checkpoint.body
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

    def run_from_checkpoint(
        self,
        program: Program[T],
        observe: Callable[[Event], None],
        freeze: Callable[[TrainingState], dict[str, Any]],
        tap: LinkTap = noop,
        note: Callable[[bytes], None] = noop,
    ) -> T:
        """Run the program to its end; ``freeze`` is called for the content of a checkpoint."""
        resumed = bool(self.meeting.past.checkpoint.body)
        if resumed:
            # Into a store that was not there when the session began.
            self.budget.charge("", self.opens_held_out)
            self.meeting.begun = True

        def observed(event: Event) -> None:
            if isinstance(event, HeldOutDecided):
                self.opens_held_out = event.opened
            if isinstance(event, Boundary) and not self.begun:
                self.begun = True
                if not resumed:
                    # Before the first score or release leaves; a session is charged once.
                    self.budget.charge(self._name_at(event.state), self.opens_held_out)
                self.meeting.begun = True
            self.publisher.require_written()
            observe(event)

        def frozen(at: TrainingState) -> bytes:
            # The checkpoint before this one is on the disk: what it does not name is of no use.
            self.state.array_store.sweep()
            values = {**freeze(at), "opens_held_out": self.opens_held_out}
            self.publisher.checkpointed()
            return json.dumps(values).encode()

        # A diverging training overflows, and the programs refuse the result.
        with np.errstate(over="ignore", invalid="ignore"), one_thread():
            return self.meeting.run(program, RunHooks(observed, frozen, self.policy, tap, note))


class ResumableSide(PreparedSide[R], Generic[O, R]):
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
    def run_task(self, session: JournaledSession) -> O:
        """Run the program and write its results; what depends on labels is left for ``assess``."""

    @abstractmethod
    def to_record(self, outcome: O, state: SessionState) -> bytes:
        """The outcome for the journal."""

    @abstractmethod
    def from_record(self, record: bytes, state: SessionState) -> O:
        """The outcome from the journal."""

    @abstractmethod
    def assess(self, outcome: O, state: SessionState, entropy: KeyedEntropy) -> O:
        """The outcome with what depends on labels; the connection is closed."""

    @abstractmethod
    def conclude(self, outcome: O, *, confirmed: bool) -> R:
        """The result; ``confirmed`` is True if the peer has confirmed the last message."""

    def run_session(self, context: RunContext) -> R:
        """Begin or resume the session, and run it to its recorded end."""
        self.begin(Log.from_config(context.config, context.callbacks.announce), context.callbacks)
        # Before anything is written: the files of a session that runs are not this start's.
        with locked_state_folder(context.config):
            publisher = MetricsPublisher.from_config(context.config, context.callbacks.publish)
            publisher.begin(self.setup)
            with publisher.running():
                return self._run_locked(context, publisher)

    def _run_locked(self, context: RunContext, publisher: MetricsPublisher) -> R:
        job, config = context.job, context.config
        session = context.session(publisher.hear)
        log = session.log
        self.require_accepted()
        with state_folder(config) as state:
            for warning in state.warnings:
                log("warning", about=warning)
            past = self._past(config, state, log)
            budget = self.budget(past.meta.charge_name)
            opens_held_out = True
            if past.done is None:
                opens_held_out = budget.require()
            with (
                self.at_work(config, log) if past.done is None else nullcontext(),
                session.meet(job.purpose, past, state.journal) as meeting,
            ):
                if past.done is None:
                    policy = CheckpointPolicy(
                        config.state.checkpoint_iterations, config.state.checkpoint_seconds
                    )
                    journaled = JournaledSession(
                        meeting, state, publisher, budget, policy, opens_held_out
                    )
                    with _discarding_misfits(journaled, log):
                        outcome = self.run_task(journaled)
                    # Before the farewell: a stop during it must not run the program again.
                    state.journal.done(self.to_record(outcome, state))
                else:
                    outcome = self.from_record(past.done, state)
                    log("this side has already finished; confirming to the peer")
                # The farewell is no part of the figures.
                publisher.follow(partial(_figures_of, outcome))
                confirmed = meeting.finish(job.farewell_seconds)
            if not outcome.assessed:
                # From here on what is done, and how long it takes, may depend on labels.
                session.close()
                outcome = self.assess(outcome, state, KeyedEntropy(past.meta.entropy))
                state.journal.done(self.to_record(outcome, state))
            state.clear()
            if not confirmed:
                log("the peer has not confirmed the last message; run again if it lacks it")
            return self.conclude(outcome, confirmed=confirmed)

    def _past(self, config: PartyConfig, state: SessionState, log: Log) -> Past:
        """The session so far, from the journal, or a new one."""
        facts = self.facts()
        past = None if self.fresh else state.journal.resume()
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


def _figures_of(outcome: SessionOutcome) -> PartyFigures:
    return outcome.figures


@contextmanager
def _discarding_misfits(session: JournaledSession, log: Log) -> Iterator[None]:
    """Discard a session whose sides do not fit: nothing was released, and nobody can resume it.

    Otherwise the next run would play back the greeting that did not fit.
    """
    try:
        yield
    except (RemoteProtocolError, PeerStopped) as problem:
        code = problem.code if isinstance(problem, PeerStopped) else problem.exit_code
        if code in _MISFITS and not session.begun:
            session.state.journal.discard()
            log("the sides do not fit; the next run starts a new session")
        raise
