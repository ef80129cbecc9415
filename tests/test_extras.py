"""What a party needs is the core; whatever needs more names the extra that brings it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from taciturn.doctor.packages import look_at_extras
from taciturn.extras import EXTRAS, MODULES

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


def core_alone(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    names = {MODULES.get(package, package) for extra in EXTRAS.values() for package in extra}
    code = BLOCKED.format(names=names) + program
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def command(line: str) -> subprocess.CompletedProcess[str]:
    return core_alone("from taciturn.__main__ import main\nmain()", *line.split())


def test_the_extras_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra, packages in EXTRAS.items():
        lines = project["optional-dependencies"][extra]
        declared = dict(re.findall(r"^([\w-]+)>=([\d.]+)$", "\n".join(lines), re.MULTILINE))
        assert len(declared) == len(lines)
        assert declared == dict(packages)


def test_own_data_trains_with_the_core_alone():
    done = command(
        "train --data examples/loans.csv --id customer --label default --mechanism add "
        "--epsilon 1 --epochs 1 --seed 1 --json"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("line", "package"),
    [
        ("train --dataset breast-cancer", "scikit-learn"),
        ("check --columns 4", "scipy"),
        ("audit --data examples/loans.csv --id customer --label default", "scipy"),
    ],
)
def test_what_needs_an_extra_names_it(line, package):
    done = command(line)
    assert done.returncode == 10
    assert f"the package {package} is not installed" in done.stderr
    assert "pip install '.[audit]'" in done.stderr


@pytest.mark.parametrize("use", ["check(columns=4)", "VerticalLogisticRegression"])
def test_python_is_told_the_same(use):
    done = core_alone(f"import taciturn\ntaciturn.{use}")
    assert "ConfigError: the package" in done.stderr
    assert "pip install '.[audit]'" in done.stderr


def test_the_doctor_names_what_an_extra_lacks():
    (line,) = look_at_extras({"odd": {"no-such-package": "1"}})
    assert "no-such-package is not installed" in line.summary
    assert "[odd]" in line.way_out
