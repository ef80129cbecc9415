from __future__ import annotations

import os
from pathlib import Path

import pytest

from taciturn.errors import OutputError
from taciturn.files import private_file, require_writable, write_private, write_text
from tests.expected import refused


def test_trying_leaves_nothing_behind(tmp_path):
    require_writable(None, tmp_path / "a.html", tmp_path / "b.md")
    assert list(tmp_path.iterdir()) == []


def test_trying_does_not_touch_what_is_there(tmp_path):
    there = tmp_path / "a.html"
    there.write_text("kept")
    before = there.stat()
    require_writable(there)
    assert there.read_text() == "kept"
    assert there.stat().st_mtime_ns == before.st_mtime_ns


def test_a_link_to_a_file_that_is_not_there_yet_is_followed(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "later")
    require_writable(link)
    assert [path.name for path in tmp_path.iterdir()] == ["link"]
    write_text(link, "words")
    assert (tmp_path / "later").read_text() == "words"


def test_devices_and_pipes_are_fine(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    require_writable(tmp_path / "pipe", Path(os.devnull))


@pytest.mark.parametrize("name", ["", "no/where", "x" * 300, "loop"])
def test_what_cannot_be_written_is_named(tmp_path, name):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OutputError) as raised:
        require_writable(tmp_path / name)
    assert raised.value.where == str(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_only_be_read_is_named(tmp_path):
    there = tmp_path / "a.html"
    there.write_text("kept")
    there.chmod(0o400)
    with refused(OutputError):
        require_writable(there)


def test_two_that_write_a_private_file_at_once_leave_one_of_the_two_whole(tmp_path):
    path = tmp_path / "metrics.json"
    with private_file(path) as stream:
        stream.write(b"first")
        write_private(path, "second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
