"""Result folders: whole or not at all, never over anything, and every fault named by its file."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import shlex
import stat
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from taciturn.__main__ import run
from taciturn.errors import DataError, OutputError
from taciturn.files import to_json
from taciturn.results.folder import (
    MANIFEST,
    RESULT,
    Destination,
    HostFacts,
    Manifest,
    ManifestData,
    ResultFolder,
    digest_of,
    run_folders,
    write_folder,
)
from taciturn.results.runs import Runs
from taciturn.results.serialise import record_of
from tests.expected import refused
from tests.modules import module_of
from tests.report.samples import TRAINING
from tests.system import small_disk

QUICK = "train --dataset breast-cancer --mechanism none --scheme clear --seed 1 --epochs 1"
PLAN = Manifest(
    format=1,
    kind="train",
    private=False,
    command="taciturn train",
    version="0.2.0",
    started="2026-11-17T10:11:12+00:00",
    ended="2026-11-17T10:11:13+00:00",
    seconds=1.0,
    settings={"mechanism": "none", "seed": 7},
    data=ManifestData(
        name="breast-cancer", rows=455, held_out_rows=114, columns={"alice": 30}, digests={}
    ),
    host=HostFacts("3.11.7", "Linux", 2),
    files=(),
)
FILES = {RESULT: to_json(Runs((TRAINING,)).to_dict()).encode()}


def written(path: Path, **changes: Any) -> Path:
    return write_folder(Destination.parse(str(path)), "x", replace(PLAN, **changes), FILES)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_reads_back_as_the_result_that_it_was(tmp_path):
    placed = written(tmp_path / "deep" / "down" / "run")
    assert placed == tmp_path / "deep" / "down" / "run"
    whole = ResultFolder.read(placed)
    assert whole.result == Runs((TRAINING,))
    assert whole.manifest.settings == {"mechanism": "none", "seed": 7}
    assert [one.name for one in whole.manifest.files] == [RESULT]
    assert whole.content(RESULT) == FILES[RESULT]
    assert whole.content("report.html") is None
    assert sorted(entry.name for entry in placed.iterdir()) == [MANIFEST, RESULT]
    # Nothing else is left beside it.
    assert [entry.name for entry in placed.parent.iterdir()] == ["run"]


def test_a_partys_folder_is_its_owners_alone(tmp_path):
    before = os.umask(0o022)
    try:
        private, shared = written(tmp_path / "p", private=True), written(tmp_path / "s")
    finally:
        os.umask(before)
    assert mode(private) == 0o700
    assert {mode(entry) for entry in private.iterdir()} == {0o600}
    assert mode(shared) == 0o755
    assert {mode(entry) for entry in shared.iterdir()} == {0o644}


# --- where it goes ----------------------------------------------------------------------------


def test_a_slash_or_a_folder_of_runs_gets_a_new_folder_in_it(tmp_path):
    first = written(Path(f"{tmp_path / 'runs'}/new"))
    second = Destination.parse(str(tmp_path / "runs"))
    third = Destination.parse(f"{tmp_path / 'elsewhere'}/")
    assert (first.name, second.within, third.within) == ("new", True, True)
    taken = write_folder(second, "x", PLAN, FILES)
    again = write_folder(second, "x", PLAN, FILES)
    assert (taken.name, again.name) == ("x", "x-2")
    assert [entry.name for entry in run_folders(tmp_path / "runs")] == ["new", "x", "x-2"]


def test_an_empty_folder_is_filled_and_a_full_one_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    assert written(tmp_path / "empty") == tmp_path / "empty"
    for taken in ("empty", "other"):
        (tmp_path / taken).mkdir(exist_ok=True)
        (tmp_path / taken / "note.txt").write_text("mine")
        with refused(OutputError, names=tmp_path / taken):
            Destination.parse(str(tmp_path / taken))
    assert (tmp_path / "other" / "note.txt").read_text() == "mine"


def test_what_came_meanwhile_is_not_written_over(tmp_path):
    place = Destination.parse(str(tmp_path / "run"))
    written(tmp_path / "run", command="first")
    with refused(OutputError, names=tmp_path / "run"):
        write_folder(place, "x", PLAN, FILES)
    assert ResultFolder.read(tmp_path / "run").manifest.command == "first"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for text in ("file", "file/run"):
        with refused(OutputError) as raised:
            Destination.parse(str(tmp_path / text))
        assert raised.value.where == str(tmp_path / "file")


def test_a_name_is_plain_whatever_the_data_are_called():
    when = datetime(2026, 11, 17, 10, 11, 12, tzinfo=UTC)
    name = Destination(Path(), True).name(when, "audit", "../Käse & Co.", "add")
    assert name == "2026-11-17T101112-audit-k-se-co-add"


# --- a stop in the middle ---------------------------------------------------------------------

STOPPED = """
import json, os, sys
from taciturn.results import folder
from taciturn.results.folder import Manifest
from taciturn.results.reading import read

def stop(path, content, **options):
    if path.name == "manifest.json":
        os._exit(9)
    write(path, content, **options)

