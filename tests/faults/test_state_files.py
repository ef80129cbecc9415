"""State that was damaged, swapped or rolled back: resumed alike, or refused by name, never wrong.

Both sides run in threads over a wire in memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.engine.transcript import Transcript
from taciturn.errors import FileError
from tests.faults.damage import DAMAGES, damage
from tests.faults.setups import pair_is_same, state_of, train_on
from tests.faults.trials import Tally, judged
from tests.jobs.predict.test_sides import expected, in_threads, question, trained
from tests.party.sides import (
    MECHANISMS,
    NEWTON,
    ROLES,
    Pulled,
    pulled_at,
    record,
    run_both,
    write_config,
    write_tables,
)
from tests.party.wires import Wire

pytestmark = pytest.mark.slow
PASSES = 4
# Bob's events from a start to a stop: one early in the training, and one later.
STOPS = {"sealed": (6, 6), "mutual": (3, 5)}


@dataclass(frozen=True)
class Stopped:
    """A session that was stopped twice, and a finished one of the same two."""

    early: Path
    late: Path
    other: Path
    scores: int


@pytest.fixture(scope="module", params=["sealed", "mutual"])
def stopped(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stopped]:
    """Copies of one folder, as it was at each time."""
    folder = tmp_path_factory.mktemp(request.param)
    now, scores = folder / "now", PASSES if request.param == "sealed" else 1
    now.mkdir()
    write_tables(now, rows=40, alice=3, bob=2)
    for role in ROLES:
        agreed = {**NEWTON, **MECHANISMS[request.param], "passes": PASSES}
        write_config(now, role, agreement=agreed, state=state_of(role))
    other = Path(shutil.copytree(now, folder / "other"))
    run_both(other, act=record(other)).records  # noqa: B018 - raises where a side failed
    copies = []
    for name, event in zip(("early", "late"), STOPS[request.param], strict=True):
        ends = train_on(Wire(), now, pulled_at("bob", event))
        assert isinstance(ends["bob"], Pulled)
        assert not [*now.glob("*.model.json")]
        copies.append(Path(shutil.copytree(now, folder / name)))
    early, late = copies
    yield Stopped(early, late, other, scores)
    shutil.rmtree(folder)


def resume(folder: Path, scores: int) -> tuple[Any, str]:
    """Runs both sides again, as they are; the verdict, and the name of the error."""
    sides = train_on(Wire(), folder)
    finished = not any(isinstance(end, BaseException) for end in sides.values())
    try:
        same = finished and said_once(folder) and pair_is_same(folder, scores)
    except FileError as problem:
        # A session that was charged before does not read the counts of its rows again.
        return judged({"counts": problem}, None)
    return judged(sides, same if finished else None)


def said_once(folder: Path) -> bool:
    """What left a side is what came to the other: nothing was said in two versions."""
    one, two = (Transcript.load(folder / f"{role}.transcript") for role in ROLES)
    return sorted(one.records) == sorted(two.records)


STATE_FILES: dict[str, Callable[[str], str]] = {
    "journal": lambda role: f"{role}-state/journal",
    "budget": lambda role: f"{role}.consent.sqlite",
    "state key": lambda role: f"{role}.state.key",
}


def test_damaged_state_is_resumed_alike_or_refused(stopped, tmp_path):
    tally, draw = Tally("damaged state files"), np.random.default_rng(33)
    trials = [("journal", kind) for kind in [*DAMAGES] * 4]
    trials += [(file, kind) for file in ("budget", "state key") for kind in DAMAGES]
    for number, ((file, kind), role) in enumerate(zip(trials, cycle(ROLES), strict=False)):
        folder = Path(shutil.copytree(stopped.late, tmp_path / f"{number}"))
        damage(folder / STATE_FILES[file](role), kind, draw)
        verdict, name = resume(folder, stopped.scores)
        tally.add(f"{file}, {kind}", verdict, name, f"trial {number}, {role}")
        shutil.rmtree(folder)
    tally.require_none_wrong(len(trials))


Change = Callable[[Path, Stopped, str], None]


def older_journal(folder: Path, stopped: Stopped, role: str) -> None:
    shutil.copy(stopped.early / f"{role}-state/journal", folder / f"{role}-state/journal")


def older_state_folder(folder: Path, stopped: Stopped, role: str) -> None:
    shutil.rmtree(folder / f"{role}-state")
    shutil.copytree(stopped.early / f"{role}-state", folder / f"{role}-state")


def older_budget(folder: Path, stopped: Stopped, role: str) -> None:
    """Of before the session was charged: there was none."""
    (folder / STATE_FILES["budget"](role)).unlink()


def everything_older(folder: Path, stopped: Stopped, role: str) -> None:
    """Both sides are put back to the same time."""
    shutil.rmtree(folder)
    shutil.copytree(stopped.early, folder)


def journal_of_another_session(folder: Path, stopped: Stopped, role: str) -> None:
    shutil.copy(stopped.other / f"{role}-state/journal", folder / f"{role}-state/journal")


def another_session_and_its_key(folder: Path, stopped: Stopped, role: str) -> None:
    journal_of_another_session(folder, stopped, role)
    shutil.copy(stopped.other / f"{role}.state.key", folder)


def journal_of_the_peer(folder: Path, stopped: Stopped, role: str) -> None:
    peer = ROLES[1 - ROLES.index(role)]
    shutil.copy(stopped.late / f"{peer}-state/journal", folder / f"{role}-state/journal")


def journal_and_key_of_the_peer(folder: Path, stopped: Stopped, role: str) -> None:
    peer = ROLES[1 - ROLES.index(role)]
    journal_of_the_peer(folder, stopped, role)
    shutil.copy(stopped.late / f"{peer}.state.key", folder / f"{role}.state.key")


def no_state_folder(folder: Path, stopped: Stopped, role: str) -> None:
    shutil.rmtree(folder / f"{role}-state")


CHANGES: list[Change] = [
    older_journal,
    older_state_folder,
    older_budget,
    everything_older,
    journal_of_another_session,
    another_session_and_its_key,
    journal_of_the_peer,
    journal_and_key_of_the_peer,
    no_state_folder,
]


def test_state_that_was_swapped_or_rolled_back_is_resumed_alike_or_refused(stopped, tmp_path):
    tally = Tally("swapped and rolled-back state")
    for change in CHANGES:
        for role in ROLES:
            folder = Path(shutil.copytree(stopped.late, tmp_path / f"{change.__name__} {role}"))
            change(folder, stopped, role)
            verdict, name = resume(folder, stopped.scores)
            tally.add(change.__name__.replace("_", " "), verdict, name, role)
    tally.require_none_wrong(2 * len(CHANGES))
    # Only what both sides went back to can be taken.
    taken = {kind for kind, counts in tally.counts.items() if counts["identical"]}
    assert taken == {"everything older"}


# --- models ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two trainings of the same tables."""
    agreed = {**MECHANISMS["sealed"], "passes": 2}
    return [trained(tmp_path_factory.mktemp(f"model {number}"), **agreed) for number in range(2)]


