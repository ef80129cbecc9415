"""``DashboardState``: what a page shows; ``BobDashboardState``: also what depends on labels.

A state is fed by callbacks from the threads that work, and read by the one that serves. Feeding it
is cheap: it keeps the last value of everything, and puts sections together when it is asked.

**Guarantee.** A ``DashboardState`` has no field for anything that depends on labels, and refuses it
(``PrivacyError``): losses, scores, held-out figures, the ledger, tables of results, what Bob told
of the model. So Alice's page shows nothing that the labels decide, but for what she sees without
it: whether, when and how the command ends.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

from taciturn.engine.progress import ProgressEstimate
from taciturn.errors import PrivacyError, TaciturnError, counted
from taciturn.protocol.events import (
    Advance,
    Aligning,
    ClusterJoined,
    Event,
    HeldOutSeen,
    Progress,
    RowsScored,
    SimulatedStep,
)
from taciturn.report.formatting import epsilon
from taciturn.results.parties import (
    QUALITY_LEARNT,
    CurvePoint,
    GrowingTable,
    LedgerPlanned,
    LinkChanged,
    LinkState,
    News,
    PartyFigures,
    ScoresOpened,
    Setup,
    Stage,
    Stages,
    TrafficSeen,
)
from taciturn.results.serialise import record_of
from taciturn.setting_syntax import Hint

Fact: TypeAlias = tuple[str, str]
"""A name and a value, in words."""
EndState: TypeAlias = Literal["running", "done", "interrupted", "failed"]
Side: TypeAlias = Literal["alice", "bob", "both"]


@dataclass(frozen=True, slots=True)
class About:
    """The command that runs; in a simulation ``side`` is ``both`` and ``peer`` empty.

    ``started`` is in seconds since 1970; ``unit`` is what a training counts.
    """

    command: str
    side: Side
    peer: str
    started: float
    facts: tuple[Fact, ...] = ()
    unit: str = "iteration"


@dataclass(frozen=True, slots=True)
class Work:
    """Progress, the outermost of ``bars`` first.

    ``remaining`` is in seconds, for all of it, and ``rate`` counts the innermost bar in a second;
    None where there is no pace yet.
    """

    activity: str
    bars: tuple[Stage, ...] = ()
    remaining: float | None = None
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Traffic between the sides, since this start."""

    bytes_sent: int = 0
    bytes_received: int = 0
    frames_sent: int = 0
    frames_received: int = 0


@dataclass(frozen=True, slots=True)
class TimeSpent:
    """Seconds of waiting and of computing since the first connection."""

    waiting: float
    computing: float


