"""Both parties in one thread: deterministic, and a deadlock has a name.

Every frame crosses the codec as it would on a wire.
"""

from __future__ import annotations

from collections import deque
from typing import Any, TypeVar

from taciturn.engine.callbacks import Observer, ignore
from taciturn.engine.driver import Driver, Tap
from taciturn.errors import Deadlock, RemoteProtocolError
from taciturn.protocol.messages import Role
from taciturn.protocol.steps import Program

A = TypeVar("A")
B = TypeVar("B")


class _Link:
    """A fake wire: two queues, and whoever listens in."""

    def __init__(self, tap: Tap | None) -> None:
        self.queues: dict[Role, deque[bytes]] = {"alice": deque(), "bob": deque()}
        self._tap = tap

    def carry(self, sender: Role, receiver: Role, frame: bytes) -> None:
        if self._tap is not None:
            self._tap(sender, frame)
        self.queues[receiver].append(frame)


def run_pair(
    alice: Program[A], bob: Program[B], *, tap: Tap | None = None, observe: Observer = ignore
) -> tuple[A, B]:
    """Runs two programs against each other.

    Args:
        alice: Alice's program.
        bob: Bob's program.
        tap: Called with the sender and the bytes of each frame.
        observe: Called with each event of either side.

    Returns:
        What the two programs returned.

    Raises:
        Deadlock: Neither can go on; says what each waits for.
        RemoteProtocolError: One side has finished while the other still talks to it.
    """
    link = _Link(tap)
    end_a = Driver("alice", alice, lambda frame: link.carry("alice", "bob", frame), observe)
    end_b = Driver("bob", bob, lambda frame: link.carry("bob", "alice", frame), observe)
    try:
        while not (end_a.finished and end_b.finished):
            # Not `or`: both must run, also where the first has moved.
            if not (_run(end_a, link) | _run(end_b, link)):
                raise Deadlock(_standstill(end_a, end_b))
        # A frame that nobody read means that the two programs disagree about the conversation.
        for end in (end_a, end_b):
            if link.queues[end.role]:
                raise RemoteProtocolError(f"a message arrived after {end.role} had finished")
    finally:
        end_a.close()
        end_b.close()
    return end_a.result, end_b.result


def _run(end: Driver[Any], link: _Link) -> bool:
    """Lets one side run as far as it can; False where it could do nothing."""
    moved = not end.started
    end.start()
    inbox = link.queues[end.role]
    while inbox and not end.finished:
        end.feed(inbox.popleft())
        moved = True
    return moved


def _standstill(*ends: Driver[Any]) -> str:
    states = (
        f"{end.role} has finished" if end.finished else f"{end.role} waits for {end.expects}"
        for end in ends
    )
    return "the conversation is deadlocked: " + ", ".join(states)
