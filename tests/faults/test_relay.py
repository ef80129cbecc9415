"""A relay between the two that flips, repeats, drops, cuts and stalls bytes: TLS notices all of it.

The session goes on over another connection, to the same result; or it is refused by name.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.party.config import PartyConfig
from taciturn.party.endpoints import open_endpoint
from tests.faults.processes import training
from tests.faults.setups import pair_is_same, two_parties
from tests.faults.trials import Tally, judged
from tests.party.sides import ROLES, in_threads
from tests.system import free_port
from tests.transport.relay import Relay, cuts, drops, flips, repeats, stalls

pytestmark = pytest.mark.slow
FAULTS = {
    "flips a bit": lambda place: flips(8 * place + place % 8),
    "repeats bytes": repeats,
    "drops bytes": drops,
    "cuts": cuts,
    "stalls": stalls,
}
TRIALS = 20
# Bytes that cross in either direction: the handshake, and ciphertexts of the first pass.
HANDSHAKE, LATER = 4_000, 200_000


def train_through(files: dict[str, Path]) -> dict[str, Any]:
    """Both sides in threads over TLS, Alice through the relay."""

    def side(role: str) -> None:
        config = PartyConfig.read(files[role])
        with open_endpoint(config, lambda text: None) as way:
            training(config, way)

    return in_threads({role: partial(side, role) for role in ROLES})


@pytest.mark.parametrize("mechanism", ["sealed", "mutual"])
def test_a_relay_that_damages_bytes_changes_nothing(tmp_path, mechanism):
    tally, draw = Tally("a relay that damages bytes"), np.random.default_rng(33)
    for trial in range(TRIALS):
        fault, folder, port = [*FAULTS][trial % len(FAULTS)], tmp_path / f"{trial}", free_port()
        folder.mkdir()
        place = int(draw.integers(HANDSHAKE if trial % 4 == 0 else LATER))
        damage, way = FAULTS[fault](place), trial // len(FAULTS) % 2
        with Relay(port, damage, way=way) as relay:
            files = two_parties(folder, mechanism, port)
            alice = files["alice"]
            alice.write_text(alice.read_text().replace(f":{port}", f":{relay.port}"))
            ends = train_through(files)
        finished = not any(isinstance(end, BaseException) for end in ends.values())
        scores = 2 if mechanism == "sealed" else 1
        verdict, name = judged(ends, pair_is_same(folder, scores) if finished else None)
        assert relay.damaged, f"nothing was damaged: trial {trial}"
        tally.add(f"{mechanism}, {fault}", verdict, name, f"trial {trial}, byte {place}")
    tally.require_none_wrong(TRIALS)
