"""The four steps of which every party's program is made.

A party is one generator. It yields ``Send``, ``Receive``, ``Emit`` or ``Persist`` and returns its
result; it
does no input or output, has no clock, no logger and no thread, and draws only from an ``Entropy``
handed to it. The same lines therefore run in one process, across a network and from a recording.

Rule: helpers are called with ``yield from``. A call without it does nothing, and a type checker
does not notice; a test reads the programs' syntax trees for it.

**Several peers.** Alice talks to Bob only, and Bob may talk to several Alices. A step names its
peer; without a name it is for the only one there is (``taciturn.protocol.concurrent``).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from taciturn.errors import LocalProtocolError, RemoteProtocolError
from taciturn.protocol.events import Event
from taciturn.protocol.messages import Message

M = TypeVar("M", bound=Message)
R = TypeVar("R")

ONLY = ""
"""Stands for the peer where there is one."""


@dataclass(frozen=True, slots=True)
class Send:
    """Hand this message to the peer."""

    message: Message
    peer: str = ONLY


@dataclass(frozen=True, slots=True)
class Receive:
    """Wait for a message of this type."""

    expected: type[Message]
    peer: str = ONLY


@dataclass(frozen=True, slots=True)
class Emit:
    """Tell the driver what happened; it shows it, keeps it or drops it."""

    event: Event


@dataclass(frozen=True, slots=True)
class Persist:
    """Remember these bytes, which no coins can give again; the answer is what was remembered."""

    data: bytes = field(repr=False)


Step: TypeAlias = Send | Receive | Emit | Persist
Program: TypeAlias = Generator[Step, Message | bytes | None, R]


def send(message: Message) -> Program[None]:
    """Sends a message to the peer."""
    yield Send(message)


def receive(expected: type[M]) -> Program[M]:
    """Waits for the peer's next message."""
    message = yield Receive(expected)
    if not isinstance(message, expected):
        raise RemoteProtocolError(
            f"the peer sent {type(message).__name__} where {expected.__name__} was expected"
        )
    return message


def persist(data: bytes) -> Program[bytes]:
    """Bytes that must be the same if this program is run again: these, or those of then."""
    kept = yield Persist(data)
    if not isinstance(kept, bytes):
        raise LocalProtocolError("the driver does not say what it keeps")
    return kept


def emit(event: Event) -> Program[None]:
    """Reports an event to the driver."""
    yield Emit(event)


def require_turn(name: str, got: int, due: int) -> None:
    """Refuses a message of another iteration."""
    if got != due:
        raise RemoteProtocolError(
            f"the peer's {name} is for iteration {got} where {due} was expected"
        )
