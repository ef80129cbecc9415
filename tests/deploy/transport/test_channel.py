"""A live link within one process: order, sizes, back-pressure, closing, cuts."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taciturn.deploy.transport.chunks import CHUNK
from taciturn.deploy.transport.grpc_channel import GrpcChannel
from taciturn.deploy.transport.limits import WINDOW, Limits
from taciturn.deploy.transport.serve import ServeEndpoint
from taciturn.engine.channel import Channel, Endpoint
from taciturn.errors import ConnectionLost, LocalProtocolError, PeerAbsent, PeerSilent
from taciturn.protocol.codec import MAX_FRAME
from tests.deploy.transport.parties import (
    HOST,
    QUICK,
    connected,
    dialling,
    in_thread,
    memory,
    serving,
)


def test_what_the_transport_gives_is_what_the_runtime_asks_for(pair):
    channels: list[Channel] = [pair.alice, pair.bob]
    endpoints: list[Endpoint] = [pair.server, pair.client]
    assert channels
    assert endpoints


@pytest.mark.parametrize("size", [0, 1, 200_000, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_frames_of_all_sizes_go_both_ways(pair, size):
    frame = bytes(range(256)) * (size // 256) + bytes(size % 256)
    for sender, receiver in ((pair.alice, pair.bob), (pair.bob, pair.alice)):
        sender.send(frame)
        assert receiver.receive(10) == frame


def test_the_largest_frame_passes_and_a_larger_one_is_refused_here(pair):
    frame = bytes(Limits().max_frame)
    assert len(frame) > MAX_FRAME
    work = in_thread(lambda: pair.alice.send(frame))
    assert len(pair.bob.receive(20)) == len(frame)
    work.join(10)
    with pytest.raises(LocalProtocolError, match="exceeds"):
        pair.alice.send(frame + b"x")


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.binary(max_size=300), max_size=20))
def test_order_is_kept(pair, frames):
    for frame in frames:
        pair.bob.send(frame)
    assert [pair.alice.receive(10) for _ in frames] == frames


def test_floods_in_both_directions_do_not_lock_up(pair):
    count = 120

    def flood(channel: GrpcChannel) -> None:
        for number in range(count):
            channel.send(number.to_bytes(4, "big") + bytes(200_000))

    threads = [in_thread(partial(flood, each)) for each in (pair.alice, pair.bob)]
    for number in range(count):
        for channel in (pair.alice, pair.bob):
            assert channel.receive(10)[:4] == number.to_bytes(4, "big")
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_a_sender_waits_while_nobody_reads_and_memory_stays_bounded(authority):
    limits = Limits(in_flight=2 << 20, drain=0.2)
    frame = bytes(1 << 20)
    sent = []
    with connected(authority, limits) as pair:
        before = memory()

        def flood():
            try:
                for number in range(400):
                    pair.bob.send(frame)
                    sent.append(number)
            except ConnectionLost:
                pass

        thread = in_thread(flood)
        time.sleep(0.6)
        waiting = len(sent)
        time.sleep(0.3)
        assert len(sent) == waiting, "it did not stop"
        # Both queues, the window, a chunk in each hand, and some room for the allocator.
        assert waiting << 20 <= 2 * limits.in_flight + WINDOW + (8 << 20)
        assert memory() - before < 100 << 20
        for _ in range(waiting):
            assert len(pair.alice.receive(5)) == len(frame)
        time.sleep(0.3)
        assert len(sent) > waiting, "it did not go on"
    thread.join(10)
    assert not thread.is_alive()


def test_many_empty_frames_wait_too(authority):
    limits = Limits(in_flight=64 << 10, drain=0.5)
    sent: list[None] = []
    with connected(authority, limits) as pair:

        def flood():
            try:
                while True:
                    pair.bob.send(b"")
                    sent.append(None)
            except ConnectionLost:
                pass

        thread = in_thread(flood)
        time.sleep(0.6)
        pair.bob.lose(ConnectionLost("enough"))
        thread.join(5)
        assert not thread.is_alive()
        # Each waits as if it had 256 bytes: two queues, and what gRPC holds meanwhile.
        assert len(sent) < 100_000


def test_one_may_wait_without_end(fresh):
    fresh.bob.send(b"x")
    assert fresh.alice.receive(float("inf")) == b"x"


def test_silence_is_named(fresh):
    before = time.monotonic()
    with pytest.raises(PeerSilent, match=r"bob has sent nothing for 0\.2 s"):
        fresh.alice.receive(0.2)
    assert 0.2 <= time.monotonic() - before < 2
    fresh.bob.send(b"late")
    assert fresh.alice.receive(5) == b"late"


@pytest.mark.parametrize("closer", ["alice", "bob"])
def test_what_was_sent_before_closing_arrives(fresh, closer):
    first = getattr(fresh, closer)
    second = fresh.bob if closer == "alice" else fresh.alice
    frames = [bytes([number]) * 900_000 for number in range(20)]

    def speak():
        for frame in frames:
            first.send(frame)
        first.close()

    thread = in_thread(speak)
    for frame in frames:
        time.sleep(0.01)
        assert second.receive(5) == frame
    with pytest.raises(ConnectionLost, match="closed the connection"):
        second.receive(5)
    with pytest.raises(ConnectionLost):
        second.send(b"too late")
    thread.join(5)
    assert not thread.is_alive()


@pytest.mark.parametrize("closer", ["alice", "bob"])
def test_closing_may_be_repeated_and_ends_our_own_use(fresh, closer):
    channel = getattr(fresh, closer)
    channel.close()
    channel.close()
    with pytest.raises(ConnectionLost):
        channel.send(b"x")
    with pytest.raises(ConnectionLost):
        channel.receive(1)


def test_both_may_close_at_once_with_everything_full(authority):
    limits = Limits(in_flight=1 << 20, drain=2.0)
    with connected(authority, limits) as pair:

        def flood(channel: GrpcChannel) -> None:
            with contextlib.suppress(ConnectionLost):
                while True:
                    channel.send(bytes(500_000))

        both = (pair.alice, pair.bob)
        floods = [in_thread(partial(flood, each)) for each in both]
        time.sleep(0.3)
        before = time.monotonic()
        closers = [in_thread(each.close) for each in both]
        for thread in (*closers, *floods):
            thread.join(10)
            assert not thread.is_alive()
        assert time.monotonic() - before < 8


def test_closing_does_not_wait_for_ever_for_a_peer_that_does_not_read(authority):
    limits = Limits(in_flight=1 << 20, drain=0.5)
    with connected(authority, limits) as pair:
        for _ in range(3):
            pair.alice.send(bytes(400_000))

        def flood() -> None:
            with contextlib.suppress(ConnectionLost):
                for _ in range(9):
                    pair.alice.send(bytes(900_000))

        thread = in_thread(flood)
        time.sleep(0.5)
        before = time.monotonic()
        pair.alice.close()
        assert time.monotonic() - before < 3
        thread.join(3)
        assert not thread.is_alive()


def test_a_new_stream_of_the_peer_replaces_the_old_one(authority):
    with connected(authority) as pair:
        pair.bob.send(b"before")
        assert pair.alice.receive(5) == b"before"
        again = dialling(authority, pair.server.port)
        try:
            newer = again.connect(5)
            with pytest.raises(ConnectionLost, match="connected anew"):
                pair.alice.receive(5)
            with pytest.raises(ConnectionLost):
                pair.bob.receive(5)
            alice = pair.server.connect(5)
            newer.send(b"after")
            assert alice.receive(5) == b"after"
        finally:
            again.close()


def test_dialling_again_after_a_loss(authority):
    with connected(authority) as pair:
        for _ in range(3):
            bob = pair.client.connect(5)
            alice = pair.server.connect(5)
            alice.send(b"hello")
            assert bob.receive(5) == b"hello"


def test_dialling_waits_for_a_server_that_comes_later(authority):
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    client = dialling(authority, port)
    made = []
    thread = in_thread(lambda: made.append(client.connect(20)))
    time.sleep(0.5)
    endpoint = ServeEndpoint(f"{HOST}:{port}", authority.load("alice"), peer="bob", limits=QUICK)
    try:
        thread.join(15)
        assert made
        made[0].send(b"here")
        assert endpoint.connect(5).receive(5) == b"here"
    finally:
        client.close()
        endpoint.close()


def test_nobody_there_is_named_on_both_sides(authority):
    server = serving(authority)
    with pytest.raises(PeerAbsent, match=r"bob has not connected within 0\.2 s"):
        server.connect(0.2)
    port = server.port
    server.close()
    client = dialling(authority, port)
    with pytest.raises(PeerAbsent, match=r"alice has not answered within 0\.5 s"):
        client.connect(0.5)
    client.close()


class Cuttable:
    """A relay between two ports that can go dead without closing anything."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._cut = threading.Event()
        self._sockets: list[socket.socket] = [self._listener]
        in_thread(self._accept)

    def _accept(self) -> None:
        try:
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection((HOST, self._target))
                self._sockets += [near, far]
                in_thread(partial(self._pump, near, far))
                in_thread(partial(self._pump, far, near))
        except OSError:
            pass

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                if not self._cut.is_set():
                    sink.sendall(data)
        except OSError:
            pass

    def cut(self) -> None:
        self._cut.set()

    def close(self) -> None:
        for each in self._sockets:
            # Closing alone would not wake the thread that reads from it.
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def test_a_link_that_is_torn_is_noticed_at_once_and_can_be_made_anew(authority):
    server = serving(authority)
    relay = Cuttable(server.port)
    client = dialling(authority, relay.port)
    again = dialling(authority, server.port)
    try:
        bob, alice = client.connect(5), server.connect(5)
        relay.close()
        before = time.monotonic()
        for channel in (alice, bob):
            with pytest.raises(ConnectionLost, match="broke"):
                channel.receive(10)
        assert time.monotonic() - before < 3
        again.connect(5).send(b"again")
        assert server.connect(5).receive(5) == b"again"
    finally:
        client.close()
        again.close()
        server.close()


def test_a_link_that_goes_dead_without_a_word_is_noticed_on_both_sides(authority):
    limits = Limits(dead_after=1.0, drain=0.5)
    server = serving(authority, limits)
    relay = Cuttable(server.port)
    client = dialling(authority, relay.port, limits)
    try:
        bob = client.connect(5)
        alice = server.connect(5)
        bob.send(b"alive")
        assert alice.receive(5) == b"alive"
        # An idle link that is alive stays.
        with pytest.raises(PeerSilent):
            alice.receive(1.6)
        relay.cut()
        before = time.monotonic()
        for channel in (alice, bob):
            with pytest.raises(ConnectionLost):
                channel.receive(10)
        assert time.monotonic() - before < 5
    finally:
        relay.close()
        client.close()
        server.close()
