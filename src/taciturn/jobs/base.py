"""``Job``, ``Side`` and ``Task``, and the two ways to run them.

``run_job`` runs one side against peers on other machines; ``simulate_job`` runs all sides in one
process. Both drive the same programs. The frames of a run, from the command to one step of the
program::

    run_job(job, config)          refuses before anybody is contacted, and tells the peers
      run_session(side)           begins or resumes: the state is in memory, or in a journal
        Meeting.run(program)      the links to the peers
          run_program             what a journal holds is played back first
            Driver.feed           one frame in, frames out

A job gives a prepared side, and the side a ``Task`` and then a result: they are called, and call
nothing of these. The state of a side that keeps a journal is in ``jobs.resumable``.

**Guarantee.** Where a side fails before it sets up its links, ``run_job`` tells the peer that it
does not begin, and not why (unless the job's peer waits for it anyway): in the same bytes, and at
the same step, as a session whose links were not opened yet (``party.session``). It charges a budget
before the message that the budget is for: the program emits ``Consent.due``, and its next message
leaves only after ``Consent.charge`` has returned. What a side may rely on is written before the
last message is confirmed, and the result is computed after the links are closed.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from taciturn.engine.callbacks import SILENT, Callbacks, Observer, Publish, noop
from taciturn.errors import TaciturnError
from taciturn.files import require_writable
from taciturn.parallel import one_thread
from taciturn.party.agreement_check import peer_fingerprints
from taciturn.party.config import PartyConfig
from taciturn.party.endpoints import open_endpoint
from taciturn.party.link import Traffic
from taciturn.party.log import Log
from taciturn.party.resume import RunHooks
from taciturn.party.session import Meeting, PeerSession
from taciturn.party.state_store import StateFolderInUse
from taciturn.protocol.events import Event
from taciturn.protocol.messages import Role
from taciturn.protocol.steps import Program
from taciturn.results.parties import Setup
from taciturn.rng import Entropy, KeyedEntropy
from taciturn.transport.channel import Endpoints

if TYPE_CHECKING:
    from taciturn.engine.pair import StarTap
    from taciturn.party.journal import Journal, Past

P = TypeVar("P")
T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True)
class Consent(Generic[E]):
    """A charge to this side's budget, due when the program emits an event of type ``due``.

    ``charge`` raises ``BudgetExceeded`` where the limit is reached; nothing is sent then.
    """

    due: type[E]
    charge: Callable[[E], None]


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """A finished session: the peer, the traffic, and the log.

    ``confirmed``: the peer has confirmed all that was sent. ``seconds`` include the wait for the
    peer, ``connected_seconds`` do not.
    """

    role: Role
    peer: str
    traffic: Traffic
    confirmed: bool
    seconds: float
    connected_seconds: float
    log: Log = field(repr=False)


@dataclass(frozen=True, slots=True)
class RunContext:
    """Run context of a side: its job, its party's file, and the connection to the peers."""

    job: Job[Any]
    config: PartyConfig
    callbacks: Callbacks
    connection: Endpoints
    sessions: list[PeerSession] = field(default_factory=list)

    def session(self, publish: Publish | None = None) -> PeerSession:
        """The session with the peers; ``publish`` takes the place of the callbacks' own."""
        callbacks = replace(self.callbacks, publish=publish or self.callbacks.publish)
        session = PeerSession(self.config, self.connection, callbacks)
        self.sessions.append(session)
        return session


@dataclass(frozen=True, slots=True)
class Task(Generic[P, T]):
    """What a session does while it is with the peers: a program, and what is called meanwhile.

    ``finish`` makes the outcome of what the program returns, and writes what the peer may rely on
    once this side confirms the last message.
    """

    program: Program[P]
    finish: Callable[[P], T]
    hooks: RunHooks


class SessionStore(Protocol[T, S]):
    """State of a session: a side that keeps it in memory, or a journal."""

    session: PeerSession

    @property
    def past(self) -> Past | None:
        """What the journal holds."""

    @property
    def journal(self) -> Journal | None:
        """The journal."""

    @property
    def outcome(self) -> T | None:
        """Outcome of a session that has ended before."""

    def task_in(self, meeting: Meeting) -> Task[Any, T]:
        """The task, which may begin now: of a session that resumes it is charged already."""

    def end(self, outcome: T) -> None:
        """Keep the outcome; called before the last message is confirmed."""

    def conclude(self, outcome: T, session: SessionFacts) -> S:
        """The side's result; the links are closed."""


