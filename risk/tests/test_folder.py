"""Result folders: whole or not at all, never over anything, and every fault named by its file."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

from taciturn.__main__ import run
from taciturn.results.folder import (
    ResultFolder,
    run_folders,
)
from tests.results.test_folder import QUICK


def test_a_command_leaves_what_it_prints(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["taciturn", *shlex.split(QUICK)])
    assert run([*shlex.split(QUICK), "--json", "--out", "runs/"]) == 0
    out, err = capsys.readouterr()
    (placed,) = run_folders(Path("runs"))
    assert placed.name.endswith("-train-breast-cancer-none")
    assert str(placed) in err
    whole = ResultFolder.read(placed)
    assert whole.record == json.loads(out)
    made = whole.manifest
    assert made.command == f"taciturn {QUICK}"
    assert (made.kind, made.private, made.data.name) == ("train", False, "breast-cancer")
    assert (made.data.rows, made.data.held_out_rows) == (455, 114)
    assert made.data.columns == {"alice": 30, "bob": 0}
    # In full: also what was not given.
    assert (made.settings["seed"], made.settings["batch_size"]) == (1, 16)
    assert made.started <= made.ended
