"""Every command that trains or audits leaves a folder that reads back as what it printed."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from taciturn.__main__ import run
from taciturn.results.figures import parts_of
from taciturn.results.folder import REPORT, ResultFolder
from taciturn_audit.cli import demo
from tests.modules import module_of
from tests.repository.bad_input import session_files
from tests.seldom import seldom

SMALL = "--dataset breast-cancer --scheme clear --seed 1 --epochs 1"
# The command, the kind of its result, and whether it is a party's.
COMMANDS = {
    "audit": (f"audit {SMALL} --mechanism add --epsilon 1 --seat alice --no-canary", False),
    "check": (f"check {SMALL} --mechanism none", False),
    "check-columns": ("check --columns 4 --mechanism none --batch-size 8 --epochs 1", False),
    "check-table": ("check --data alice.csv --id id --mechanism none", False),
    "check-party": ("check bob.toml --columns 3", True),
    "compare": (f"compare {SMALL} --mechanisms none", False),
    "audit-transcript": ("audit --transcript run", False),
    "audit-guessed": ("audit --transcript alice.transcript --party alice.toml", True),
    "audit-judged": ("audit --guesses g.json --truth bob.toml", True),
    "audit-bob": ("audit --transcript bob.transcript --party bob.toml --no-canary", True),
    "demo": ("demo", False),
}
KINDS = {"audit-guessed": "audit-session", "audit-judged": "audit-session"}
KINDS |= {"audit-bob": "audit-session", "audit-transcript": "audit"}
PAGES = ("audit", "audit-session", "compare", "demo")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both sides' files and recordings of a small real session, and a simulated one."""
    folder = tmp_path_factory.mktemp("session")
    for name, content in session_files().items():
        (folder / name).write_bytes(content)
    # The key that it was made under is another process's.
    for store in folder.glob("bob.consent.sqlite*"):
        store.unlink()
    return folder


# Others test what these commands compute: that they keep it is the same few lines for all.
@pytest.mark.parametrize("name", seldom(COMMANDS, always=["audit", "compare"]))
def test_a_command_leaves_what_it_prints(name, request, tmp_path, monkeypatch, capsys):
    line, private = COMMANDS[name]
    words = shlex.split(line)
    if not line.startswith(("audit --dataset", "compare", "demo", "check --columns")):
        monkeypatch.chdir(request.getfixturevalue("files"))
    else:
        monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["taciturn", *words])
    # Two of its audits, and short ones.
    short = {"mechanism": "none", "solver": "sgd", "epochs": 1}
    monkeypatch.setattr(module_of(demo), "DEMO", (short,) * 2)
    assert run([*words, "--json", "--out", str(tmp_path / "run")]) == 0, capsys.readouterr().err
    out, err = capsys.readouterr()
    assert str(tmp_path / "run") in err
    whole = ResultFolder.read(tmp_path / "run")
    assert whole.record == json.loads(out)
    assert whole.result.to_dict() == whole.record
    made = whole.manifest
    kind = KINDS.get(name, name.partition("-")[0])
    assert (made.kind, made.private) == (kind, private)
    assert made.command == f"taciturn {line}"
    assert made.settings
    assert (whole.content(REPORT) is not None) == (kind in PAGES)
    assert parts_of(whole)
