"""Mapped arrays: what is written is read, memory follows the block, and a full disk has a name."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from taciturn import memmap
from taciturn.crypto.bfv.array_location import ArrayLocation
from taciturn.errors import FileError, OutputError
from taciturn.memmap import Scratch, create, opened, over_blocks, row_blocks
from tests.expected import refused


def mapped_bytes() -> int:
    """What this process has in memory of files."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("RssFile"))
    return int(line.split()[1]) << 10


def test_what_was_written_is_read(tmp_path: Path) -> None:
    array = create(tmp_path / "a", (3, 2), np.float64)
    assert not array.any()
    array[:] = np.arange(6.0).reshape(3, 2)
    again = opened(tmp_path / "a", (3, 2), np.float64)
    assert again.tolist() == array.tolist()
    with pytest.raises(ValueError, match="read-only"):
        again[0, 0] = 1.0


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "tables", least=1)
    scratch.empty("a", (4,), np.int64)
    assert stat.S_IMODE((tmp_path / "tables").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "tables" / "a").stat().st_mode) == 0o600
    scratch.clear()
    assert not (tmp_path / "tables").exists()


def test_a_walk_keeps_one_block_in_memory(tmp_path: Path) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("this system does not tell what is in memory")
    array = create(tmp_path / "a", (1 << 22,), np.float64)
    before, most = mapped_bytes(), 0
    for _, block in row_blocks(array, rows=1 << 18):
        block += 1.0
        most = max(most, mapped_bytes() - before)
    assert 1 << 21 <= most < 1 << 24
    assert array.sum() == 1 << 22


def test_a_file_of_another_size_is_refused(tmp_path: Path) -> None:
    create(tmp_path / "a", (3,), np.float64)
    with refused(FileError, names=(24, 32)):
        opened(tmp_path / "a", (4,), np.float64)
    with refused(FileError, names=tmp_path / "b"):
        opened(tmp_path / "b", (4,), np.float64)


def test_a_full_disk_is_named_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, size: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(memmap, "_reserve", full)
    with refused(OutputError) as problem:
        create(tmp_path / "a", (3,), np.float64)
    assert str(tmp_path / "a") in problem.value.where
    assert not (tmp_path / "a").exists()


def test_small_arrays_stay_in_memory(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "tables")
    assert not isinstance(scratch.empty("a", (10,), np.float64), np.memmap)
    assert not (tmp_path / "tables").exists()
    assert isinstance(Scratch(tmp_path / "t", least=8).empty("a", (1,), np.float64), np.memmap)


def test_blocks_of_rows_come_in_their_order_whatever_the_cores():
    rows = 5 * memmap.BLOCK_ROWS + 3
    places = list(over_blocks(lambda place: place, rows))
    assert [place.start for place in places] == list(range(0, rows, memmap.BLOCK_ROWS))
    assert places[-1].stop == rows
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        list(over_blocks(lambda place: np.ones(1) / (place.start - memmap.BLOCK_ROWS), rows))


def test_an_unnamed_array_leaves_no_name(tmp_path):
    scratch = Scratch(tmp_path / "scratch", least=0)
    first, second = scratch.unnamed((3,), np.float64), scratch.unnamed((3,), np.float64)
    first[:], second[:] = 1.0, 2.0
    assert isinstance(first, np.memmap)
    assert ArrayLocation.from_array(first) is None
    assert list((tmp_path / "scratch").iterdir()) == []
    memmap.drop_pages(first)
    assert first.tolist() == [1.0] * 3
    assert second.tolist() == [2.0] * 3


def test_another_process_opens_a_part_of_an_array_by_its_place(tmp_path: Path) -> None:
    array = create(tmp_path / "a", (4, 6), np.int32)
    array[:] = np.arange(24).reshape(4, 6)
    part = array[1:, 2:5].T
    place = ArrayLocation.from_array(part)
    assert place is not None
    again = ArrayLocation.from_json(place.to_json())
    assert again == place
    assert again.opened().tolist() == part.tolist()
    with pytest.raises(ValueError, match="read-only"):
        again.opened()[0, 0] = 1
    assert ArrayLocation.from_array(part.copy()) is None
    (tmp_path / "a").write_bytes(bytes(10))
    with refused(FileError):
        again.opened()
