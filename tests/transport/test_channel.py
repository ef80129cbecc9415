"""A live link within one process: order, sizes, back-pressure, closing, cuts."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.errors import ConnectionLost, LocalProtocolError, PeerSilent
from taciturn.protocol.codec import MAX_FRAME
from taciturn.transport.grpc_channel import (
    METHOD,
    OVERHEAD,
    ByteQueue,
    GrpcChannel,
    StreamEnded,
    objection,
)
from taciturn.transport.limits import CHUNK, READY, WINDOW, Limits
from taciturn.transport.serve import Hub
from tests.expected import refused
from tests.modules import module_of
from tests.system import free_port
from tests.transport.parties import (
    HOST,
    QUICK,
    connected,
    dialling,
    in_thread,
    memory,
    raw_wire,
    serving,
)
from tests.transport.relay import Relay
from tests.transport.serve_endpoint import ServeEndpoint
from tests.waiting import HANG, wait_until


@pytest.mark.parametrize("size", [0, 1, 200_000, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_frames_of_all_sizes_go_both_ways(pair, size):
    frame = bytes(range(256)) * (size // 256) + bytes(size % 256)
    for sender, receiver in ((pair.alice, pair.bob), (pair.bob, pair.alice)):
        sender.send(frame)
        assert receiver.receive(HANG) == frame


def test_the_largest_frame_passes_and_a_larger_one_is_refused_here(pair):
    frame = bytes(Limits().max_frame)
    assert len(frame) > MAX_FRAME
    work = in_thread(lambda: pair.alice.send(frame))
    assert len(pair.bob.receive(HANG)) == len(frame)
    work.join(HANG)
    with refused(LocalProtocolError):
        pair.alice.send(frame + b"x")


@settings(max_examples=20)
@given(st.lists(st.binary(max_size=300), max_size=20))
def test_order_is_kept(pair, frames):
    for frame in frames:
        pair.bob.send(frame)
    assert [pair.alice.receive(HANG) for _ in frames] == frames


def test_floods_in_both_directions_do_not_lock_up(pair):
    count = 120

    def flood(channel: GrpcChannel) -> None:
        for number in range(count):
            channel.send(number.to_bytes(4, "big") + bytes(200_000))

    threads = [in_thread(partial(flood, end)) for end in (pair.alice, pair.bob)]
    for number in range(count):
        for channel in (pair.alice, pair.bob):
            assert channel.receive(HANG)[:4] == number.to_bytes(4, "big")
    for thread in threads:
        thread.join(HANG)
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
        waiting = settled(sent)
        # Both queues, the window, a chunk in each hand, and some room for the allocator.
        assert waiting << 20 <= 2 * limits.in_flight + WINDOW + (8 << 20)
        assert memory() - before < 100 << 20
        for _ in range(waiting):
            assert len(pair.alice.receive(HANG)) == len(frame)
        wait_until(lambda: len(sent) > waiting, "it did not go on")
    thread.join(HANG)
    assert not thread.is_alive()


def settled(sent: list[int]) -> int:
    """How many were sent by the time that no more are."""
    wait_until(lambda: sent)
    count = 0
    while len(sent) != count:
        count = len(sent)
        time.sleep(0.4)
    return count


def test_empty_entries_of_a_queue_are_not_free():
    """Of bytes alone there would be no limit to them."""
    queue = ByteQueue(64 << 10)
    put: list[int] = []

    def flood() -> None:
        with contextlib.suppress(StreamEnded):
            while True:
                queue.put(b"")
                put.append(0)

    thread = in_thread(flood)
    assert settled(put) == (64 << 10) // OVERHEAD
    assert queue.get() == b""
    wait_until(lambda: len(put) == (64 << 10) // OVERHEAD + 1)
    queue.finish()
    thread.join(HANG)
    assert not thread.is_alive()


def test_silence_is_named(fresh):
    with refused(PeerSilent, names=("bob", "0.2 s")):
        fresh.alice.receive(0.2)
    fresh.bob.send(b"late")
    assert fresh.alice.receive(float("inf")) == b"late"


@pytest.mark.parametrize("closer", ["alice", "bob"])
def test_what_was_sent_before_closing_arrives(authority, closer):
    with connected(authority, Limits(drain=HANG)) as pair:
        first, second = (pair.alice, pair.bob) if closer == "alice" else (pair.bob, pair.alice)
        frames = [bytes([number]) * 900_000 for number in range(20)]

        def speak():
            for frame in frames:
                first.send(frame)
            first.close()

        thread = in_thread(speak)
        for frame in frames:
            time.sleep(0.01)
            assert second.receive(HANG) == frame
        with refused(ConnectionLost):
            second.receive(HANG)
        with pytest.raises(ConnectionLost):
            second.send(b"too late")
        thread.join(HANG)
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
        floods = [in_thread(partial(flood, end)) for end in both]
        time.sleep(0.3)
        closers = [in_thread(end.close) for end in both]
        for thread in (*closers, *floods):
            thread.join(HANG)
            assert not thread.is_alive()


@pytest.mark.parametrize("over", [True, False], ids=["over", "live"])
def test_a_stream_that_came_earlier_does_not_replace_a_later_one(authority, monkeypatch, over):
    """On a busy machine the threads of two streams begin in either order.

    The earlier one is live still, or its caller has gone, as a refused one has.
    """
    arrived, go_on = threading.Event(), threading.Event()

    def slow_for_the_first(
        shown: Mapping[str, Sequence[bytes]], peers: Collection[str], own: str
    ) -> str:
        if not arrived.is_set():
            arrived.set()
            assert go_on.wait(HANG)
        return objection(shown, peers, own)

    monkeypatch.setattr(module_of(Hub), "objection", slow_for_the_first)
    server, ended = serving(authority), threading.Event()
    client = dialling(authority, server.port)
    try:
        with raw_wire(authority, server.port) as wire:
            call = wire.stream_stream(METHOD)(held_open(ended))
            assert arrived.wait(HANG)
            bob, alice = client.connect(HANG), server.connect(HANG)
            if over:
                call.cancel()
            go_on.set()
            # Long enough for the earlier stream's thread to do what harm it can.
            for _ in range(200):
                bob.send(b"still here")
                assert alice.receive(HANG) == b"still here"
            with pytest.raises(grpc.RpcError):
                next(call)
    finally:
        go_on.set()
        ended.set()
        client.close()
        server.close()


def held_open(ended: threading.Event) -> Iterator[bytes]:
    """A stream that has said it is ready, and goes on."""
    yield READY
    ended.wait(HANG)


def test_dialling_waits_for_a_server_that_comes_later(authority):
    port = free_port()
    client = dialling(authority, port)
    made = []
    thread = in_thread(lambda: made.append(client.connect(HANG)))
    time.sleep(0.5)
    endpoint = ServeEndpoint(f"{HOST}:{port}", authority.load("alice"), peer="bob", limits=QUICK)
    try:
        thread.join(HANG)
        assert made
        made[0].send(b"here")
        assert endpoint.connect(HANG).receive(HANG) == b"here"
    finally:
        client.close()
        endpoint.close()


def test_a_link_that_is_torn_is_noticed_at_once_and_can_be_made_anew(authority):
    """Long before it would be given up for dead."""
    limits = Limits(dead_after=10 * HANG, drain=2.0)
    server = serving(authority, limits)
    relay = Relay(server.port)
    client = dialling(authority, relay.port, limits)
    again = dialling(authority, server.port)
    try:
        bob, alice = client.connect(HANG), server.connect(HANG)
        relay.close()
        for channel in (alice, bob):
            with refused(ConnectionLost):
                channel.receive(HANG)
        again.connect(HANG).send(b"again")
        assert server.connect(HANG).receive(HANG) == b"again"
    finally:
        client.close()
        again.close()
        server.close()


@pytest.mark.slow  # a second, and others show the same on less
def test_a_link_that_goes_dead_without_a_word_is_noticed_on_both_sides(authority):
    limits = Limits(dead_after=2.0, drain=0.5)
    server = serving(authority, limits)
    relay = Relay(server.port)
    client = dialling(authority, relay.port, limits)
    try:
        bob, alice = client.connect(HANG), server.connect(HANG)
        relay.cut()
        for channel in (alice, bob):
            with pytest.raises(ConnectionLost):
                channel.receive(HANG)
    finally:
        relay.close()
        client.close()
        server.close()
