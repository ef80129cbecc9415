"""Sides that are killed at any frame, and started again: the same result, or a refusal by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.faults.processes import PartyProcess, run_with_kills
from tests.faults.setups import SETUPS, Setup
from tests.faults.trials import Tally, judged

pytestmark = pytest.mark.slow
TITLE = "killed, and started again"
# A note to a peer that waits may come or not: what is drawn must be there in every run.
SHARE_OF_FRAMES = 0.85


def try_kills(
    tally: Tally, kind: str, setup: Setup, folder: Path, kills: dict[str, list[int]]
) -> dict[str, int]:
    """One trial in a new folder; how many operations each side had in its last start."""
    folder.mkdir()
    files = setup.files(folder)
    sides = {
        name: PartyProcess(file, setup.work, list(kills.get(name, ())))
        for name, file in files.items()
    }
    ends = run_with_kills(sides)
    assert any(side.killed for side in sides.values()) or not kills, f"nobody was killed: {kills}"
    finished = not any(isinstance(end, BaseException) for end in ends.values())
    verdict, name = judged(ends, setup.same(folder) if finished else None)
    tally.add(kind, verdict, name, f"{kills} {ends}")
    return {name: side.end().get("operations", 0) for name, side in sides.items()}


@pytest.mark.parametrize(
    ("kind", "trials"), [("sealed", 14), ("mutual", 8), ("three parties", 6), ("a study", 6)]
)
def test_sides_that_are_killed_at_random_frames_end_alike(tmp_path, kind, trials):
    """A third of them are killed a second time soon after they were started again."""
    tally, setup, draw = Tally(TITLE), SETUPS[kind], np.random.default_rng(33)
    frames = try_kills(tally, f"{kind}, undisturbed", setup, tmp_path / "undisturbed", {})
    names = sorted(frames)
    for trial in range(trials):
        name = names[trial % len(names)]
        kills = {name: [int(draw.integers(1, 1 + int(SHARE_OF_FRAMES * frames[name])))]}
        if trial % 3 == 2:
            again = names[int(draw.integers(len(names)))]
            kills.setdefault(again, []).append(int(draw.integers(1, 8)))
        try_kills(tally, kind, setup, tmp_path / f"{trial}", kills)
    tally.require_none_wrong(trials)


# Opening: before it leaves, when it has, when the peer's is here, and when the peer is noted.
MEETING = range(1, 6)


@pytest.mark.parametrize("role", ["alice", "bob"])
def test_a_side_that_is_killed_while_the_two_meet_ends_alike(tmp_path, role):
    """One side has noted whom it met, and the other has not."""
    tally = Tally(TITLE)
    for at in MEETING:
        kind = f"{role}, at the meeting"
        try_kills(tally, kind, SETUPS["sealed"], tmp_path / f"{at}", {role: [at]})
    try_kills(
        tally,
        "both, at the meeting",
        SETUPS["sealed"],
        tmp_path / "both",
        {"alice": [3], "bob": [4]},
    )
    tally.require_none_wrong(len(MEETING))
