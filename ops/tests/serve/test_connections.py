"""Connections that misbehave: each is refused, answered or closed, and costs a bounded amount."""

from __future__ import annotations

import asyncio
import errno
import json
import re
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from ops.tests.serve.services import Running, Service, furnish, started

from taciturn_ops.serve.http.server import server_settings, tls_context
from tests.modules import module_of
from tests.waiting import HANG, wait_until

# Far more than a connection that was refused may still send, and far less than a flood.
MUCH = 64 << 20
# MiB that a process may grow by connections of which every one has ended.
GROWTH = 48.0


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), HANG)


def everything(link: socket.socket) -> bytes:
    """All that comes until the connection is closed."""
    parts = []
    with suppress(ConnectionError):
        while part := link.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def head(token: str, *lines: str, path: str = "/v1/score", method: str = "POST") -> bytes:
    """The head of a request in JSON."""
    given = [
        f"{method} {path} HTTP/1.1",
        "Host: it",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        *lines,
    ]
    return ("\r\n".join(given) + "\r\n\r\n").encode()


def answers(received: bytes) -> list[tuple[int, str]]:
    """The status and the name of the refusal of each answer; empty where it is none."""
    outcomes = []
    for part in received.split(b"HTTP/1.1 ")[1:]:
        start, _, body = part.partition(b"\r\n\r\n")
        status = int(start[:3])
        if status > 199:
            error = json.loads(body).get("error", {}) if body.startswith(b"{") else {}
            outcomes.append((status, str(error.get("code", ""))))
    return outcomes


def statuses(service: Running) -> dict[int, int]:
    """How many requests had which status, as the metrics count them."""
    text = service.request("GET", "/metrics").text
    counts = re.findall(r'requests_total\{status="(\d+)"\} (\d+)', text)
    return {int(status): int(count) for status, count in counts}


@pytest.mark.parametrize("kind", ["with a length", "in chunks"])
def test_a_refused_request_may_not_go_on_sending_its_body(service, kind):
    chunked = kind == "in chunks"
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {1 << 40}"
    block = b"x" * (1 << 20)
    with closing(connect(service.port)) as link:
        link.sendall(head("0" * 64, length))
        sent = 0
        with suppress(ConnectionError):
            while sent < MUCH:
                link.sendall(b"%x\r\n%b\r\n" % (len(block), block) if chunked else block)
                sent += len(block)
        assert sent < MUCH
        assert answers(everything(link)) == [(401, "not-authenticated")]


def test_headers_are_counted_before_they_are_parsed(service):
    """In one piece: it is parsed in one go."""
    with closing(connect(service.port)) as link:
        link.sendall(head(service.token, f"X-A: {'a' * 70_000}", path="/v1/model", method="GET"))
        assert answers(everything(link)) == [(431, "large-head")]
    with closing(connect(service.port)) as link:
        link.sendall(
            head(
                service.token,
                f"X-A: {'a' * 60_000}",
                "Connection: close",
                path="/v1/model",
                method="GET",
            )
        )
        assert answers(everything(link)) == [(200, "")]


def test_what_is_no_http_is_refused_by_name(service):
    with closing(connect(service.port)) as link:
        link.sendall(b"\x16\x03\x01 this is no request\r\n\r\n")
        assert answers(everything(link)) == [(400, "not-http")]
    # A body whose chunks are none, of a caller who may ask.
    with closing(connect(service.port)) as link:
        link.sendall(head(service.token, "Transfer-Encoding: chunked") + b"what?\r\n")
        assert answers(everything(link)) == [(400, "not-http")]


def test_requests_in_a_pipeline_are_not_answered_beyond_the_first(service):
    request = head(service.token, "Content-Length: 15") + b'{"id": "p0121"}'
    before = statuses(service).get(200, 0)
    with closing(connect(service.port)) as link:
        link.sendall(request * 500)
        assert answers(everything(link)) == [(200, "")]
    # The one, and the metrics of before.
    assert statuses(service)[200] == before + 2


def test_a_caller_that_hangs_up_is_neither_a_bug_nor_counted_as_one(service):
    before = statuses(service)
    for _ in range(20):
        with closing(connect(service.port)) as link:
            link.sendall(head(service.token, "Content-Length: 1000") + b'{"id": ')
    wait_until(lambda: statuses(service).get(499, 0) == before.get(499, 0) + 20)
    assert statuses(service).get(500, 0) == before.get(500, 0)
    log = (service.bob.folder / "bob.log").read_text(encoding="utf-8")
    assert not [line for line in log.splitlines() if json.loads(line).get("event") == "a bug"]


def test_a_connection_that_is_used_again_has_its_answers(service):
    """Also where a body comes after its head, and in pieces."""
    body = b'{"id": "p0121"}'
    with closing(connect(service.port)) as link:
        for _ in range(3):
            link.sendall(head(service.token, f"Content-Length: {len(body)}"))
            link.sendall(body[:4])
            link.sendall(body[4:])
            received = b""
            while not answers(received) or not received.endswith(b"}"):
                received += link.recv(1 << 16)
            assert answers(received) == [(200, "")]


