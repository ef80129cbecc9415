"""A relay between the two that flips, repeats, drops, cuts and stalls bytes: TLS notices all of it.

The session goes on over another connection, to the same result; or it is refused by name.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.deploy import PartyConfig, way_to_peer
from tests.deploy.sides import ROLES, in_threads
from tests.deploy.transport.test_flips import Flipper
from tests.faults.processes import training
from tests.faults.setups import pair_is_same, two_parties
from tests.faults.trials import Tally, judged
from tests.system import free_port

pytestmark = pytest.mark.slow
FAULTS = ("flips a bit", "repeats bytes", "drops bytes", "cuts", "stalls")
TRIALS = 20
# Bytes that cross in either direction: the handshake, and ciphertexts of the first pass.
HANDSHAKE, LATER = 4_000, 200_000


@dataclass
class FaultyRelay(Flipper):
    """Does one thing at one byte of a direction of its first connection.

    Args:
        fault: One of ``FAULTS``.
        place: The byte.
    """

    fault: str = ""
    place: int = 0
    happened: bool = False

    def _pump(self, source: socket.socket, sink: socket.socket, way: int, damaged: bool) -> None:
        at, stalled = 0, False
        with suppress(OSError):
            while data := source.recv(1 << 16):
                here = self.place - at
                at += len(data)
                if damaged and way == self.way and 0 <= here < len(data):
                    self.happened = True
                    if self.fault == "cuts":
                        sink.sendall(data[:here])
                        break
                    stalled = self.fault == "stalls"
                    data = self._faulty(data, here)
                # Whoever stalls goes on reading, and passes nothing on.
                if not stalled:
                    sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _faulty(self, data: bytes, here: int) -> bytes:
        if self.fault == "flips a bit":
            return data[:here] + bytes([data[here] ^ 1 << here % 8]) + data[here + 1 :]
        if self.fault == "repeats bytes":
            return data[: here + 16] + data[here:]
        return data[:here] + data[here + 16 :]


def train_through(files: dict[str, Path]) -> dict[str, Any]:
    """Both sides in threads over TLS, Alice through the relay."""

    def side(role: str) -> None:
        config = PartyConfig.read(files[role])
        with way_to_peer(config, lambda text: None) as way:
            training(config, way)

    return in_threads({role: partial(side, role) for role in ROLES})


@pytest.mark.parametrize("mechanism", ["sealed", "mutual"])
def test_a_relay_that_damages_bytes_changes_nothing(tmp_path, mechanism):
    tally, draw = Tally("a relay that damages bytes"), np.random.default_rng(33)
    for trial in range(TRIALS):
        fault, folder, port = FAULTS[trial % len(FAULTS)], tmp_path / f"{trial}", free_port()
        folder.mkdir()
        most = HANDSHAKE if trial % 4 == 0 else LATER
        relay = FaultyRelay(
            port, way=trial // len(FAULTS) % 2, fault=fault, place=int(draw.integers(most))
        )
        with relay.listening() as through:
            files = two_parties(folder, mechanism, port)
            alice = files["alice"]
            alice.write_text(alice.read_text().replace(f":{port}", f":{through}"))
            ends = train_through(files)
        finished = not any(isinstance(end, BaseException) for end in ends.values())
        scores = 2 if mechanism == "sealed" else 1
        verdict, name = judged(ends, pair_is_same(folder, scores) if finished else None)
        assert relay.happened, f"nothing was damaged: trial {trial}"
        tally.add(f"{mechanism}, {fault}", verdict, name, f"trial {trial}, byte {relay.place}")
    tally.require_none_wrong(TRIALS)
