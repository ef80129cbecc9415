"""Long arrays of checkpoints: sealed files that are there before they are named, or a refusal."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.deploy import Journal, SealedShelf, state_key
from taciturn.errors import StateError
from taciturn.mapped import BLOCK_ROWS, Scratch
from tests.deploy.sides import model_numbers, numbers_in_one_process, run_both, write_tables
from tests.deploy.test_newton import set_up
from tests.deploy.test_party import Pulled, party_alone, pulled_at, record
from tests.modules import module_of

KEY = bytes(range(32))
ROWS = 2 * BLOCK_ROWS + 7


@pytest.fixture
def shelf(tmp_path: Path) -> SealedShelf:
    return SealedShelf(tmp_path / "arrays", KEY)


def put(shelf: SealedShelf, name: str = "scores-0", first: float = 0.5) -> dict[str, Any]:
    """Keeps a long array; what a checkpoint would name it by, after it was text."""
    values = np.arange(ROWS, dtype=np.float64) + first
    kept: dict[str, Any] = json.loads(json.dumps(shelf.put(name, values)))
    return kept


def test_an_array_comes_back_in_another_process_and_is_written_once(shelf, tmp_path):
    kept = put(shelf)
    before = (tmp_path / "arrays" / "scores-0").stat().st_mtime_ns
    assert put(shelf) == kept
    assert (tmp_path / "arrays" / "scores-0").stat().st_mtime_ns == before
    again = SealedShelf(tmp_path / "arrays", KEY)
    assert again.get(kept)().tobytes() == (np.arange(ROWS) + 0.5).tobytes()


def test_nobody_else_reads_it(shelf, tmp_path):
    values = np.full(ROWS, 0.123456789)
    shelf.put("direction-0", values)
    path = tmp_path / "arrays" / "direction-0"
    assert values[:2].tobytes() not in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_short_array_needs_no_file(shelf, tmp_path):
    kept = shelf.put("scores-0", np.ones(5))
    assert isinstance(kept, str)
    assert shelf.get(kept)().tolist() == [1.0] * 5
    assert not (tmp_path / "arrays").exists()


def changed(at: int, path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


def cut(size: int, path: Path) -> None:
    path.write_bytes(path.read_bytes()[:size])


def swapped(path: Path) -> None:
    path.with_name("scores-1").rename(path)


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "missing": (Path.unlink, "is missing"),
    "empty": (partial(cut, 0), "is not the one that the checkpoint names"),
    "cut": (partial(cut, -3), "is cut"),
    "cut between records": (partial(cut, -(4 + 7 * 8 + 16)), "is cut"),
    "altered": (partial(changed, 1000), "was altered, or the key is wrong"),
    "altered at the end": (partial(changed, -1), "is cut"),
    "another's": (swapped, "is not the one that the checkpoint names"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_file_that_is_not_what_it_was_is_refused_by_its_name(shelf, tmp_path, name):
    damage, words = DAMAGE[name]
    kept = put(shelf)
    put(shelf, "scores-1", 9.5)
    damage(tmp_path / "arrays" / "scores-0")
    with pytest.raises(StateError, match=words) as refused:
        SealedShelf(tmp_path / "arrays", KEY).get(kept)()
    assert refused.value.where == str(tmp_path / "arrays" / "scores-0")
    assert "start over on both sides" in str(refused.value.hint)


def test_another_key_does_not_open_it(shelf, tmp_path):
    kept = put(shelf)
    with pytest.raises(StateError, match="the key is wrong"):
        SealedShelf(tmp_path / "arrays", bytes(32)).get(kept)()


def test_what_no_checkpoint_names_is_swept(shelf, tmp_path):
    """A file of a checkpoint is there until the next checkpoint is: a stop may come between."""
    shelf.sweep()
    first = put(shelf, "direction-0")
    shelf.sweep()
    put(shelf, "direction-1")
    files = {path.name for path in (tmp_path / "arrays").iterdir()}
    assert files == {"direction-0", "direction-1"}
    # Killed before the second checkpoint was written: the first one is what counts.
    again = SealedShelf(tmp_path / "arrays", KEY)
    load = again.get(first)
    again.sweep()
    assert [path.name for path in (tmp_path / "arrays").iterdir()] == ["direction-0"]
    assert load()[0] == 0.5
    again.clear()
    assert not (tmp_path / "arrays").exists()


# --- in a training --------------------------------------------------------------------------------


@pytest.fixture
def long_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every array counts as long: in files of the state folder, and mapped while it is used."""
    monkeypatch.setattr(module_of(SealedShelf), "LEAST_BYTES", 1)
    monkeypatch.setattr(module_of(state_key), "Scratch", partial(Scratch, least=1))


