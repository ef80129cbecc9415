"""One bit is flipped on the way while TLS shakes hands: the session comes about all the same.

Alice serves in a process of her own; a proxy on the loopback flips one bit of the first connection.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import pytest

from taciturn.deploy.transport import DialEndpoint
from taciturn.errors import PeerRefused
from tests.deploy.transport.parties import HOST, QUICK, Authority, in_thread
from tests.deploy.transport.test_processes import echoing
from tests.expected import refused
from tests.waiting import HANG

TO_SERVER, TO_CLIENT = 0, 1
# A flight's first record has kinds, versions and lengths here.
HEADS = (0, 1, 2, 3, 5, 6, 9, 11)
SPREAD = 12


@dataclass
class Flipper:
    """A proxy; of each of its first connections it flips the named bits of one direction.

    Args:
        port: Where the server listens.
        way: The direction.
        bits: Which bits of that direction's stream.
        connections: How many connections it damages.
    """

    port: int
    way: int = TO_SERVER
    bits: Sequence[int] = ()
    connections: int = 1
    calls: int = 0
    flipped: int = 0
    passed: list[int] = field(default_factory=lambda: [0, 0])

    @contextmanager
    def listening(self) -> Iterator[int]:
        with socket.create_server((HOST, 0)) as listener:
            accepting = in_thread(lambda: self._accept(listener))
            yield listener.getsockname()[1]
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join(HANG)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                caller, _ = listener.accept()
                self.calls += 1
                damaged = self.calls <= self.connections
                in_thread(lambda: self._carry(caller, damaged))  # noqa: B023 - it starts at once

    def _carry(self, caller: socket.socket, damaged: bool) -> None:
        with caller, socket.create_connection((HOST, self.port)) as server:
            back = threading.Thread(target=self._pump, args=(server, caller, TO_CLIENT, damaged))
            back.start()
            self._pump(caller, server, TO_SERVER, damaged)
            back.join(HANG)

    def _pump(self, source: socket.socket, sink: socket.socket, way: int, damaged: bool) -> None:
        at = 0
        with suppress(OSError):
            while data := bytearray(source.recv(1 << 16)):
                for bit in self.bits if damaged and way == self.way else ():
                    if at <= bit // 8 < at + len(data):
                        data[bit // 8 - at] ^= 1 << (bit % 8)
                        self.flipped += 1
                at += len(data)
                if damaged:
                    self.passed[way] = at
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def server(authority) -> Iterator[int]:
    """The port of Alice, who serves Bob."""
    with echoing(authority, "serve", "alice", "bob") as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())


def meets(authority: Authority, proxy: Flipper, file: str = "bob") -> list[str]:
    """A frame there and back through the proxy; what was said of attempts that failed."""
    said: list[str] = []
    with proxy.listening() as port:
        client = DialEndpoint(
            f"{HOST}:{port}",
            authority.load(file),
            peer="alice",
            limits=QUICK,
            on_failed=said.append,
        )
        try:
            channel = client.connect(HANG)
            channel.send(b"are you there")
            assert channel.receive(HANG) == b"are you there"
        finally:
            client.close()
    return said


@pytest.fixture(scope="module")
def flights(authority, server) -> tuple[int, int]:
    """How many bytes go each way until a frame is there and back."""
    proxy = Flipper(server)
    assert meets(authority, proxy) == []
    to_server, to_client = proxy.passed
    assert proxy.calls == 1
    assert min(to_server, to_client) > 1500
    return to_server, to_client


def spread(length: int, count: int) -> list[int]:
    """Bits over the whole length, another one in each byte."""
    places = [*HEADS, *range(HEADS[-1] + 1, length, length // count)]
    return [8 * place + place % 8 for place in places]


@pytest.mark.slow  # some seconds
@pytest.mark.parametrize("way", [TO_SERVER, TO_CLIENT])
def test_one_flipped_bit_does_not_end_a_session(authority, server, flights, way):
    # A quarter of what crosses comes after the handshake: the server's settings, the frame.
    bits = spread(flights[way] * 3 // 4, SPREAD)
    failed = 0
    for bit in bits:
        proxy = Flipper(server, way, [bit])
        said = meets(authority, proxy)
        assert proxy.flipped == 1, bit
        failed += proxy.calls > 1
        assert not [words for words in said if "certificate" in words or "error:" in words], bit
    # Nearly every one costs a connection: the bits do lie within the handshake.
    assert failed >= len(bits) - 4


@pytest.mark.slow  # a second or two, and others show the same on less
def test_a_line_that_damages_many_handshakes_is_waited_for(authority, server):
    """More of them in a row than hang-ups count as a refusal."""
    proxy = Flipper(server, TO_CLIENT, [8 * 5], connections=5)
    said = meets(authority, proxy)
    assert proxy.calls == 6
    assert len(said) == 1
    assert "TLS" in said[0]


def test_an_identity_is_refused_on_a_damaging_line_as_well(authority, server):
    proxy = Flipper(server, TO_CLIENT, [8 * 5])
    with refused(PeerRefused, names="alice"):
        meets(authority, proxy, "eve")
    assert proxy.calls == 2
