"""A peer with a valid certificate that sends mutated frames: taken or refused by name, no more.

The content of a ciphertext of the right form is the peer's affair (docs/threat_model.md): a side
that goes on has not done wrong. It may end with a named error, or with a model; it may not
crash, hang, or be unable to begin anew with an honest peer.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.faults.damage import flipped
from tests.faults.setups import state_of, train_on
from tests.faults.trials import Tally, judged
from tests.party.sides import MECHANISMS, ROLES, run_both, write_config, write_tables
from tests.party.wires import HookedWire, Hooks, MutatingPeer, changing
from tests.protocol.hostile import Mutator

pytestmark = pytest.mark.slow
TRIALS = 24
# A side that waits for the rest of a mutated frame ends soon.
IMPATIENT = {"connect-seconds": 5.0, "answer-seconds": 8.0}
AGREED: dict[str, dict[str, Any]] = {
    "sealed": {**MECHANISMS["sealed"], "passes": 2},
    "mutual": {**MECHANISMS["mutual"], "passes": 2},
    "none": {"epochs": 1, **MECHANISMS["none"]},
}


def honest(folder: Path) -> None:
    """Both sides begin anew, and train."""
    run_both(folder, act=lambda party: party.run(fresh=True)).records  # noqa: B018


@pytest.mark.parametrize("mechanism", AGREED)
def test_a_mutated_frame_is_taken_or_refused_by_name(tmp_path, mechanism):
    tally, draw = Tally("mutated frames, at a party", "taken"), np.random.default_rng(33)
    start = tmp_path / "start"
    start.mkdir()
    write_tables(start, rows=40, alice=3, bob=2)
    for role in ROLES:
        agreed = AGREED[mechanism]
        write_config(start, role, agreement=agreed, state=state_of(role), link=IMPATIENT)
    for trial in range(TRIALS):
        folder = Path(shutil.copytree(start, tmp_path / f"{trial}"))
        victim, sender = ROLES[trial % 2], ROLES[1 - trial % 2]
        mutate: Callable[[list[bytes]], bytes] = Mutator(trial)
        if trial % 3 == 0:
            mutate = lambda frames: flipped(frames[0], draw)  # noqa: E731
        peer = MutatingPeer(mutate).arm(int(draw.integers(8)))
        # What carries the protocol's frames is mutated too, in a third of the trials.
        sending = peer.changed if trial % 3 == 1 else changing(peer.changed)
        ends = train_on(HookedWire(sender == "bob", Hooks(sending=sending)), folder)
        assert peer.done, f"nothing was mutated: trial {trial}"
        verdict, name = judged({victim: ends[victim]}, True)
        tally.add(f"{mechanism}, at {victim}", verdict, name, f"trial {trial}")
        if trial % 4 == 0:
            honest(folder)
        shutil.rmtree(folder)
    tally.require_none_wrong(TRIALS)