class PreparedSide(ABC, Generic[T, R]):
    """One party's part in a job, whose files are read; T is its outcome, R its result."""

    @property
    def setup(self) -> Setup | None:
        """Metrics published before the peer is contacted; None for none."""
        return None

    def begin(self, log: Log, callbacks: Callbacks) -> None:
        """Log what the preparation found; called before the peer is contacted."""

    def at_work(self, config: PartyConfig, log: Log) -> AbstractContextManager[None]:
        """Open what the program computes with: a cluster, a thread pool, files."""
        return nullcontext()

    @abstractmethod
    def store(self, context: RunContext) -> AbstractContextManager[SessionStore[T, R]]:
        """The state of the session, begun or resumed; nobody is contacted yet."""


class Side(PreparedSide[T, R]):
    """A side that keeps no state: after a stop all parties begin anew.

    T is what its program returns.
    """

    @property
    def consent(self) -> Consent[Any] | None:
        """Budget charge, and the message that it precedes; None for none."""
        return None

    @abstractmethod
    def program(self, entropy: Entropy) -> Program[T]:
        """This side's program, from the first message to the last."""

    def observe(self, event: Event) -> None:
        """Called with each event of the program."""

    def deliver(self, outcome: T) -> None:
        """Write what the peer may rely on once this side confirms the last message."""

    @abstractmethod
    def conclude(self, outcome: T, session: SessionFacts) -> R:
        """The result, computed after the last message: it may depend on labels."""

    # The side is the store of its session, and nothing is older than this run.
    past: None = None
    journal: None = None
    outcome: T | None = None

    def store(self, context: RunContext) -> AbstractContextManager[SessionStore[T, R]]:
        """This side: all state is in memory."""
        self.session, self._callbacks = context.session(), context.callbacks
        if self.setup is not None:
            context.callbacks.publish(self.setup)
        return nullcontext(self)

    def task_in(self, meeting: Meeting) -> Task[T, T]:
        """The program with new randomness, once all peers are there."""
        consent, callbacks = self.consent, self._callbacks

        def observe(event: Event) -> None:
            # First: what is due may leave with the program's next step.
            if consent is not None and isinstance(event, consent.due):
                consent.charge(event)
                meeting.begun = True
            self.observe(event)
            callbacks.observe(event)
            callbacks.publish(meeting.traffic.seen())

        meeting.connect()
        meeting.begun = consent is None
        return Task(self.program(KeyedEntropy.from_system()), self._finish, RunHooks(observe))

    def _finish(self, outcome: T) -> T:
        self.deliver(outcome)
        return outcome

    def end(self, outcome: T) -> None:
        """Nothing is kept."""


def run_session(side: PreparedSide[Any, R], context: RunContext) -> R:
    """Begin or resume the session of a side, and run it to its end."""
    start, config, job = time.monotonic(), context.config, context.job
    log = Log.from_config(config, context.callbacks.announce)
    side.begin(log, context.callbacks)
    with side.store(context) as store:
        session, outcome = store.session, store.outcome
        with (
            side.at_work(config, log) if outcome is None else nullcontext(),
            session.meet(job.purpose, store.past, store.journal, rejoins=job.rejoins) as meeting,
        ):
            if outcome is None:
                task = store.task_in(meeting)
                outcome = task.finish(meeting.run(task.program, task.hooks))
            # Before the farewell: a stop during it must not run the program again.
            store.end(outcome)
            confirmed, traffic = meeting.finish(job.farewell_seconds), meeting.traffic
            now = time.monotonic()
        facts = SessionFacts(
            role=config.role,
            peer=config.peer,
            traffic=traffic,
            confirmed=confirmed,
            seconds=now - start,
            connected_seconds=now - (traffic.since or now),
            log=log,
        )
        return store.conclude(outcome, facts)