@dataclass(frozen=True, slots=True)
class LinkView:
    """State of a link, since when, and how often it was connected."""

    peer: str
    state: LinkState
    since: float
    connections: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line that was printed on the screen, and when."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class PrivacyCost:
    """Privacy cost: the ledger at Bob, opened scores at Alice."""

    title: str
    entries: tuple[Fact, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class End:
    """Outcome of the command; ``state`` is "running" until it ends.

    ``at`` is in seconds since 1970; None while it runs. ``kind`` is the class of the problem,
    ``words`` what that means, ``code`` the exit code.
    """

    state: EndState = "running"
    at: float | None = None
    kind: str = ""
    words: str = ""
    code: int | None = None


MOST_LINES = 60
MOST_POINTS = 240
MOST_ROWS = 200
MOST_LETTERS = 400
# Rates are computed over the last seconds, and drawn over the last two minutes.
RATE_SECONDS, SAMPLES = 8.0, 120
# What other work counts.
_STEPS = "steps"
_UNITS = {Aligning.work: "id", RowsScored.work: "row"}


class _Sample(NamedTuple):
    at: float
    done: float
    sent: int
    received: int


class DashboardState:
    """Dashboard of a side that has no labels; ``wall`` gives seconds since 1970."""

    def __init__(
        self,
        command: str,
        side: Side = "alice",
        peer: str = "",
        facts: tuple[Fact, ...] = (),
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = lambda: datetime.now(UTC).timestamp(),
    ) -> None:
        self._clock, self._wall = clock, wall
        self._lock = threading.RLock()
        self._about = About(command, side, peer, wall(), facts)
        self._pulse, self._stages = ProgressEstimate(clock), tuple[Stage, ...]()
        self._activity = "starting"
        # When work of several levels was first looked at, and how far it was.
        self._first: tuple[float, float] | None = None
        self._crossed, self._spent = Traffic(), None if side == "both" else TimeSpent(0.0, 0.0)
        self._links: dict[str, LinkView] = {}
        self._lines: deque[Line] = deque(maxlen=MOST_LINES)
        self._account: PrivacyCost | None = None
        self._end = End()
        self._samples: deque[_Sample] = deque(maxlen=SAMPLES)

    # What callbacks report.

    def observe(self, event: Event) -> None:
        """Record an event; ``PrivacyError`` if it depends on labels."""
        self._require_label_free(event)
        if isinstance(event, ClusterJoined):
            self.say(f"computing on a cluster of {counted(event.workers, 'worker')}")
        elif isinstance(event, Advance):
            with self._lock:
                if self._pulse.observe(event):
                    self._activity = event.work

    def announce(self, activity: str) -> None:
        """Record what runs now; its progress stays as it was."""
        with self._lock:
            self._activity = activity

    def progress(self, done: int, total: int) -> None:
        """Record how much of it is done."""
        with self._lock:
            self._pulse.advance(_STEPS, done, total)

    def say(self, text: str) -> None:
        """Record a line that is printed on the screen."""
        if not self._may_say(text):
            return
        shown = "".join(letter if letter.isprintable() else " " for letter in text[:MOST_LETTERS])
        with self._lock:
            self._lines.append(Line(self._wall(), shown))

    def publish(self, news: News) -> None:
        """Record what a side publishes; ``PrivacyError`` if it depends on labels."""
        with self._lock:
            match news:
                case Setup():
                    self._set_up(news)
                case LinkChanged():
                    self._links[news.peer] = self._link(news)
                case PartyFigures():
                    self._take_figures(news)
                case TrafficSeen():
                    self._take_traffic(news)
                case ScoresOpened():
                    self._account = _opened(news)
                case Stages():
                    self._stages = news.stages
                    self._remaining(news.stages)
                case _:
                    self._take_label_side(news)

    def end(self, problem: BaseException | None) -> None:
        """Record how it ended: with no problem, or with this one."""
        with self._lock:
            self._end = _end(problem, self._wall())

    # What the server asks.

    def sample(self) -> None:
        """Sample the progress; called about once a second."""
        with self._lock:
            crossed = self._crossed
            done, _ = self._pulse.reach
            sample = _Sample(self._clock(), done, crossed.bytes_sent, crossed.bytes_received)
            self._samples.append(sample)

    def snapshot(self) -> dict[str, Any]:
        """Every section of the page, as JSON."""
        with self._lock:
            sections = self._sections()
        return {name: _json(value) for name, value in sections.items()}

    def _sections(self) -> dict[str, Any]:
        return {
            "about": self._about,
            "work": self._work(),
            "crossed": self._crossed,
            "pace": self._pace(),
            "spent": self._spent,
            "links": tuple(self._links.values()),
            "lines": tuple(self._lines),
            "account": self._account,
            "end": self._end,
        }

    # How they are made.

    def _set_up(self, setup: Setup) -> None:
        identity, about = setup.identity, self._about
        unit = "pass" if setup.solver == "newton" else "iteration"
        facts = (
            ("mechanism", identity.mechanism),
            ("solver", setup.solver),
            ("scheme", identity.scheme),
            ("rows", f"{identity.rows:,}"),
            ("held-out rows", f"{identity.held_out_rows:,}"),
            ("own columns", f"{identity.columns:,}"),
            ("version", identity.version),
        )
        self._about = replace(about, peer=identity.peer, facts=facts, unit=unit)

    def _link(self, news: LinkChanged) -> LinkView:
        before = self._links.get(news.peer)
        connections = (0 if before is None else before.connections) + (news.state == "connected")
        return LinkView(news.peer, news.state, self._wall(), connections)

    def _take_figures(self, figures: PartyFigures) -> None:
        self._require_no_losses(figures)
        self._take_traffic(figures)

    def _take_traffic(self, figures: PartyFigures | TrafficSeen) -> None:
        self._crossed = Traffic(
            figures.bytes_sent, figures.bytes_received, figures.frames_sent, figures.frames_received
        )
        self._spent = TimeSpent(figures.waiting_seconds, figures.computing_seconds)

    def _work(self) -> Work:
        (done, total), bars = self._pulse.reach, self._stages
        if total:
            name = {Progress.work: self._about.unit, **_UNITS}.get(self._pulse.activity, "step")
            bars = (*bars, Stage(name, done, total))
        remaining = self._remaining(bars) if self._stages else self._pulse.remaining()
        return Work(self._activity, bars, remaining, self._rate())

    def _remaining(self, bars: tuple[Stage, ...]) -> float | None:
        """Seconds left at the overall pace; the pace of one level does not predict the others."""
        now, part = self._clock(), overall_progress(bars)
        since, before = self._first = self._first or (now, part)
        return (now - since) * (1 - part) / (part - before) if before < part < 1 else None

    def _rate(self) -> float | None:
        """Steps per second, over the last seconds."""
        recent = [
            sample for sample in self._samples if sample.at >= self._samples[-1].at - RATE_SECONDS
        ]
        # Other work may have begun meanwhile, and be less far.
        if len(recent) < 2 or recent[-1].done < recent[0].done:
            return None
        return (recent[-1].done - recent[0].done) / (recent[-1].at - recent[0].at)

    def _pace(self) -> list[tuple[int, int]]:
        """Bytes per second sent and received, between consecutive samples."""
        samples = list(self._samples)
        return [
            (
                _per_second(before, after, before.sent, after.sent),
                _per_second(before, after, before.received, after.received),
            )
            for before, after in pairwise(samples)
            if after.at > before.at
        ]

    # What depends on labels.

    def _may_say(self, text: str) -> bool:
        """Whether a line may be shown: model quality that Bob disclosed depends on labels."""
        return not text.startswith(QUALITY_LEARNT)

    def _require_label_free(self, event: Event) -> None:
        scored = isinstance(event, Progress) and len(event.scores) > 0
        if scored or isinstance(event, HeldOutSeen | SimulatedStep):
            raise _refusal(event)

    def _require_no_losses(self, figures: PartyFigures) -> None:
        if figures.loss_recent is not None or figures.curve:
            raise _refusal(figures)

    def _take_label_side(self, news: News) -> None:
        raise _refusal(news)


class BobDashboardState(DashboardState):
    """Dashboard of the side that has the labels, or of both in a simulation."""

    def __init__(
        self, command: str, side: Side = "bob", peer: str = "", facts: tuple[Fact, ...] = ()
    ) -> None:
        super().__init__(command, side, peer, facts)
        self._curve: tuple[CurvePoint, ...] = ()
        self._table: GrowingTable | None = None

    def observe(self, event: Event) -> None:
        """Record an event."""
        super().observe(event)
        if self._about.side == "both" and isinstance(event, Progress):
            # A pass of newton has all rows, and names none.
            unit = "pass" if event.rows is None else "iteration"
            if unit != self._about.unit:
                self._about = replace(self._about, unit=unit)
        elif isinstance(event, SimulatedStep):
            with self._lock:
                self._take_step(event)

    def _sections(self) -> dict[str, Any]:
        table = self._table and GrowingTable(
            self._table.title, self._table.columns, self._table.rows[-MOST_ROWS:]
        )
        return {**super()._sections(), "curve": thinned(self._curve), "table": table}

    def _take_figures(self, figures: PartyFigures) -> None:
        super()._take_figures(figures)
        self._curve = figures.curve

    def _take_step(self, step: SimulatedStep) -> None:
        self._crossed = Traffic(
            step.bytes_to_alice, step.bytes_to_bob, step.frames_to_alice, step.frames_to_bob
        )
        if step.train_loss is None:
            return
        if self._curve and self._curve[-1].iteration >= step.iteration:
            # Another seed's training begins.
            self._curve = ()
        self._curve = (*self._curve, CurvePoint(step.iteration, step.train_loss))

    def _may_say(self, text: str) -> bool:
        return True

    def _require_label_free(self, event: Event) -> None:
        """Accept every event: Bob's page may show figures that depend on labels."""

    def _require_no_losses(self, figures: PartyFigures) -> None:
        """Accept losses: Bob's page shows them."""

    def _take_label_side(self, news: News) -> None:
        if isinstance(news, LedgerPlanned):
            self._account = _ledger(news)
        elif isinstance(news, GrowingTable):
            self._table = news


def overall_progress(bars: tuple[Stage, ...]) -> float:
    """Progress of work of several levels as a whole, from 0 to 1.

    >>> overall_progress((Stage("model", 1, 4), Stage("pass", 6, 12)))
    0.375
    """
    part = 0.0
    for bar in reversed(bars):
        # A level that is through is counted by the one around it.
        part = min(1.0, (bar.done + (part if part < 1 else 0.0)) / bar.total) if bar.total else 0.0
    return part


def _per_second(before: _Sample, after: _Sample, old: int, new: int) -> int:
    return round(max(0, new - old) / (after.at - before.at))


def thinned(curve: tuple[CurvePoint, ...]) -> tuple[CurvePoint, ...]:
    """A curve of at most about ``MOST_POINTS`` points, its last one included.

    >>> len(thinned(tuple(CurvePoint(n) for n in range(10_000)))) <= MOST_POINTS + 1
    True
    """
    step = -(-len(curve) // MOST_POINTS) or 1
    return curve if step == 1 else (*curve[:-1:step], curve[-1])


def _json(value: Any) -> Any:  # noqa: ANN401 - JSON
    if value is None or isinstance(value, list):
        return value
    if isinstance(value, tuple):
        return [record_of(item) for item in value]
    return record_of(value)


def _refusal(kind: object) -> PrivacyError:
    return PrivacyError(
        f"{type(kind).__name__} depends on labels, and this page belongs to a side without them",
        hint=Hint("leave {watch} out, and report this as a bug"),
    )


def _opened(news: ScoresOpened) -> PrivacyCost:
    return PrivacyCost(
        "Scores that the peer receives",
        (
            ("per row, in this training", f"{news.per_row:,}"),
            ("all rows, in this training", f"{news.in_all:,}"),
            ("models that scored a row, so far", f"{news.given_before:,}"),
            ("limit on models per row", "none" if news.limit is None else f"{news.limit:,}"),
        ),
    )


def _ledger(news: LedgerPlanned) -> PrivacyCost:
    statement = news.statement
    return PrivacyCost(
        "Privacy cost at completion",
        (
            ("label epsilon", epsilon(statement.label_epsilon_total)),
            (
                f"label epsilon at delta {statement.delta:g}",
                epsilon(statement.label_epsilon_total_delta),
            ),
            ("per release, epsilon", epsilon(statement.label_epsilon_per_release)),
            ("releases per row", f"{statement.releases_per_row:,}"),
            ("budget", "none" if news.budget is None else epsilon(news.budget)),
        ),
        statement.assumption,
    )


def _end(problem: BaseException | None, at: float) -> End:
    if problem is None:
        return End("done", at, code=0)
    if isinstance(problem, KeyboardInterrupt):
        return End("interrupted", at, code=130)
    if isinstance(problem, TaciturnError):
        # The class says the kind; the message is for the screen, where its hint is.
        words = (type(problem).__doc__ or "").partition("\n")[0]
        return End("failed", at, type(problem).__name__, words, problem.exit_code)
    return End("failed", at, type(problem).__name__, "A bug in taciturn.", 1)
