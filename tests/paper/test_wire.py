"""The measure of the wire: its relay carries every byte, late, and its figures are a training's."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from taciturn_paper.wire import measure, slow_link


def echo(listener: socket.socket) -> None:
    peer, _ = listener.accept()
    with peer:
        while data := peer.recv(1 << 16):
            peer.sendall(data)


def test_the_relay_holds_bytes_back_and_loses_none():
    sent = bytes(range(256)) * 400
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=echo, args=(listener,), daemon=True).start()
        with slow_link(listener.getsockname()[1], 0.1, 50.0) as port:
            start = time.monotonic()
            with socket.create_connection(("127.0.0.1", port)) as wire:
                wire.sendall(sent)
                wire.shutdown(socket.SHUT_WR)
                got = b""
                while part := wire.recv(1 << 16):
                    got += part
            took = time.monotonic() - start
    assert got == sent
    # A round trip, and 102,400 bytes at 50 Mbit/s there and back, partly at the same time.
    assert took > 0.1 + 0.016


@pytest.mark.slow  # a measurement, of some seconds
@pytest.mark.parametrize("mechanism", ["add"])
def test_a_training_is_measured_by_every_way(mechanism):
    inside, across = measure(mechanism, slow=False)
    assert (inside.way, across.way) == ("one process", "loopback")
    assert inside.iterations == across.iterations == 70
    assert inside.ms > 0
    assert across.ms > 0
    assert across.bytes_to_alice > 0
    assert across.bytes_to_bob > across.bytes_to_alice
