"""Why a call fails is said while the calls go on; each reason when it is new."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from taciturn.errors import PeerAbsent, PeerRefused, TransportError
from taciturn.transport.address import (
    MUTE,
    NO_ANSWER,
    NO_LISTENER,
    UNKNOWN_NAME,
    names_shown,
    obstacle,
)
from taciturn.transport.dial import DialEndpoint
from taciturn.transport.serve import Hub
from tests.expected import refused
from tests.modules import module_of
from tests.system import free_port
from tests.transport.parties import HOST, QUICK, Authority, in_thread, serving
from tests.waiting import HANG, wait_until


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """What takes seconds, so that nothing is said too early, is said at once."""
    monkeypatch.setattr(module_of(DialEndpoint), "SLOW", 0.2)
    monkeypatch.setattr(module_of(DialEndpoint), "GRACE", 0.0)
    monkeypatch.setattr(module_of(Hub), "QUIET", 0.05)


@dataclass
class Call:
    """A side that calls, and what it says meanwhile."""

    said: list[str] = field(default_factory=list)
    problems: list[Exception] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def hears(self, reason: str) -> None:
        wait_until(lambda: reason in self.said, f"never said: {reason}")
        assert not self.ended.is_set(), self.problems


@contextmanager
def calling(authority: Authority, address: str) -> Iterator[Call]:
    call = Call()
    endpoint = DialEndpoint(
        address, authority.load("bob"), peer="alice", limits=QUICK, on_failed=call.said.append
    )

    def connect() -> None:
        try:
            endpoint.connect(HANG)
        except TransportError as problem:
            call.problems.append(problem)
        call.ended.set()

    in_thread(connect)
    try:
        yield call
    finally:
        endpoint.close()
        assert call.ended.wait(HANG)


@contextmanager
def answering(answer: Callable[[socket.socket], None], port: int = 0) -> Iterator[int]:
    """A server that is not taciturn's."""
    with socket.create_server((HOST, port)) as listener:
        callers: list[socket.socket] = []

        def serve_all() -> None:
            with contextlib.suppress(OSError):
                while True:
                    caller, _ = listener.accept()
                    callers.append(caller)
                    answer(caller)

        thread = in_thread(serve_all)
        yield listener.getsockname()[1]
        # Closing alone does not wake a thread that waits in accept.
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(HANG)
        for caller in callers:
            caller.close()


@pytest.mark.parametrize(
    ("host", "reason"), [(HOST, NO_LISTENER), ("nobody.invalid", UNKNOWN_NAME)]
)
def test_nobody_listens_and_a_name_that_nobody_knows(authority, host, reason):
    with calling(authority, f"{host}:{free_port()}") as call:
        call.hears(reason)


def test_an_address_that_does_not_answer(authority):
    """A queue that is full drops calls, as a firewall does."""
    with socket.socket() as listener, contextlib.ExitStack() as queued:
        listener.bind((HOST, 0))
        listener.listen(0)
        address = listener.getsockname()
        for _ in range(4):
            caller = queued.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(address)
        wait_until(lambda: obstacle(f"{HOST}:{address[1]}", 0.2) == NO_ANSWER)
        with calling(authority, f"{HOST}:{address[1]}") as call:
            call.hears(NO_ANSWER)


def test_a_reason_is_said_once_and_another_when_it_changes(authority):
    port = free_port()
    with calling(authority, f"{HOST}:{port}") as call:
        call.hears(NO_LISTENER)
        with answering(lambda caller: None, port):
            call.hears(MUTE)
    assert call.said[:2] == [NO_LISTENER, MUTE]


def test_a_call_to_oneself_and_to_somebody_else_is_recognised(authority):
    own = authority.load("bob")
    server = serving(authority)
    address = f"{HOST}:{server.port}"
    try:
        assert names_shown(address, own.authority, HANG) == ("alice",)
        elsewhere = DialEndpoint(address, own, peer="carol", limits=QUICK)
        with refused(PeerRefused, names="'alice'"):
            elsewhere.connect(HANG)
        itself = DialEndpoint(address, authority.load("alice"), peer="bob", limits=QUICK)
        with refused(PeerRefused, names="alice"):
            itself.connect(HANG)
        elsewhere.close()
        itself.close()
    finally:
        server.close()


def test_a_port_that_nobody_calls_says_so_while_it_waits(authority):
    said: list[str] = []
    server = serving(authority, on_quiet=said.append)
    with pytest.raises(PeerAbsent):
        server.connect(0.5)
    server.close()
    assert len(said) == 1
    assert str(server.port) in said[0]
