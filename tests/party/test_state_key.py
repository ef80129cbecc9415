"""The state key: made whole or not at all, and never in the place of another one."""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from taciturn.errors import OutputError, StateError
from taciturn.party.config import PartyConfig
from taciturn.party.state_store import state_key
from tests.expected import refused
from tests.party.sides import write_config


@contextmanager
def no_room() -> Iterator[None]:
    """No file can grow, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def config(tmp_path: Path) -> PartyConfig:
    return PartyConfig.read(write_config(tmp_path, "bob", state={"key": "keys/state.key"}))


def test_a_full_disk_leaves_no_part_of_a_key(config, tmp_path):
    with refused(OutputError, names="state.key"), no_room():
        state_key(config)
    assert not [*(tmp_path / "keys").iterdir()]
    key, _ = state_key(config)
    assert state_key(config)[0] == key
    path = tmp_path / "keys/state.key"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [*path.parent.iterdir()] == [path]


def test_processes_that_make_a_key_at_once_have_the_same(config):
    start, keys = threading.Barrier(8), []

    def make() -> None:
        start.wait()
        keys.append(state_key(config)[0])

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 8
    assert len({*keys}) == 1


def test_an_empty_key_may_be_deleted_where_no_session_would_be_lost(config, tmp_path):
    path, journal = tmp_path / "keys/state.key", tmp_path / "bob-state/journal"
    path.parent.mkdir()
    path.touch(mode=0o600)
    with pytest.raises(StateError) as without:
        state_key(config)
    journal.parent.mkdir()
    journal.write_bytes(b"sealed")
    with pytest.raises(StateError) as beside:
        state_key(config)
    assert without.value.hint != beside.value.hint
