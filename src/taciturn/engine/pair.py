"""All parties in one thread: deterministic, and a deadlock has a name.

Every frame crosses the codec as it would on a wire.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias, TypeVar

from taciturn.engine.callbacks import Observer, noop
from taciturn.engine.driver import Driver, Tap
from taciturn.errors import Deadlock, RemoteProtocolError
from taciturn.protocol.messages import Role
from taciturn.protocol.steps import ONLY, Program

A = TypeVar("A")
B = TypeVar("B")
StarTap: TypeAlias = Callable[[str, Role, bytes], None]
"""Told each frame: whose link it crosses, who sent it, its bytes."""


def run_pair(
    alice: Program[A], bob: Program[B], *, tap: Tap | None = None, observe: Observer = noop
) -> tuple[A, B]:
    """Runs two programs against each other and returns their results.

    ``tap`` is called with the sender and the bytes of each frame. Raises ``Deadlock``, which says
    what each side waits for, where neither can continue.
    """
    listen = noop if tap is None else (lambda _, sender, frame: tap(sender, frame))
    results, result = run_star({ONLY: alice}, bob, tap=listen, observe=observe)
    return results[ONLY], result


def run_star(
    alices: Mapping[str, Program[A]],
    bob: Program[B],
    *,
    tap: StarTap = noop,
    observe: Observer = noop,
) -> tuple[dict[str, A], B]:
    """Runs several Alices against one Bob; each of them talks to him alone.

    ``alices`` has the names under which Bob's program knows them. Raises ``Deadlock``, which says
    what each side waits for, where nobody can continue.
    """
    ends = {name: _End(name, program, tap, observe) for name, program in alices.items()}
    centre = Driver("bob", bob, {name: end.hand_over for name, end in ends.items()}, observe)
    drivers = [*(end.driver for end in ends.values()), centre]
    try:
        while not all(driver.finished for driver in drivers):
            # Not `any` of a generator: all must run, also where one has moved.
            moved = [end.run() for end in ends.values()] + [_run_centre(centre, ends)]
            if not any(moved):
                raise Deadlock(_standstill(ends, centre))
        # A frame that nobody read means that the programs disagree about the conversation.
        for end in ends.values():
            if end.inbox:
                raise RemoteProtocolError(f"a message arrived after {end.called} had finished")
            if end.outbox:
                raise RemoteProtocolError("a message arrived after bob had finished")
    finally:
        for driver in drivers:
            driver.close()
    return {name: end.driver.result for name, end in ends.items()}, centre.result


class _End:
    """One Alice with an in-memory wire to Bob: two queues, and a tap that sees each frame."""

    def __init__(self, name: str, program: Program[Any], tap: StarTap, observe: Observer) -> None:
        self.called = name or "alice"
        self.inbox: deque[bytes] = deque()
        self.outbox: deque[bytes] = deque()
        self._heard = partial(tap, name)
        self.driver = Driver("alice", program, self._send, observe)

    def _send(self, frame: bytes) -> None:
        self._heard("alice", frame)
        self.outbox.append(frame)

    def hand_over(self, frame: bytes) -> None:
        self._heard("bob", frame)
        self.inbox.append(frame)

    def run(self) -> bool:
        return _run(self.driver, self.inbox)


def _run(driver: Driver[Any], inbox: deque[bytes]) -> bool:
    moved = not driver.started
    driver.start()
    while inbox and not driver.finished:
        driver.feed(inbox.popleft())
        moved = True
    return moved


def _run_centre(centre: Driver[Any], ends: Mapping[str, _End]) -> bool:
    moved = not centre.started
    centre.start()
    while not centre.finished and (outbox := ends[centre.awaits].outbox):
        centre.feed(outbox.popleft())
        moved = True
    return moved


def _standstill(ends: Mapping[str, _End], centre: Driver[Any]) -> str:
    states = [_state(end.called, end.driver) for end in ends.values()]
    # With several Alices it matters for which of them he waits.
    for_whom = f" of {centre.awaits}" if centre.awaits and not centre.finished else ""
    return (
        "the conversation is deadlocked: " + ", ".join([*states, _state("bob", centre)]) + for_whom
    )


def _state(name: str, driver: Driver[Any]) -> str:
    return f"{name} has finished" if driver.finished else f"{name} waits for {driver.expects}"
