"""Long arrays of checkpoints: sealed files that are there before they are named, or a refusal."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.errors import StateError
from taciturn.memmap import BLOCK_ROWS, Scratch
from taciturn.party.array_store import EncryptedArrayStore
from taciturn.party.journal import Journal
from taciturn.party.state_store import state_key
from tests.expected import refused
from tests.modules import module_of
from tests.party.sides import (
    NEWTON,
    Pulled,
    alone,
    model_numbers,
    numbers_in_one_process,
    pulled_at,
    record,
    run_both,
    set_up,
    write_tables,
)

KEY = bytes(range(32))
ROWS = 2 * BLOCK_ROWS + 7


@pytest.fixture
def array_store(tmp_path: Path) -> EncryptedArrayStore:
    return EncryptedArrayStore(tmp_path / "arrays", KEY)


def put(
    array_store: EncryptedArrayStore, name: str = "scores-0", first: float = 0.5
) -> dict[str, Any]:
    """Keeps a long array; what a checkpoint would name it by, after it was text."""
    values = np.arange(ROWS, dtype=np.float64) + first
    kept: dict[str, Any] = json.loads(json.dumps(array_store.put(name, values)))
    return kept


def test_an_array_comes_back_in_another_process_and_is_written_once(array_store, tmp_path):
    kept = put(array_store)
    before = (tmp_path / "arrays" / "scores-0").stat().st_mtime_ns
    assert put(array_store) == kept
    assert (tmp_path / "arrays" / "scores-0").stat().st_mtime_ns == before
    again = EncryptedArrayStore(tmp_path / "arrays", KEY)
    assert again.get(kept)().tobytes() == (np.arange(ROWS) + 0.5).tobytes()


def test_nobody_else_reads_it(array_store, tmp_path):
    values = np.full(ROWS, 0.123456789)
    array_store.put("direction-0", values)
    path = tmp_path / "arrays" / "direction-0"
    assert values[:2].tobytes() not in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_short_array_needs_no_file(array_store, tmp_path):
    kept = array_store.put("scores-0", np.ones(5))
    assert isinstance(kept, str)
    assert array_store.get(kept)().tolist() == [1.0] * 5
    assert not (tmp_path / "arrays").exists()


def changed(at: int, path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


def cut(size: int, path: Path) -> None:
    path.write_bytes(path.read_bytes()[:size])


def swapped(path: Path) -> None:
    path.with_name("scores-1").rename(path)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "missing": Path.unlink,
    "empty": partial(cut, 0),
    "cut": partial(cut, -3),
    "cut between records": partial(cut, -(4 + 7 * 8 + 16)),
    "altered": partial(changed, 1000),
    "altered at the end": partial(changed, -1),
    "another's": swapped,
    "under another key": lambda path: None,
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_file_that_is_not_what_it_was_is_refused_by_its_name(array_store, tmp_path, name):
    kept = put(array_store)
    put(array_store, "scores-1", 9.5)
    path = tmp_path / "arrays" / "scores-0"
    DAMAGE[name](path)
    with refused(StateError) as caught:
        EncryptedArrayStore(path.parent, bytes(32) if "key" in name else KEY).get(kept)()
    assert caught.value.where == str(path)


def test_what_no_checkpoint_names_is_swept(array_store, tmp_path):
    """A file of a checkpoint is there until the next checkpoint is: a stop may come between."""
    array_store.sweep()
    first = put(array_store, "direction-0")
    array_store.sweep()
    put(array_store, "direction-1")
    files = {path.name for path in (tmp_path / "arrays").iterdir()}
    assert files == {"direction-0", "direction-1"}
    # Killed before the second checkpoint was written: the first one is what counts.
    again = EncryptedArrayStore(tmp_path / "arrays", KEY)
    load = again.get(first)
    again.sweep()
    assert [path.name for path in (tmp_path / "arrays").iterdir()] == ["direction-0"]
    assert load()[0] == 0.5
    again.clear()
    assert not (tmp_path / "arrays").exists()


# --- in a training --------------------------------------------------------------------------------


SEALED: dict[str, Any] = {**NEWTON, "mechanism": "sealed"}
OFTEN = {"checkpoint-iterations": 2}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tables(tmp_path)
    set_up(tmp_path, **SEALED, state=OFTEN)
    return tmp_path


@pytest.fixture
def long_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every array counts as long: in files of the state folder, and mapped while it is used."""
    monkeypatch.setattr(module_of(EncryptedArrayStore), "LEAST_BYTES", 1)
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
TOLD = {"reveal": True, "reveal-epsilon": 4.0}
STOPS: list[Any] = [
    pytest.param({}, 11, named("direction", "opened", "scores"), marks=pytest.mark.slow),
    pytest.param(
        {"evaluate": "epoch"},
        14,
        named("direction", "held-out", "opened", "scores"),
        marks=pytest.mark.slow,
    ),
    # What the first checkpoint named is removed when the second one is on the disk.
    (TOLD, 11, named("direction", "scores", passes=(0, 2))),
]


@pytest.mark.usefixtures("long_arrays")
@pytest.mark.parametrize(("agreed", "event", "files"), STOPS)
def test_from_files_a_search_goes_on_to_the_same_weights(folder, agreed, event, files):
    set_up(folder, **SEALED, **agreed, state=OFTEN)
    assert stopped(folder, event) == files
    run_both(folder, act=record(folder)).records  # noqa: B018 - raises where a side failed
    assert model_numbers(folder) == numbers_in_one_process(folder)[0]
    assert not (folder / "bob-state" / "arrays").exists()


@pytest.mark.usefixtures("long_arrays")
# Before there was a checkpoint the training begins anew; after one it resumes from it.
@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_stop_between_the_files_and_their_checkpoint_loses_nothing(folder, monkeypatch, count):
    checkpoint, bobs = Journal.checkpoint, []

    def pulled(self: Journal, *point: Any) -> None:
        if (folder / "bob-state" / "arrays").exists():
            bobs.append(point)
            if len(bobs) == count:
                raise Pulled
        checkpoint(self, *point)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "checkpoint", pulled)
        ends = run_both(folder, act=record(folder))
    assert Pulled in (type(ends.alice), type(ends.bob))
    run_both(folder, act=record(folder)).records  # noqa: B018 - raises where a side failed
    assert model_numbers(folder) == numbers_in_one_process(folder)[0]


@pytest.mark.usefixtures("long_arrays")
def test_a_file_that_is_lost_ends_the_training(folder):
    stopped(folder, 11)
    lost = folder / "bob-state" / "arrays" / "scores-1"
    lost.unlink()
    with refused(StateError) as caught:
        alone(folder, "bob").run()
    assert caught.value.where == str(lost)