write, folder._write = folder._write, stop
plan = read(Manifest, json.loads(sys.argv[2]))
folder.write_folder(folder.Destination.parse(sys.argv[1]), "x", plan, {"result.json": b"{}"})
"""


@pytest.mark.slow  # a second, and others show the same on less
def test_a_process_that_dies_leaves_nothing_that_looks_whole(tmp_path):
    place = tmp_path / "runs"
    line = [sys.executable, "-c", STOPPED, f"{place}/", json.dumps(record_of(PLAN))]
    assert subprocess.run(line, check=False).returncode == 9
    (rest,) = place.iterdir()
    assert rest.name.startswith(".x.")
    assert list(run_folders(place)) == []
    # And does not stand in the way.
    assert written(Path(f"{place}/x")).name == "x"


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path):
    with small_disk(tmp_path, 16 << 10) as place:
        with refused(OutputError, names=os.strerror(errno.ENOSPC)) as raised:
            write_folder(
                Destination.parse(f"{place}/run"),
                "x",
                PLAN,
                {**FILES, "report.html": bytes(1 << 20)},
            )
        assert str(place / "run") in raised.value.where
        assert list(place.iterdir()) == []


# --- reading ----------------------------------------------------------------------------------


def changed(file: str, change: Any) -> Any:
    def apply(folder: Path) -> None:
        path = folder / file
        path.write_bytes(change(path.read_bytes()))

    return apply


def resigned(**changes: Any) -> Any:
    """A manifest that somebody changed with its digest."""

    def change(content: bytes) -> bytes:
        record = {**json.loads(content), **changes}
        return json.dumps({**record, "digest": digest_of(record)}).encode()

    return changed(MANIFEST, change)


def nested(content: bytes) -> bytes:
    """Settings within settings, as deep as a parser reads."""
    depth = 400
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    return content.replace(b'"seed": 7', b'"seed": ' + deep)


def as_pipe(folder: Path) -> None:
    (folder / RESULT).unlink()
    os.mkfifo(folder / RESULT)


def listed(name: str) -> Any:
    empty = hashlib.sha256(b"").hexdigest()
    return resigned(files=[{"name": name, "size": 0, "sha256": empty}])


@pytest.mark.parametrize(
    ("harm", "file"),
    [
        (changed(RESULT, lambda text: text[:100]), RESULT),
        (changed(RESULT, lambda text: text.replace(b"455", b"456")), RESULT),
        (lambda folder: (folder / RESULT).unlink(), RESULT),
        (changed(MANIFEST, lambda text: text[:100]), MANIFEST),
        (changed(MANIFEST, lambda text: text.replace(b'"seed": 7', b'"seed": 8')), MANIFEST),
        (changed(MANIFEST, lambda _: b"[]"), MANIFEST),
        (changed(MANIFEST, lambda _: b'{"format": true}'), MANIFEST),
        (changed(MANIFEST, lambda _: b"[" * 100_000), MANIFEST),
        (changed(MANIFEST, nested), MANIFEST),
        (as_pipe, RESULT),
        (resigned(format=2), MANIFEST),
        (resigned(more=1), MANIFEST),
        (resigned(files=[]), MANIFEST),
        (listed("../x"), MANIFEST),
        (listed(".."), MANIFEST),
        (listed(MANIFEST), MANIFEST),
        (lambda folder: (folder / MANIFEST).unlink(), ""),
    ],
)
def test_what_is_not_as_it_was_written_is_named_by_its_file(tmp_path, harm, file):
    placed = written(tmp_path / "run")
    harm(placed)
    with pytest.raises(DataError) as raised:
        ResultFolder.read(placed)
    assert raised.value.where == str(placed / file)
    assert raised.value.hint


def test_a_result_of_no_known_kind_is_refused_at_its_file(tmp_path):
    files = {RESULT: b'{"what": 1}'}
    placed = write_folder(Destination.parse(str(tmp_path / "run")), "x", PLAN, files)
    with pytest.raises(DataError) as raised:
        ResultFolder.read(placed)
    assert raised.value.where == str(placed / RESULT)


def test_what_is_too_large_is_not_read(tmp_path, monkeypatch):
    placed = written(tmp_path / "run")
    monkeypatch.setattr(module_of(Destination), "MOST_FILE_BYTES", 1000)
    with pytest.raises(DataError, match="1,000"):
        ResultFolder.read(placed)


# --- commands ---------------------------------------------------------------------------------


def test_a_folder_that_is_taken_is_refused_before_the_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    assert run([*shlex.split(QUICK), "--out", "full"]) == 74
    out, err = capsys.readouterr()
    assert out == ""
    assert "full" in err
    # Not even the forecast.
    assert "iterations" not in err


class Gone(io.StringIO):
    """What a reader leaves that has seen enough."""

    def write(self, text: str) -> int:
        raise BrokenPipeError

    def fileno(self) -> int:
        return os.open(os.devnull, os.O_WRONLY)


def test_a_reader_that_has_gone_does_not_take_the_result_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Gone())
    assert run([*shlex.split(QUICK), "--json", "--out", str(tmp_path / "run")]) == 0
    assert ResultFolder.read(tmp_path / "run").manifest.kind == "train"


def test_a_full_disk_does_not_keep_the_result_from_the_screen(tmp_path, capsys):
    with small_disk(tmp_path, 4 << 10) as place:
        assert run([*shlex.split(QUICK), "--json", "--out", f"{place}/run"]) == 74
        out, err = capsys.readouterr()
        assert json.loads(out)["rows_train"] == 455
        assert os.strerror(errno.ENOSPC) in err


def test_own_data_have_a_digest_and_no_value(tmp_path, monkeypatch, capsys):
    table = Path(__file__).resolve().parents[2] / "examples" / "loans.csv"
    line = (
        f"train --data {table} --id customer --label default --mechanism none --scheme clear "
        "--epochs 1 --seed 1 --out"
    )
    assert run([*shlex.split(line), str(tmp_path / "run"), "--json"]) == 0
    capsys.readouterr()
    made = ResultFolder.read(tmp_path / "run").manifest
    assert made.data.name == "loans"
    assert made.data.digests == {"file": hashlib.sha256(table.read_bytes()).hexdigest()}
