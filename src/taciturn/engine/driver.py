"""Drives one program from one wait to the next.

A driver owns a program and knows nothing of how frames travel: it is fed messages and hands out
frames. Pair, replay and network runners are loops around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeAlias, TypeVar

from taciturn.engine.callbacks import Observer, noop
from taciturn.errors import LocalProtocolError, MalformedFrame
from taciturn.protocol.codec import decode, encode
from taciturn.protocol.messages import Message, Role
from taciturn.protocol.steps import ONLY, Emit, Persist, Program, Receive, Send

R = TypeVar("R")
Tap: TypeAlias = Callable[[Role, bytes], None]
Outlet: TypeAlias = Callable[[bytes], None]
Outlets: TypeAlias = Mapping[str, Outlet]
"""Where frames go, by the name of the peer that they are for."""
Keeping: TypeAlias = Callable[[bytes], bytes]


def discard(data: bytes) -> bytes:
    """Return ``data`` and store nothing, for a program that is never run again."""
    return data


class Driver(Generic[R]):
    """One program, advanced by frames.

    ``outlet`` is called with each frame that the program sends; there is one for each of several
    peers. ``keep`` stores what the program wants to remember, and returns the stored value.
    ``awaits`` is the peer whose message the program waits for.
    """

    def __init__(
        self,
        role: Role,
        program: Program[R],
        outlet: Outlet | Outlets,
        observe: Observer = noop,
        keep: Keeping = discard,
    ) -> None:
        self.role: Role = role
        self._program = program
        self._outlets = outlet if isinstance(outlet, Mapping) else {ONLY: outlet}
        self._observe = observe
        self._keep = keep
        self._expected: type[Message] | None = None
        self.awaits = ONLY
        self._result: R | None = None
        self.started = False
        self.finished = False

    @property
    def expects(self) -> str:
        """The message the program waits for, or an empty text."""
        return self._expected.__name__ if self._expected else ""

    @property
    def result(self) -> R:
        """Return value of the program; ``LocalProtocolError`` where it has not finished."""
        if not self.finished:
            raise LocalProtocolError(f"{self.role}'s program has not finished")
        return self._result  # type: ignore[return-value]  # set when finished

    def start(self) -> None:
        """Runs the program to its first wait; calling it again does nothing."""
        if not self.started:
            self.started = True
            self._advance(None)

    def feed(self, frame: bytes) -> None:
        """Hands the awaited frame in and runs to the next wait.

        Bytes that are no message are their sender's: the error names one of several peers.
        """
        if self._expected is None:
            raise LocalProtocolError(f"{self.role}'s program does not wait for a message")
        self._expected, peer = None, self.awaits
        try:
            self._advance(decode(frame))
        except MalformedFrame as problem:
            raise problem if problem.peer or peer == ONLY else problem.by(peer) from None

    def close(self) -> None:
        """End the program at its present step."""
        self._program.close()

    def _advance(self, message: Message | None) -> None:
        try:
            step = self._program.send(message)
            while not isinstance(step, Receive):
                if isinstance(step, Send):
                    self._check_sender(step.message)
                    self._outlet_to(step.peer)(encode(step.message))
                elif isinstance(step, Emit):
                    self._observe(step.event)
                elif isinstance(step, Persist):
                    # The only step with an answer: after a stop it is what was kept before it.
                    step = self._program.send(self._keep(step.data))
                    continue
                else:
                    raise LocalProtocolError(
                        f"{self.role}'s program yields {type(step).__name__}, which is not a step",
                        hint="call helpers with yield from",
                    )
                step = next(self._program)
            self._expected, self.awaits = step.expected, step.peer
        except StopIteration as done:
            # How a generator returns; an error of the program is not caught here.
            self._result, self.finished = done.value, True

    def _outlet_to(self, peer: str) -> Outlet:
        outlet = self._outlets.get(peer)
        if outlet is None:
            raise LocalProtocolError(f"{self.role}'s program sends to an unknown peer")
        return outlet

    def _check_sender(self, message: Message) -> None:
        if self.role not in message.senders:
            raise LocalProtocolError(f"{self.role} may not send {type(message).__name__}")
