"""What a party needs is the core; whatever needs more names the extra that brings it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from taciturn.errors import ConfigError
from taciturn.extras import EXTRAS, MODULES, require_packages
from taciturn.model.share import ModelShare
from tests.party.sides import MECHANISMS
from tests.party.test_loads import furnish
from tests.waiting import HANG

ROOT = Path(__file__).resolve().parents[1]
# A process in which no package of an extra can be imported, as after an install of the core alone.
BLOCKED = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""


def without_extras(program: str) -> list[str]:
    """The command of such a process."""
    names = {MODULES.get(package, package) for extra in EXTRAS.values() for package in extra}
    return [sys.executable, "-c", BLOCKED.format(names=names) + program]


def core_alone(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [*without_extras(program), *arguments]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)


def start_core_alone(program: str, *arguments: str, folder: Path) -> subprocess.Popen[str]:
    line = [*without_extras(program), *arguments]
    return subprocess.Popen(
        line, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def command(line: str) -> subprocess.CompletedProcess[str]:
    return core_alone("from taciturn.__main__ import main\nmain()", *line.split())


def test_the_extras_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra, packages in EXTRAS.items():
        lines = project["optional-dependencies"][extra]
        declared = dict(re.findall(r"^([\w-]+)(?:\[\w+\])?>=([\d.]+)$", "\n".join(lines), re.M))
        assert len(declared) == len(lines)
        assert declared == dict(packages)


def test_a_package_of_an_extra_is_missed_before_the_work(monkeypatch):
    require_packages("scipy", "jinja2")
    monkeypatch.setattr("taciturn.extras.is_installed", lambda package: package != "scipy")
    with pytest.raises(ConfigError) as raised:
        require_packages("jinja2", "scipy")
    assert "scipy" in raised.value.message
    assert "'.[audit]'" in (raised.value.hint or "")


@pytest.mark.slow  # some seconds
def test_own_data_trains_with_the_core_alone():
    done = command(
        "train --data examples/loans.csv --id customer --label default --mechanism add "
        "--epsilon 1 --epochs 1 --seed 1 --json"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow  # some seconds
@pytest.mark.parametrize("use", ["check(columns=4)", "VerticalLogisticRegression"])
def test_python_is_told_the_same(use):
    done = core_alone(f"import taciturn\ntaciturn.{use}")
    assert "ConfigError: " in done.stderr
    assert "'.[audit]'" in done.stderr


PARTY = """
import sys
sys.argv[1:] = ["party", f"{sys.argv[1]}.toml"]
from taciturn.__main__ import main
main()
"""


@pytest.mark.slow  # some seconds
def test_bob_is_told_that_his_total_is_the_plain_sum_where_the_composition_is_missing(tmp_path):
    furnish(tmp_path, MECHANISMS["add"])
    parties = [start_core_alone(PARTY, role, folder=tmp_path) for role in ("alice", "bob")]
    said = [party.communicate(timeout=HANG)[0] for party in parties]
    assert [party.returncode for party in parties] == [0, 0], said
    assert ["dp-accounting" in text for text in said] == [False, True]
    share = ModelShare.load(tmp_path / "bob.model.json")
    assert any("dp-accounting" in note for note in share.notes)
    assert share.ledger["label_epsilon_total_delta"] == share.ledger["label_epsilon_total"]
