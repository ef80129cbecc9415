"""Disks that are full at any moment: an error by name, and the same result once there is room.

Both sides are in one folder on a small disk, in threads over a wire in memory.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.errors import OutputError
from taciturn.party.config import PartyConfig
from taciturn.party.consent.score_budget import ScoreBudget
from tests.faults.setups import pair_is_same, train_on, two_parties
from tests.faults.trials import Tally, judged
from tests.jobs.align.test_sides import elements_in_files  # noqa: F401 - a fixture
from tests.jobs.predict.test_sides import answers, expected, in_threads, question, trained
from tests.party.sides import MECHANISMS, ROLES, Ends
from tests.party.wires import HookedWire, Hooks, Wire
from tests.system import small_disk

pytestmark = pytest.mark.slow
SIZE, PAGE = 24 << 20, 4096
# Frames of a training or an alignment that a side sends, and the notes between them.
FRAMES = 12


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with small_disk(tmp_path_factory.mktemp("disk"), SIZE) as place:
        yield place


def fill(disk: Path, leave: int = 0) -> None:
    """Leaves so many bytes."""
    free = os.statvfs(disk)
    room = max(0, free.f_bavail * free.f_frsize - leave)
    with (disk / "filler").open("wb", buffering=0) as filler:
        try:
            while room > 0:
                room -= filler.write(bytes(min(room, 1 << 20)))
        except OSError:
            return


def empty(disk: Path) -> None:
    (disk / "filler").unlink(missing_ok=True)


def filling_wire(disk: Path, draw: np.random.Generator) -> Wire:
    """A wire; the disk is full before one of Alice's frames leaves."""
    left = [int(draw.integers(1, FRAMES))]

    def sending(envelope: bytes) -> bytes:
        left[0] -= 1
        if not left[0]:
            fill(disk)
        return envelope

    return HookedWire(False, Hooks(sending=sending))


def tally_full(
    tally: Tally,
    kind: str,
    disk: Path,
    run: Callable[[], dict[str, Any]],
    same: Callable[[], bool],
    again: Callable[[], dict[str, Any]] | None = None,
) -> None:
    """Runs while the disk fills up, and again when there is room; the second run counts."""
    try:
        first, name = judged(run(), True)
    finally:
        empty(disk)
    if first == "wrong":
        tally.add(kind, first, name, "while the disk was full")
        return
    ends = (again or run)()
    finished = not any(isinstance(end, BaseException) for end in ends.values())
    verdict, second = judged(ends, same() if finished else None)
    tally.add(f"{kind}: {name or 'there was room'}", verdict, second)


def require_tried(tally: Tally, trials: int) -> None:
    """Insists that none went wrong, and that the disk was full in some."""
    tally.require_none_wrong(trials)
    assert any(OutputError.__name__ in kind for kind in tally.counts)


@pytest.mark.parametrize("mechanism", ["sealed", "mutual"])
def test_a_training_goes_on_when_there_is_room_again(disk, mechanism):
    tally, draw = Tally("a full disk, and room again"), np.random.default_rng(33)
    scores = 2 if mechanism == "sealed" else 1
    for trial in range(12):
        folder = disk / "training"
        folder.mkdir()
        two_parties(folder, mechanism)
        wire, kind = filling_wire(disk, draw), "at a frame"
        if trial % 4 == 3:
            wire, kind = Wire(), "from the start"
            fill(disk, leave=int(draw.integers(200)) * PAGE)
        tally_full(
            tally,
            f"{mechanism}, {kind}",
            disk,
            lambda: train_on(wire, folder),  # noqa: B023 - it is called at once
            lambda: pair_is_same(folder, scores),  # noqa: B023
            lambda: train_on(Wire(), folder),  # noqa: B023
        )
        shutil.rmtree(folder)
    require_tried(tally, 12)
    assert not tally.names, "with room again every training goes on"


def of_ends(ends: Ends) -> dict[str, Any]:
    return {"alice": ends.alice, "bob": ends.bob}


def rows_counted(folder: Path) -> int:
    """How many rows Alice has counted scores of."""
    budget = ScoreBudget.from_config(PartyConfig.read(folder / "alice.toml"))
    assert budget is not None
    with budget.store.reading() as records:
        return sum(budget.account(records).distinct_values().values())


def test_a_prediction_that_cannot_be_charged_is_not_given(disk, tmp_path):
    """Scores leave when they are counted, and not before."""
    tally, draw = Tally("a full disk, and room again"), np.random.default_rng(33)
    model = trained(tmp_path, **{**MECHANISMS["sealed"], "passes": 2})
    for _ in range(6):
        folder = Path(shutil.copytree(model, disk / "prediction"))
        questions = {role: question(folder, role) for role in ROLES}
        fill(disk, leave=int(draw.integers(2)) * PAGE)
        before = rows_counted(model)

        def run() -> dict[str, Any]:
            ends = of_ends(in_threads(folder, questions))  # noqa: B023
            if getattr(ends["bob"], "scores", None) is not None:
                # Counted: new rows are in the file.
                assert rows_counted(folder) > before  # noqa: B023
            return ends

        def same() -> bool:
            _, bob = answers(in_threads(folder, questions))  # noqa: B023
            scores, slack = expected(folder)  # noqa: B023
            assert bob.scores is not None
            given = zip(bob.ids, bob.scores, strict=True)
            return all(abs(scores[row] - score) <= slack for row, score in given)

        tally_full(tally, "predict", disk, run, same)
        shutil.rmtree(folder)
    require_tried(tally, 6)