@contextmanager
def served(answer: bytes) -> Iterator[uvicorn.Server]:
    """A server in a thread, of an application that gives one answer to everything."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": answer})

    with socket.create_server(("127.0.0.1", 0)) as taken:
        one = module_of(tls_context)._Server(server_settings(app, None))
        thread = threading.Thread(target=lambda: asyncio.run(one.serve(sockets=[taken])))
        thread.start()
        try:
            wait_until(lambda: one.started)
            yield one
        finally:
            one.should_exit = True
            thread.join(HANG)
            assert not thread.is_alive()


def port_of(one: uvicorn.Server) -> int:
    return int(one.servers[0].sockets[0].getsockname()[1])


def test_a_caller_that_does_not_read_is_closed(monkeypatch):
    monkeypatch.setattr(module_of(tls_context), "ANSWER_SECONDS", 0.2)
    with served(b"x" * (32 << 20)) as one, closing(connect(port_of(one))) as link:
        link.sendall(b"GET / HTTP/1.1\r\nHost: it\r\n\r\n")
        wait_until(lambda: one.server_state.total_requests or one.server_state.connections)
        wait_until(lambda: not one.server_state.connections)
        wait_until(lambda: not one.server_state.tasks)
        assert len(everything(link)) < 32 << 20


def test_a_caller_that_reads_slowly_has_its_whole_answer(monkeypatch):
    """What waits for it goes out as long as it reads."""
    monkeypatch.setattr(module_of(tls_context), "CLOSING_SECONDS", 0.2)
    size = 24 << 20
    with served(b"x" * size) as one, closing(connect(port_of(one))) as link:
        link.sendall(b"GET / HTTP/1.0\r\nHost: it\r\n\r\n")
        wait_until(lambda: one.server_state.connections)
        time.sleep(1.0)
        assert len(everything(link)) > size


def test_a_reset_while_an_answer_is_written_is_no_error_of_the_service(monkeypatch, caplog):
    """Between the answer and the end of the stream, where a reset is otherwise not seen."""
    reset = OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    def write_eof(transport: object) -> None:
        raise reset

    target = "asyncio.selector_events._SelectorSocketTransport.write_eof"
    monkeypatch.setattr(target, write_eof)
    with served(b"refused") as one, closing(connect(port_of(one))) as link:
        link.sendall(b"POST / HTTP/1.1\r\nHost: it\r\nContent-Length: 9\r\n\r\nhalf")
        wait_until(lambda: one.server_state.connections)
        link.shutdown(socket.SHUT_WR)
        everything(link)
        wait_until(lambda: not one.server_state.connections)
    assert caplog.records == []


@pytest.mark.slow  # two starts
def test_a_stop_refuses_requests_that_are_not_complete(folder):
    running = furnish(folder)
    with started(running), ExitStack() as held:
        links = [held.enter_context(closing(connect(running.port))) for _ in range(5)]
        for link in links[:4]:
            link.sendall(head(running.token, "Content-Length: 1000") + b'{"id": ')
        # Half a head.
        links[4].sendall(b"POST /v1/score HTTP/1.1\r\nHost:")
        wait_until(lambda: running.request("GET", "/metrics").status == 200)
        assert running.bob.stop() == 0
        assert [answers(everything(link)) for link in links[:4]] == [[(503, "stopping")]] * 4
        assert answers(everything(links[4])) == []
    assert "Traceback" not in running.bob.said()


@contextmanager
def few_files() -> Iterator[None]:
    """Processes that are started may have as many open files as is usual; this one as before."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    start = Service.start

    def started_with_few(side: Service) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, before[0]), before[1]))
        try:
            start(side)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Service, "start", started_with_few)
        yield


def open_files(running: Running) -> int:
    """How many Bob's process may have."""
    assert running.bob.process is not None
    text = Path(f"/proc/{running.bob.process.pid}/limits").read_text(encoding="ascii")
    (soft,) = re.findall(r"Max open files +(\d+)", text)
    return int(soft)


def healthy(running: Running) -> bool:
    try:
        return running.request("GET", "/healthz").status == 200
    except OSError:
        return False


def at_rest(running: Running) -> bool:
    """No request for scores is under way; where too many are, the next is refused as busy."""
    try:
        text = running.request("GET", "/metrics").text
    except OSError:
        return False
    return re.search(r"requests_active 0$", text, flags=re.MULTILINE) is not None


IDLE_CONNECTIONS = 1300


@pytest.mark.slow  # thousands of connections
def test_idle_connections_without_a_token_do_not_shut_callers_out(folder):
    """More than may be open at a time, renewed as they are closed; a caller has every answer."""
    running = furnish(folder)
    with few_files(), started(running), renewed_connections(running.port) as opened:
        wait_until(lambda: opened() > 2 * IDLE_CONNECTIONS)
        statuses = [running.score("p0121").status for _ in range(40)]
        assert statuses == [200] * 40
        assert "Traceback" not in running.bob.said()


@contextmanager
def renewed_connections(port: int) -> Iterator[Callable[[], int]]:
    """Idle connections, each replaced when it is closed; yields how many were opened."""
    links: list[socket.socket] = []
    opened, ended = [0], threading.Event()

    def renew() -> None:
        while not ended.is_set():
            if len(links) >= IDLE_CONNECTIONS:
                links.pop(0).close()
            with suppress(OSError):
                links.append(connect(port))
                opened[0] += 1
            # As many a second as one core of an attacker opens would measure this machine.
            if opened[0] % 100 == 0:
                ended.wait(0.02)

    thread = threading.Thread(target=renew)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(files[0], 4096), files[1]))
    thread.start()
    try:
        yield lambda: opened[0]
    finally:
        ended.set()
        thread.join(HANG)
        for link in links:
            link.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, files)
