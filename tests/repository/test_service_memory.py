"""Connections that misbehave: each is refused, answered or closed, and costs a bounded amount."""

from __future__ import annotations

import socket
from contextlib import ExitStack, closing, suppress

import pytest
from ops.tests.serve.conftest import folder, model  # noqa: F401 - fixtures
from ops.tests.serve.services import Running, furnish, started
from ops.tests.serve.test_connections import (
    GROWTH,
    at_rest,
    connect,
    few_files,
    head,
    healthy,
    open_files,
)

from taciturn_ops.serve.http.server import MOST_OPEN
from taciturn_paper.serving import resident
from tests.waiting import wait_until


@pytest.mark.slow  # a thousand connections for some seconds
def test_a_thousand_callers_that_do_not_read_neither_fill_the_memory_nor_the_service(folder):  # noqa: F811
    """None has a token. Each sends 256 KiB of requests, and reads nothing."""
    running = furnish(folder)
    flood = (b"GET /openapi.json HTTP/1.1\r\nHost: it\r\n\r\n" * 8000)[: 256 << 10]
    with few_files(), started(running), ExitStack() as held:
        before = memory(running)
        for _ in range(1040):
            link = held.enter_context(closing(connect(running.port)))
            link.settimeout(0.0)
            with suppress(BlockingIOError, ConnectionError):
                link.send(flood)
        assert open_files(running) > MOST_OPEN
        # They are still there, and the service is too.
        wait_until(lambda: healthy(running))
        grown = memory(running) - before
        print(f"1,040 callers that do not read: {before:.0f} MiB, and {grown:.0f} MiB more")
        assert grown < GROWTH


def memory(running: Running) -> float:
    """MiB that Bob's process has in memory."""
    assert running.bob.process is not None
    return resident(running.bob.process)


@pytest.mark.slow  # 7,200 connections
def test_the_memory_of_aborted_connections_comes_back(folder):  # noqa: F811
    running = furnish(folder)
    with started(running):
        seen = [memory(running)]
        for _ in range(6):
            for number in range(1200):
                with closing(connect(running.port)) as link:
                    # Closed with a reset: at once, in a head, in a body, before the answer.
                    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    whole = head(running.token, "Content-Length: 15") + b'{"id": "p0121"}'
                    link.sendall(whole[: (0, 40, len(whole) - 5, len(whole))[number % 4]])
            wait_until(lambda: at_rest(running))
            seen.append(memory(running))
        print("MiB after each 1,200 aborted connections:", [round(size, 1) for size in seen])
        # What allocators keep is kept early.
        assert seen[-1] - seen[3] < 8.0, seen
        assert running.score("p0121").status == 200
