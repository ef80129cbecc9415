"""Sections of the dashboard, as frozen values; ``record_of`` makes JSON of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from taciturn.results.live import LinkState, Stage

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
    """How it ended, or that it runs.

    ``at`` is in seconds since 1970; None while it runs. ``kind`` is the class of the problem,
    ``words`` what that means, ``code`` the exit code.
    """

    state: EndState = "running"
    at: float | None = None
    kind: str = ""
    words: str = ""
    code: int | None = None
