"""Two real processes with real certificates, and what hostile callers can do to one of them.

Every attack stays on the loopback, is bounded in count and time, and ends with the same question:
does a good peer still get through?
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from taciturn.errors import ConnectionLost
from taciturn.transport.grpc_channel import METHOD
from taciturn.transport.limits import CHUNK, LAST, PART, READY, Limits
from tests.expected import refused
from tests.seldom import seldom
from tests.transport.parties import (
    HOST,
    Authority,
    dialling,
    raw_wire,
    serving,
    tls_client,
)
from tests.transport.test_refusals import PREFACE, headers
from tests.waiting import HANG

MIB = 1 << 20


@contextmanager
def echoing(authority: Authority, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    how, *others = arguments
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.transport.echo", how, str(authority.folder), *others],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    try:
        yield process
    finally:
        process.communicate(timeout=HANG)
        assert process.returncode in (0, -signal.SIGKILL), "it did not end well"


@pytest.fixture(scope="module")
def victim(authority) -> Iterator[tuple[int, int]]:
    """The port and the process of Alice, who serves Bob."""
    with echoing(authority, "serve", "alice", "bob") as process:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid


def resident(pid: int, field: str = "VmRSS") -> int:
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc here: memory is not measured")
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) << 10
    raise AssertionError(field)


def forget_peak(pid: int) -> None:
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def still_answers(authority: Authority, port: int) -> None:
    client = dialling(authority, port)
    try:
        channel = client.connect(HANG)
        channel.send(b"are you there")
        assert channel.receive(HANG) == b"are you there"
    finally:
        client.close()


@pytest.mark.slow
def test_a_peer_that_is_killed_is_noticed_and_its_successor_is_welcome(authority):
    server = serving(authority)
    try:
        with echoing(authority, "dial", "bob", "alice", str(server.port)) as process:
            channel = server.connect(HANG)
            channel.send(b"x")
            assert channel.receive(HANG) == b"x"
            process.kill()
            with refused(ConnectionLost):
                channel.receive(HANG)
            channel.close()
        client = dialling(authority, server.port)
        client.connect(HANG).send(b"again")
        assert server.connect(HANG).receive(HANG) == b"again"
        client.close()
    finally:
        server.close()


def raw() -> list[bytes]:
    """What no TLS client would say."""
    return [
        b"",
        b"\x00" * 4096,
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        PREFACE,
        b"\x16\x03\x01\xff\xff" + b"A" * 70_000,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(600),
        b"SSH-2.0-x\r\n",
        b"\x80\x2e\x01\x00\x02" + b"\x01" * 50,
        *(os.urandom(900) for _ in range(24)),
    ]


def test_garbage_and_plain_tcp(authority, victim):
    port, pid = victim
    before = resident(pid)
    for data in raw():
        with (
            contextlib.suppress(OSError),
            socket.create_connection((HOST, port), timeout=1) as caller,
        ):
            caller.sendall(data)
            caller.shutdown(socket.SHUT_WR)
            while caller.recv(4096):
                pass
    still_answers(authority, port)
    assert resident(pid) - before < 64 * MIB


@pytest.mark.slow  # a second or two, and others show the same on less
def test_half_open_handshakes_neither_keep_a_good_peer_out_nor_stay(authority, victim):
    port, pid = victim
    before = resident(pid)
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    callers = [socket.create_connection((HOST, port), timeout=HANG) for _ in range(50)]
    try:
        for number, caller in enumerate(callers):
            caller.sendall(hello[: number % len(hello)])
        still_answers(authority, port)
        assert resident(pid) - before < 64 * MIB
        for caller in callers:
            with contextlib.suppress(ConnectionError):
                assert caller.recv(100) == b"", "the server has hung up"
    finally:
        for caller in callers:
            caller.close()
    still_answers(authority, port)


def part_flood() -> Iterator[bytes]:
    yield READY
    part = PART + bytes(CHUNK)
    for _ in range(300):
        yield part


def tiny_flood() -> Iterator[bytes]:
    yield READY
    for _ in range(20_000):
        yield PART


ATTACKS = {
    "parts without end": lambda: part_flood(),
    "tiny parts": lambda: tiny_flood(),
    "one message of 100 MiB": lambda: iter([READY, LAST + bytes(100 * MIB)]),
    "no ready": lambda: iter([LAST + b"x"] * 100),
    "another version": lambda: iter([b"\x09\x00"] * 100),
    "empty messages": lambda: iter([b""] * 100),
    "a message that unfolds": lambda: iter([READY, LAST + bytes(100 * MIB)]),
}


# By what a chunk's parser, which is tried for itself, cannot see: how much memory it takes.
LARGE = ["parts without end", "tiny parts", "one message of 100 MiB", "a message that unfolds"]


@pytest.mark.parametrize("name", seldom(ATTACKS, always=LARGE))
def test_a_peer_with_the_right_certificate_that_means_harm(authority, victim, name):
    port, pid = victim
    forget_peak(pid)
    before = resident(pid)
    with raw_wire(authority, port) as wire:
        folded = grpc.Compression.Gzip if "unfolds" in name else None
        call = wire.stream_stream(METHOD)(ATTACKS[name](), timeout=HANG, compression=folded)
        with contextlib.suppress(grpc.RpcError):
            for _ in call:
                pass
    still_answers(authority, port)
    # A frame's parts, and once more when they are put together; a window, two queues.
    frames = 0 if "unfolds" in name else 2 * Limits().max_frame
    assert resident(pid, "VmHWM") - before < frames + 64 * MIB


def test_large_headers_and_many_streams(authority, victim):
    port, pid = victim
    before = resident(pid)
    with raw_wire(authority, port) as wire:
        with pytest.raises(grpc.RpcError):
            next(
                wire.stream_stream(METHOD)(iter([READY]), timeout=HANG, metadata=[("x", "y" * MIB)])
            )
        calls = [wire.stream_stream(METHOD)(iter([READY]), timeout=HANG) for _ in range(100)]
        for call in calls:
            with contextlib.suppress(grpc.RpcError, StopIteration):
                next(call)
            call.cancel()
    still_answers(authority, port)
    assert resident(pid) - before < 64 * MIB


@pytest.mark.slow  # some seconds
def test_raw_frames_of_http2_from_the_right_certificate(authority, victim):
    """Pings by the thousand, and streams that are opened and reset at once."""
    port, pid = victim
    before = resident(pid)
    ping = b"\x00\x00\x08\x06\x00\x00\x00\x00\x00" + bytes(8)
    opening = headers(METHOD, port)
    resets = b"".join(
        opening[:5] + number.to_bytes(4, "big") + opening[9:]
        + b"\x00\x00\x04\x03\x00" + number.to_bytes(4, "big") + b"\x00\x00\x00\x08"
        for number in range(1, 2001, 2)
    )  # fmt: skip
    for flood in (ping * 20_000, resets, b"\xff" * 100_000):
        with (
            contextlib.suppress(OSError),
            tls_client(authority, port, version=ssl.TLSVersion.TLSv1_3) as caller,
        ):
            caller.settimeout(1)
            caller.sendall(PREFACE + flood)
            while caller.recv(65536):
                pass
    time.sleep(0.2)
    still_answers(authority, port)
    assert resident(pid) - before < 64 * MIB
