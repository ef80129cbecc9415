"""Counts that are kept: no limit is exceeded, by whomever it is asked, after however many stops."""

from __future__ import annotations

import contextlib
import stat
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from taciturn.data import RowIds
from taciturn.deploy import tags_of
from taciturn.deploy.serving import RowLimits, Usage, rows_ever
from taciturn.errors import FileError, OutputError
from tests.expected import refused
from tests.modules import module_of
from tests.system import small_disk

IDS = st.lists(st.sampled_from("abcdef"), unique=True, max_size=6)


@given(asks=st.lists(IDS, max_size=8), limit=st.integers(1, 4))
def test_a_row_is_counted_up_to_its_limit_and_not_once_more(asks, limit):
    with tempfile.TemporaryDirectory() as folder:
        counts: Counter[str] = Counter()
        for ids in asks:
            # Opened anew each time: nothing is in memory alone.
            usage = Usage(Path(folder) / "counts.sqlite")
            allowed = usage.spend("bob", ids, RowLimits(ever=limit))
            usage.close()
            assert allowed == [counts[name] < limit for name in ids]
            counts.update(name for name, may in zip(ids, allowed, strict=True) if may)
        assert all(count <= limit for count in counts.values())


@given(asks=st.lists(st.integers(0, 5), max_size=8), limit=st.integers(1, 9))
def test_a_day_is_counted_up_to_its_limit(asks, limit):
    with tempfile.TemporaryDirectory() as folder:
        usage, left = Usage(Path(folder) / "counts.sqlite"), limit
        for rows in asks:
            assert usage.admit("crm", rows, limit) == min(rows, left)
            left -= min(rows, left)
        assert usage.today("crm") == limit - left
        assert usage.today("erp") == 0
        # All or none of a request.
        assert usage.admit("crm", left + 1, limit, whole=True) == 0
        assert usage.today("crm") == limit - left
        usage.close()


def test_another_day_begins_at_zero_and_what_ever_was_stays(tmp_path, monkeypatch):
    usage = Usage(tmp_path / "counts.sqlite")
    days = RowLimits(per_day=1, ever=2)
    monkeypatch.setattr(module_of(RowLimits), "_today", lambda: "2026-01-01")
    assert usage.spend("", ["a"], days) == [True]
    assert usage.spend("", ["a"], days) == [False]
    monkeypatch.setattr(module_of(RowLimits), "_today", lambda: "2026-01-02")
    assert usage.spend("", ["a"], days) == [True]
    monkeypatch.setattr(module_of(RowLimits), "_today", lambda: "2026-01-03")
    assert usage.spend("", ["a"], days) == [False]


def test_looking_counts_nothing_and_other_ways_count_too(tmp_path):
    usage = Usage(tmp_path / "counts.sqlite")
    limits = RowLimits(ever=2)
    assert usage.spend("bob", ["a"], limits, count=False) == [True]
    assert usage.spend("bob", ["a", "b"], limits, given=lambda: [1, 2]) == [True, False]
    assert usage.spend("bob", ["a"], limits, given=lambda: [1]) == [False]


def test_rows_stand_in_the_file_as_a_score_book_has_them(tmp_path):
    salt = b"0123456789abcdef"
    usage = Usage(tmp_path / "counts.sqlite", salt)
    usage.spend("bob", ["p1", "p2"], RowLimits())
    usage.spend("bob", ["p2"], RowLimits())
    usage.close()
    with rows_ever(tmp_path / "counts.sqlite", "bob") as counts:
        assert counts.codes_of(tags_of(RowIds.of(["p1"]), key=salt)).tolist() == [1]
        assert counts.codes_of(tags_of(RowIds.of(["p2"]), key=salt)).tolist() == [2]
    with rows_ever(tmp_path / "absent.sqlite", "bob") as counts:
        assert len(counts) == 0
    # No id is in it.
    assert b"p1" not in (tmp_path / "counts.sqlite").read_bytes()
    assert stat.S_IMODE((tmp_path / "counts.sqlite").stat().st_mode) == 0o600
    with refused(FileError):
        Usage(tmp_path / "counts.sqlite", b"x" * 16)


def test_threads_and_processes_together_never_exceed_a_limit(tmp_path):
    path = tmp_path / "counts.sqlite"
    usage = Usage(path)
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from taciturn.deploy.serving import RowLimits, Usage\n"
        "usage = Usage(Path(sys.argv[1]))\n"
        "print(sum(usage.spend('bob', ['a'], RowLimits(ever=30))[0] for _ in range(25)))\n"
    )
    others = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    given_here: list[bool] = []

    def ask() -> None:
        for _ in range(10):
            given_here.extend(usage.spend("bob", ["a"], RowLimits(ever=30)))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elsewhere = sum(int(other.communicate()[0]) for other in others)
    assert sum(given_here) + elsewhere == 30


def test_what_is_no_such_file_is_refused_by_name(tmp_path):
    path = tmp_path / "counts.sqlite"
    path.write_bytes(b"id,score\n" * 400)
    with refused(FileError, names=path):
        Usage(path)
    with refused(OutputError):
        Usage(tmp_path / "no" / "counts.sqlite")


def test_a_full_disk_counts_nothing_and_says_so(tmp_path):
    with small_disk(tmp_path, 128 << 10) as disk:
        usage = Usage(disk / "counts.sqlite")
        fill(disk / "rest")
        with refused(OutputError):
            usage.spend("bob", [f"p{number}" for number in range(4000)], RowLimits())
        (disk / "rest").unlink()
        assert usage.spend("bob", ["p0"], RowLimits(ever=1)) == [True]
        usage.close()


def fill(path: Path) -> None:
    """Writes until there is no room."""
    with path.open("wb", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            stream.write(bytes(4096))