class Job(ABC, Generic[R]):
    """A task that parties run together."""

    # Whether the session continues over a new link when one breaks.
    rejoins = True
    # How long a side that has finished waits for the peer's confirmation.
    farewell_seconds = 10.0
    # Whether a signed agreement, where this side's file names one, has to hold already.
    needs_signatures = True
    # Whether a side that cannot begin tells its peers; not where they wait for it anyway.
    tells_refusal = True
    # Whether Bob's labels decide if the job begins: its stops for labels are counted then.
    reads_labels = False
    # Runs a prepared side; a service meets its peer again and again.
    run: ClassVar[staticmethod[[Any, RunContext], Any]] = staticmethod(run_session)
    # Whether the connection opens before files are read: a port that is in use, or a bad
    # certificate, is then reported before a large table is read.
    opens_first = False

    @property
    @abstractmethod
    def purpose(self) -> int:
        """Purpose that both parties state when they connect (``party.link``)."""

    def check_files(self, config: PartyConfig) -> None:
        """Raise where this side could not write what the job leaves; called before all else.

        The log too: a side that first fails to write it when the link is open ends a step later
        than one that fails for another reason, which tells the peer so.
        """
        if config.output.log is not None:
            require_writable(config.path(config.output.log))

    @abstractmethod
    def prepare(self, config: PartyConfig) -> Any:  # noqa: ANN401 - what ``run`` takes
        """Read this side's files; raises before anybody is contacted."""


def run_job(
    job: Job[R],
    config: PartyConfig,
    callbacks: Callbacks = SILENT,
    endpoint: Endpoints | None = None,
) -> R:
    """Run one side of a job: prepare, connect, run the program, confirm, conclude.

    ``endpoint`` is the connection to the peer, or to each of several; None opens the one that the
    party's file describes.
    """
    keys: dict[str, str] = {}

    with ExitStack() as stack:

        @cache
        def opened() -> Endpoints:
            if endpoint is not None:
                return endpoint
            return stack.enter_context(open_endpoint(config, callbacks.announce, keys))

        sessions: list[PeerSession] = []
        with _refusing(job, config, callbacks, opened, sessions):
            job.check_files(config)
            if job.needs_signatures and config.agreement_file is not None:
                keys |= peer_fingerprints(config)
            if job.opens_first:
                opened()
            with _counting_label_stops(job, config):
                side = job.prepare(config)
            result: R = job.run(side, RunContext(job, config, callbacks, opened(), sessions))
            return result


def _counting_label_stops(job: Job[Any], config: PartyConfig) -> AbstractContextManager[None]:
    if config.role == "alice" or not job.reads_labels:
        return nullcontext()
    # Only Bob has labels, and loads what counts.
    from taciturn.party.consent.label_stops import LabelStops

    return LabelStops.from_config(config).counted()


@contextmanager
def _refusing(
    job: Job[Any],
    config: PartyConfig,
    callbacks: Callbacks,
    opened: Callable[[], Endpoints],
    sessions: list[PeerSession],
) -> Iterator[None]:
    """Tell the peers that this side does not begin, where it fails before it meets them."""
    try:
        yield
    except StateFolderInUse:
        # The peers are with the process that uses it: they must not take this end for its.
        raise
    except Exception:
        if job.tells_refusal and not any(session.met for session in sessions):
            # A connection that fails now must not hide the problem itself.
            with suppress(TaciturnError):
                session = PeerSession(config, opened(), callbacks)
                callbacks.announce(f"aborting, and notifying {config.peer} if it is connected")
                session.refuse(job.purpose)
        raise


@dataclass(frozen=True, slots=True)
class Simulated(Generic[A, B]):
    """Return values of all sides' programs, and the bytes sent."""

    alices: Mapping[str, A] = field(repr=False)
    bob: B = field(repr=False)
    bytes_to_alice: int
    bytes_to_bob: int


def simulate_job(
    alices: Mapping[str, Program[A]],
    bob: Program[B],
    *,
    tap: StarTap | None = None,
    observe: Observer = noop,
) -> Simulated[A, B]:
    """Run the programs of all sides in one process; every frame crosses the codec.

    ``alices`` has each Alice's by name, the only one's under ``ONLY``. ``tap`` is called with the
    link, the sender and the bytes of each frame.
    """
    # Loaded here: a party between machines never simulates.
    from taciturn.engine.pair import run_star

    sent: dict[Role, int] = {"alice": 0, "bob": 0}

    def count(link: str, sender: Role, frame: bytes) -> None:
        sent[sender] += len(frame)
        if tap is not None:
            tap(link, sender, frame)

    # On one thread the same numbers come out on every machine.
    with one_thread():
        alice_results, bob_result = run_star(alices, bob, tap=count, observe=observe)
    return Simulated(
        alice_results, bob_result, bytes_to_alice=sent["bob"], bytes_to_bob=sent["alice"]
    )
