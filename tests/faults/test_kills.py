"""Sides that are killed at any frame, and started again: the same result, or a refusal by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from taciturn.engine.transcript import Transcript
from taciturn.errors import TaciturnError
from taciturn.model.share import ModelShare
from taciturn.model.whole import whole_model
from taciturn.numerics.table_schedule import TableSchedule
from taciturn.party.config import PartyConfig
from taciturn.party.consent.records import VALUE
from taciturn.party.consent.score_budget import ScoreBudget
from taciturn.party.consent.scored_rows import REPETITIONS, RowOpening, ScoredRows
from taciturn.protocol.codec import decode
from taciturn.protocol.messages import SharedProduct, SharedVector
from tests.faults.processes import PartyProcess, prediction, run_with_kills, training
from tests.faults.setups import SETUPS, Setup
from tests.faults.trials import Tally, judged
from tests.party.sides import write_tables

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
    ("kind", "trials"),
    [("sealed", 14), ("mutual", 8), ("mutual, blocks", 4), ("three parties", 6), ("a study", 6)],
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


@pytest.mark.parametrize(("role", "at"), [("alice", 800), ("bob", 960)])
def test_a_side_that_is_killed_between_steps_over_blocks_ends_alike(tmp_path, role, at):
    """In the second round: the checkpoint is that before its step over all rows."""
    tally, kind = Tally(TITLE), "mutual, blocks"
    try_kills(tally, kind, SETUPS[kind], tmp_path / "killed", {role: [at]})
    tally.require_none_wrong(1)
    assert tally.counts[kind]["identical"] == 1
    log = (tmp_path / "killed" / f"{role}.log").read_text().splitlines()
    (sent,) = (entry["frames_sent"] for entry in map(json.loads, log) if "frames_sent" in entry)
    said = [*Transcript.load(tmp_path / "killed" / f"{role}.transcript").frames(role)]
    last: Any = decode(said[sent - 1])
    step = last.iteration // (1 + isinstance(last, SharedVector | SharedProduct))
    # 6,400 rows and 4 columns: eight blocks.
    assert step > 17
    assert TableSchedule(6_400, 4, 14).block(step) is not None


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


def write_new_rows(folder: Path) -> None:
    """Rows that were not trained on."""
    scratch = folder / "scratch"
    scratch.mkdir()
    write_tables(scratch, rows=60, alice=3, bob=2)
    for role in ("alice", "bob"):
        rows = pl.read_csv(scratch / f"{role}.csv").filter(pl.col("id") >= "p0040")
        rows.drop("sick", strict=False).write_csv(folder / f"{role}.new.csv")


def scores_given(folder: Path) -> int:
    """How many scores of a new row Bob was given, by Alice's count."""
    budget = ScoreBudget.from_config(PartyConfig.read(folder / "alice.toml"))
    assert budget is not None
    with budget.store.reading() as records:
        tags = budget.account(records).tags(pl.read_csv(folder / "alice.new.csv")["id"])
        before = ScoredRows(records, budget.partner).change(tags, RowOpening()).before
        return int((before[VALUE] + before[REPETITIONS]).max())


def scores_are_right(folder: Path, end: dict[str, Any]) -> bool:
    """Those of the whole model."""
    ids, scores = end["result"]
    shares = [ModelShare.load(folder / f"{role}.model.json") for role in ("alice", "bob")]
    frames = [pl.read_csv(folder / f"{role}.new.csv").sort("id") for role in ("alice", "bob")]
    wanted = dict(zip(sorted(ids), whole_model(*shares).scores(*frames), strict=True))
    errors = [abs(wanted[row] - score) for row, score in zip(ids, scores, strict=True)]
    return float(max(errors)) < 2.0**-8


@pytest.mark.parametrize("mechanism", ["sealed", "mutual"])
def test_a_prediction_that_was_charged_stays_charged(tmp_path, mechanism):
    """Alice is killed at every frame of a prediction; who asks again is charged again."""
    tally, trained = Tally(TITLE), tmp_path / "trained"
    trained.mkdir()
    files = SETUPS[mechanism].files(trained)
    run_with_kills({name: PartyProcess(file, training) for name, file in files.items()})
    write_new_rows(trained)
    charged = []
    for at in range(4, 31, 2):
        folder = Path(shutil.copytree(trained, tmp_path / f"{at}"))
        sides = {
            name: PartyProcess(folder / file.name, prediction, [at] * (name == "alice"))
            for name, file in files.items()
        }
        given = list[int]()
        ends = run_with_kills(
            sides,
            on_kill=lambda: given.append(scores_given(folder)),  # noqa: B023
            # Predictions are not resumed: a side that waits for the one that was killed ends too.
            run_again=(TaciturnError,),
        )
        if not given:
            # It has fewer frames.
            break
        finished = not any(isinstance(end, BaseException) for end in ends.values())
        kept = scores_given(folder) in (given[0] + 1, max(1, given[0]))
        same = finished and kept and scores_are_right(folder, ends["bob"])
        verdict, name = judged(ends, same if finished else None)
        charged.append(given[0])
        tally.add(f"{mechanism}, {given[0]} charged", verdict, name, f"{at} {ends}")
    tally.require_none_wrong(5)
    assert {0, 1} <= set(charged), "it was killed before the charge, and after it"