def stopped(folder: Path, event: int) -> list[str]:
    """Bob is stopped; the names of the files that his state folder has then."""
    assert isinstance(
        run_both(folder, act=record(folder), watch=pulled_at("bob", event)).bob, Pulled
    )
    assert not (folder / "bob-state" / "scratch").exists()
    arrays = folder / "bob-state" / "arrays"
    return sorted(path.name for path in arrays.iterdir()) if arrays.exists() else []


def named(*kinds: str, passes: tuple[int, ...] = (0, 1, 2)) -> list[str]:
    return [f"{kind}-{number}" for kind in kinds for number in passes]


# Amid the last of four passes; checkpoints are after the first and the third. A look is an event.
STOPS = {
    "end": (11, named("direction", "opened", "scores")),
    "epoch": (14, named("direction", "held-out", "opened", "scores")),
}
# Fewer kinds of arrays.
LOOKS = [pytest.param("end", marks=pytest.mark.slow), "epoch"]


@pytest.mark.usefixtures("long_arrays")
@pytest.mark.parametrize("evaluate", LOOKS)
@pytest.mark.slow  # seconds, and others show most of it on less
def test_from_files_a_search_goes_on_to_the_same_weights(tmp_path, evaluate):
    write_tables(tmp_path)
    set_up(tmp_path, evaluate=evaluate)
    event, files = STOPS[evaluate]
    assert stopped(tmp_path, event) == files
    run_both(tmp_path, act=record(tmp_path)).records  # noqa: B018 - raises where a side failed
    assert model_numbers(tmp_path) == numbers_in_one_process(tmp_path)[0]
    assert not (tmp_path / "bob-state" / "arrays").exists()


@pytest.mark.usefixtures("long_arrays")
def test_a_model_that_is_told_needs_the_newest_pass_alone(tmp_path):
    write_tables(tmp_path)
    set_up(tmp_path, "sealed", reveal=True, **{"reveal-epsilon": 4.0})
    # What the first checkpoint named is removed when the second one is on the disk.
    assert stopped(tmp_path, 11) == named("direction", "scores", passes=(0, 2))
    run_both(tmp_path, act=record(tmp_path)).records  # noqa: B018 - raises where a side failed
    assert model_numbers(tmp_path) == numbers_in_one_process(tmp_path)[0]


@pytest.mark.usefixtures("long_arrays")
# Before there was a checkpoint the training begins anew; after one it resumes from it.
@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_stop_between_the_files_and_their_checkpoint_loses_nothing(tmp_path, monkeypatch, count):
    write_tables(tmp_path)
    set_up(tmp_path)
    checkpoint, bobs = Journal.checkpoint, []

    def pulled(self: Journal, *point: Any) -> None:
        if (tmp_path / "bob-state" / "arrays").exists():
            bobs.append(point)
            if len(bobs) == count:
                raise Pulled
        checkpoint(self, *point)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "checkpoint", pulled)
        ends = run_both(tmp_path, act=record(tmp_path))
    assert Pulled in (type(ends.alice), type(ends.bob))
    run_both(tmp_path, act=record(tmp_path)).records  # noqa: B018 - raises where a side failed
    assert model_numbers(tmp_path) == numbers_in_one_process(tmp_path)[0]


@pytest.mark.usefixtures("long_arrays")
def test_a_file_that_is_lost_ends_the_training_and_fresh_mends_it(tmp_path):
    write_tables(tmp_path)
    set_up(tmp_path)
    stopped(tmp_path, 11)
    (tmp_path / "bob-state" / "arrays" / "scores-1").unlink()
    with pytest.raises(StateError, match="a file of the checkpoint is missing"):
        party_alone(tmp_path, "bob").run()
    run_both(tmp_path, act=lambda party: party.run(fresh=True)).records  # noqa: B018
