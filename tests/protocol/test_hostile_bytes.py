"""Mutated frames by the million: only the named errors, and no frame with two meanings."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.engine.driver import Driver
from taciturn.errors import CryptoError, MalformedFrame, ProtocolError, StateError
from taciturn.party.journal import Meta, Past
from taciturn.party.link import Link
from taciturn.protocol.codec import decode, encode
from taciturn.protocol.handshake import wire_form
from taciturn.protocol.messages import Hello
from taciturn.version import PROTOCOL_VERSION
from tests.party.wires import Wire
from tests.protocol.hostile import Mutator
from tests.protocol.parties import Tables, agreement, alice_program, bob_program
from tests.protocol.test_codec import EXAMPLES

FRAMES = [encode(message) for message in EXAMPLES.values()]


def decodes(count: int, seed: int) -> int:
    mutate, accepted = Mutator(seed), 0
    for _ in range(count):
        frame = mutate(FRAMES)
        try:
            message = decode(frame)
        except MalformedFrame:
            continue
        assert encode(message) == frame
        accepted += 1
    return accepted


def handshakes(count: int, seed: int) -> int:
    tables, agreed, mutate, passed = Tables.make(rows=6, alice=3), agreement(), Mutator(seed), 0
    digest = tables.alice.ids.digest()
    hellos = [
        encode(
            wire_form(Hello(PROTOCOL_VERSION, role, agreed.canonical(), 6, digest, bits, columns))
        )
        for role, bits, columns in (("alice", 1, 3), ("bob", 0, 0))
    ]
    for number in range(count):
        program = bob_program(tables, agreed) if number % 2 else alice_program(tables, agreed)
        side = Driver("bob" if number % 2 else "alice", program, lambda frame: None)
        side.start()
        try:
            side.feed(mutate(hellos))
            passed += 1
        except (ProtocolError, CryptoError):
            pass
        finally:
            side.close()
    return passed


def sessions(count: int, seed: int) -> int:
    """Envelopes of a session, opened and then mutated."""
    mutate, heard = Mutator(seed), 0
    seeds = [
        b"\x02" + (1).to_bytes(8, "little") + bytes(8) + FRAMES[0],
        b"\x03" + bytes(8),
        b"\x04" + bytes(2) + b"words",
        b"\x01\x01\x01" + b"a" * 16 + bytes(16) + bytes(8),
    ]
    for _ in range(count):
        link = Link(Wire().endpoint(serves=True), None, Past(Meta({}, b"", b"b" * 16)), purpose=1)
        try:
            heard += link._data(mutate(seeds)) is not None
            link._accept(mutate(seeds))
        except (ProtocolError, StateError):
            pass
    return heard


def test_some_thousands_of_mutated_frames():
    """Of mutated frames some are still messages: the test would notice if none were."""
    assert 0 < decodes(10_000, 1) < 10_000
    assert handshakes(200, 2) > 0
    assert sessions(1_000, 3) > 0


@pytest.mark.slow
def test_a_million_mutated_frames():
    assert decodes(1_000_000, 11) > 10_000
    assert handshakes(20_000, 12) > 0
    assert sessions(100_000, 13) > 0


def test_a_frame_of_zeros_and_one_of_nothing():
    for frame in (b"", bytes(1), bytes(1000), np.arange(256, dtype=np.uint8).tobytes()):
        with pytest.raises(MalformedFrame):
            decode(frame)
