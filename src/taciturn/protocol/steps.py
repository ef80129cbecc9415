"""The four steps of which every party's program is made.

A party is one generator. It yields ``Send``, ``Receive``, ``Emit`` or ``Persist`` and returns its
result; it does no input or output, has no clock, no logger and no thread, and draws only from an
``Entropy`` handed to it. The same lines therefore run in one process, across a network and from a
recording.

Rule: helpers are called with ``yield from``. A call without it does nothing, and a type checker
does not notice; a test reads the programs' syntax trees for it.

**Several peers.** Alice talks to Bob only, and Bob may talk to several Alices. A step names its
peer; without a name it is for the only one there is. Conversations with several peers are made of
conversations with one: what Bob says to an Alice is written as if there were no other,
``with_peer`` names her in its steps, and ``gather`` lets several such conversations wait at the
same time.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeAlias, TypeVar

from taciturn.errors import CryptoError, LocalProtocolError, RemoteProtocolError
from taciturn.protocol.events import Event, PartDone
from taciturn.protocol.messages import Message, NumberedMessage

M = TypeVar("M", bound=Message)
N = TypeVar("N", bound=NumberedMessage)
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
    """Save these bytes, which no entropy can reproduce; the answer is what was saved."""

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
    """Persist bytes that a replay must see again; returns the bytes of the first run, if any."""
    saved = yield Persist(data)
    if not isinstance(saved, bytes):
        raise LocalProtocolError("the driver did not return the saved bytes")
    return saved


def emit(event: Event) -> Program[None]:
    """Reports an event to the driver."""
    yield Emit(event)


def require_turn(name: str, got: int, due: int) -> None:
    """Refuses a message of another iteration."""
    if got != due:
        raise RemoteProtocolError(
            f"the peer's {name} is for iteration {got} where {due} was expected"
        )


def receive_at(expected: type[N], iteration: int) -> Program[N]:
    """Waits for the peer's next message, which must be of this iteration."""
    message = yield from receive(expected)
    require_turn(type(message).__name__, message.iteration, iteration)
    return message


def require_entries(name: str, got: int, due: int) -> None:
    """Refuses a vector of another length, which depends on public sizes alone."""
    if got != due:
        raise RemoteProtocolError(f"the peer's {name} has {got} entries where {due} are expected")


@dataclass(frozen=True, slots=True)
class StepProgress:
    """A pass, or a piece of a prediction; ``passes`` is None where progress is not reported."""

    number: int
    passes: int | None = None

    def report(self, half: int, done: int, parts: int) -> Program[None]:
        """Reports the progress of a pass: ``done`` of ``parts`` parts of one ``half``.

        Half 0 multiplies the parts of its vector, half 1 those of its scores.
        """
        # The model's product after the last pass is none of them.
        if parts > 1 and self.passes is not None and self.number < self.passes:
            yield from emit(PartDone(self.number, self.passes, (half + done / parts) / 2))


def with_peer(peer: str, program: Program[R]) -> Program[R]:
    """A conversation with one peer, as a part of one with several; errors name the peer."""
    answer: Message | bytes | None = None
    try:
        while True:
            step = program.send(answer)
            if isinstance(step, Send | Receive) and step.peer == ONLY:
                step = replace(step, peer=peer)
            answer = yield step
    except StopIteration as done:
        # How a generator returns.
        result: R = done.value
        return result
    except (RemoteProtocolError, CryptoError) as problem:
        raise problem if peer == ONLY else problem.by(peer) from None
    finally:
        program.close()


def send_all(names: Sequence[str], message: Message) -> Program[None]:
    """The same message to each."""
    for name in names:
        yield from with_peer(name, send(message))


def gather(programs: Mapping[str, Program[R]]) -> Program[dict[str, R]]:
    """The results of several conversations at once, each with the peer it is listed under.

    Each is run as far as it can before any answer is waited for, and answers are taken round by
    round in the order of the list. Waiting for all of them therefore takes as long as waiting for
    the slowest, and what is done, in which order, does not depend on who answers first.
    """
    if [*programs] == [ONLY]:
        # Nothing to interleave: the one conversation is the whole.
        return {ONLY: (yield from programs[ONLY])}
    lanes = [_Task(peer, with_peer(peer, program)) for peer, program in programs.items()]
    try:
        for lane in lanes:
            yield from lane.advance(None)
        while waiting := [lane for lane in lanes if lane.due is not None]:
            for lane in waiting:
                if lane.due is not None:
                    yield from lane.advance((yield lane.due))
    finally:
        for lane in lanes:
            lane.program.close()
    return {lane.peer: lane.result for lane in lanes}


class _Task(Generic[R]):
    """One of several conversations: ``due`` is what it waits for, None once it has ended."""

    def __init__(self, peer: str, program: Program[R]) -> None:
        self.peer, self.program = peer, program
        self.due: Receive | None = None
        self.result: R

    def advance(self, answer: Message | bytes | None) -> Program[None]:
        self.due = None
        try:
            while True:
                step = self.program.send(answer)
                if isinstance(step, Receive):
                    self.due = step
                    return
                answer = yield step
        except StopIteration as done:
            # How a generator returns.
            self.result = done.value
