"""Who gets an answer: whoever knows the address, on this machine; nobody else gets a byte."""

from __future__ import annotations

import socket
import time

import pytest
from ops.tests.dashboard.clients import Reader, get, said, served

from taciturn.engine.callbacks import noop
from taciturn.protocol.events import Progress
from taciturn_ops.dashboard.dashboard_state import DashboardState
from taciturn_ops.dashboard.server import EVENT_SECONDS, Address, Server, page
from tests.modules import module_of
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def running():
    with served(DashboardState("train")) as server:
        yield server


def test_whoever_knows_the_address_gets_the_page_under_a_strict_policy(running):
    address = running.address
    for host in (f"127.0.0.1:{address.port}", f"localhost:{address.port}"):
        head, _, body = said(address, get(f"/{address.token}/", host)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert body == page().body
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    policy = fields["Content-Security-Policy"].split("; ")
    # exact: a policy that browsers read
    assert policy[0] == "default-src 'none'"
    assert {"connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} < set(policy)
    # exact: a policy that browsers read
    assert "form-action 'none'" in policy
    assert "unsafe" not in fields["Content-Security-Policy"]
    assert fields["Referrer-Policy"] == "no-referrer"
    assert fields["Cache-Control"] == "no-store"
    assert fields["X-Content-Type-Options"] == "nosniff"


WRONG = {
    "no token": lambda here: get("/", here.host),
    "another token": lambda here: get(f"/{'0' * 43}/", here.host),
    "a part of the token": lambda here: get(f"/{here.token[:-1]}/", here.host),
    "more than the token": lambda here: get(f"/{here.token}0/", here.host),
    "the token in other letters": lambda here: get(f"/{here.token.swapcase()}/", here.host),
    "no slash": lambda here: get(f"/{here.token}", here.host),
    "another resource": lambda here: get(f"/{here.token}/favicon.ico", here.host),
    "a path that climbs": lambda here: get(f"/{here.token}/../{here.token}/", here.host),
    "a question": lambda here: get(f"/{here.token}/?a", here.host),
    "a whole address": lambda here: get(f"http://{here.host}/{here.token}/", here.host),
    "another host": lambda here: get(f"/{here.token}/", f"rebound.example:{here.port}"),
    "another port": lambda here: get(f"/{here.token}/", "127.0.0.1:1"),
    "no host": lambda here: f"GET /{here.token}/ HTTP/1.1\r\n\r\n".encode(),
    "two hosts": lambda here: (
        f"GET /{here.token}/ HTTP/1.1\r\nHost: {here.host}\r\nHost: {here.host}\r\n\r\n".encode()
    ),
    "POST": lambda here: get(f"/{here.token}/", here.host, "POST"),
    "HEAD": lambda here: get(f"/{here.token}/", here.host, "HEAD"),
    "OPTIONS": lambda here: get(f"/{here.token}/", here.host, "OPTIONS"),
    "an older version": lambda here: get(f"/{here.token}/", here.host, version="HTTP/1.0"),
    "no words": lambda here: b"\r\n\r\n",
    "noise": lambda here: bytes(range(256)) + b"\r\n\r\n",
    "TLS": lambda here: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "too many words": lambda here: (
        f"GET /{here.token}/ HTTP/1.1\r\nHost: {here.host}\r\nX: {'x' * 9000}\r\n\r\n".encode()
    ),
}


class Here:
    def __init__(self, address: Address) -> None:
        self.port, self.token = address.port, address.token
        self.host = f"127.0.0.1:{address.port}"


@pytest.mark.parametrize("request_of", WRONG.values(), ids=WRONG)
def test_every_other_request_gets_no_byte(running, request_of):
    assert said(running.address, request_of(Here(running.address))) == b""


def test_a_request_that_dawdles_gets_no_byte(running, monkeypatch):
    monkeypatch.setattr(module_of(Server), "REQUEST_SECONDS", 0.05)
    assert said(running.address, b"GET /") == b""


def own_addresses() -> list[str]:
    """This machine's other addresses; of loopback, those beside 127.0.0.1."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    others = ["127.0.0.2"]
    with probe:
        try:
            # Nothing is sent: the system only chooses the address that it would send from.
            probe.connect(("192.0.2.1", 9))
            others.append(probe.getsockname()[0])
        except OSError:
            noop("there is no other network")
    return others


def test_no_other_address_of_this_machine_is_listened_on(running):
    for host in own_addresses():
        with (
            pytest.raises(ConnectionRefusedError),
            socket.create_connection((host, running.address.port), timeout=5),
        ):
            pass
    assert running._socket.getsockname()[0] == "127.0.0.1"


def test_a_reader_is_sent_changes_a_few_times_a_second_and_the_end(monkeypatch):
    dashboard = DashboardState("train")
    with served(dashboard) as server:
        reader, start = Reader(server.address), time.monotonic()
        wait_until(lambda: reader.sections)
        changes = 0
        while time.monotonic() - start < 1.2:
            changes += 1
            dashboard.observe(Progress(changes, 10**9))
            time.sleep(0.0002)
        wait_until(lambda: reader.sections["work"]["bars"][-1]["done"] == changes)
        passed = time.monotonic() - start
        dashboard.end(None)
    wait_until(reader.over.is_set)
    assert reader.sections["end"]["state"] == "done"
    assert reader.events[0][0] == "hello"
    assert changes > 500
    # Beside hello, what was there at first and the end.
    assert 2 <= len(reader.events) <= passed / EVENT_SECONDS + 4
    # What has not changed is not sent again.
    about = [record for _, record in reader.events if "about" in record]
    assert len(about) == 1


def test_a_reader_hears_a_beat_where_nothing_changes(monkeypatch):
    monkeypatch.setattr(module_of(Server), "BEAT_SECONDS", 0.1)
    monkeypatch.setattr(module_of(Server), "SAMPLE_SECONDS", 1000.0)
    with served(DashboardState("train")) as server:
        reader = Reader(server.address)
        wait_until(lambda: [kind for kind, _ in reader.events].count("beat") >= 2)


def test_readers_are_few_and_one_that_leaves_makes_room(monkeypatch):
    monkeypatch.setattr(module_of(Server), "MOST_READERS", 2)
    monkeypatch.setattr(module_of(Server), "EVENT_SECONDS", 0.01)
    with served(DashboardState("train")) as server:
        first, second = Reader(server.address), Reader(server.address)
        wait_until(lambda: first.sections and second.sections)
        third = Reader(server.address)
        wait_until(third.over.is_set)
        assert third.events == []
        first.close()
        wait_until(lambda: server._readers == 1)
        fourth = Reader(server.address)
        wait_until(lambda: fourth.sections)


def test_connections_are_few(monkeypatch):
    monkeypatch.setattr(module_of(Server), "MOST_CONNECTIONS", 3)
    with served(DashboardState("train")) as server:
        place = ("127.0.0.1", server.address.port)
        idle = [socket.create_connection(place) for _ in range(3)]
        wait_until(lambda: server._connections == 3)
        request = get(f"/{server.address.token}/", f"127.0.0.1:{server.address.port}")
        assert said(server.address, request) == b""
        for line in idle:
            line.close()
        wait_until(lambda: server._connections == 0)
        assert said(server.address, request)


def test_a_secret_address_is_not_in_the_servers_words(running):
    assert running.address.token not in repr(running.address)
    assert len(running.address.token) == 43