def predicted(folder: Path) -> tuple[Any, str]:
    """Asks for scores; they are those of the model that was trained, or are refused."""
    questions, sides = {}, dict[str, Any]()
    for role in ROLES:
        try:
            questions[role] = question(folder, role)
        except BaseException as problem:
            sides[role] = problem
    if not sides:
        ends = in_threads(folder, questions)
        sides = {"alice": ends.alice, "bob": ends.bob}
    if any(isinstance(end, BaseException) for end in sides.values()):
        return judged(sides, None)
    shutil.copytree(folder / "untouched", folder, dirs_exist_ok=True)
    scores, slack = expected(folder)
    bob = sides["bob"]
    errors = [abs(scores[row] - score) for row, score in zip(bob.ids, bob.scores, strict=True)]
    return judged(sides, len(errors) > 20 and max(errors) <= slack)


def test_a_damaged_or_swapped_model_scores_alike_or_is_refused(models, tmp_path):
    tally, draw = Tally("damaged and swapped models"), np.random.default_rng(33)
    trials: list[tuple[str, str]] = [(kind, role) for kind in [*DAMAGES] * 2 for role in ROLES]
    swaps = ["of another session", "of the peer"]
    trials += [(swap, role) for swap in swaps for role in ROLES]
    for number, (kind, role) in enumerate(trials):
        folder = Path(shutil.copytree(models[0], tmp_path / f"{number}"))
        (folder / "untouched").mkdir()
        model = folder / f"{role}.model.json"
        shutil.copy(model, folder / "untouched")
        if kind == "of another session":
            shutil.copy(models[1] / model.name, model)
        elif kind == "of the peer":
            shutil.copy(folder / f"{ROLES[1 - ROLES.index(role)]}.model.json", model)
        else:
            damage(model, kind, draw)
        verdict, name = predicted(folder)
        tally.add(kind, verdict, name, f"trial {number}, {role}")
        shutil.rmtree(folder)
    tally.require_none_wrong(len(trials))
