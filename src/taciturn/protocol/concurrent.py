"""Conversations with several peers, made of conversations with one.

What Bob says to an Alice is written as if there were no other: ``with_peer`` names her in its
steps, and ``together`` lets several such conversations wait at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Generic, TypeVar

from taciturn.errors import CryptoError, RemoteProtocolError
from taciturn.protocol.messages import Message
from taciturn.protocol.steps import ONLY, Program, Receive, Send

R = TypeVar("R")


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
