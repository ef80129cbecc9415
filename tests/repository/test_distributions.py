"""The five distributions: one version, and all of them installed from wheels."""

from __future__ import annotations

import ast
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from taciturn import extensions, extras
from taciturn.__main__ import dispatch
from taciturn.cli import app
from taciturn.errors import ConfigError
from taciturn.job_registry import registry
from taciturn.jobs.train.dry_run import DryRunJob
from taciturn.party.config import PartyConfig
from taciturn.party.observers import party_observers, remarks_after
from tests.party.sides import write_config
from tests.repository.test_docs import README, ROOT, commands
from tests.repository.test_rooms import imports

FOLDERS = {"taciturn": ROOT} | {
    name: ROOT / folder for name, folder in extras.DISTRIBUTIONS.items()
}


def project(folder: Path) -> dict[str, Any]:
    with (folder / "pyproject.toml").open("rb") as stream:
        declared: dict[str, Any] = tomllib.load(stream)["project"]
    return declared


def test_versions_move_together():
    assert {project(folder)["name"] for folder in FOLDERS.values()} == set(FOLDERS)
    assert len({project(folder)["version"] for folder in FOLDERS.values()}) == 1


def test_every_command_that_is_not_the_cores_is_where_the_overview_says():
    homes = {name: entry.distribution for name, entry in app.ENTRIES.items() if entry.distribution}
    for group, below in app.SUBCOMMANDS.items():
        homes |= {f"{group}.{name}": distribution for name, distribution in below.items()}
    for name, distribution in homes.items():
        assert name in project(FOLDERS[distribution])["entry-points"][extensions.COMMANDS]


@pytest.fixture
def core_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where no other distribution is installed; the apps are built anew."""
    # The core's own jobs stay: their registry is built once.
    registry()
    monkeypatch.setattr(extensions, "installed", lambda group: ())
    monkeypatch.setattr("taciturn.party.observers.installed", lambda group: ())


def absent_command(*words: str) -> ConfigError:
    """The error of a command where no other distribution is installed."""
    command = get_command(app.whole_app.__wrapped__())
    with pytest.raises(ConfigError) as raised:
        command([*words, "--some-option", "x"], prog_name="taciturn", standalone_mode=False)
    return raised.value


@pytest.mark.usefixtures("core_alone")
@pytest.mark.parametrize(
    ("name", "distribution"),
    [(name, entry.distribution) for name, entry in app.ENTRIES.items() if entry.distribution],
)
def test_a_command_of_an_absent_distribution_names_it(name, distribution):
    problem = absent_command(name)
    assert f"command {name} " in problem.message
    assert distribution in problem.message
    folder = extras.DISTRIBUTIONS[distribution]
    assert f"./{folder}" in (problem.hint or "")
    assert f"{distribution.replace('-', '_')}-*.whl" in (problem.hint or "")


@pytest.mark.usefixtures("core_alone")
def test_a_live_page_and_a_metrics_file_name_the_distribution(tmp_path, monkeypatch):
    from taciturn.cli.dashboard import watched_bar

    with pytest.raises(ConfigError) as raised, watched_bar("train", watch=True, port=None):
        pass
    assert extras.OPS in raised.value.message
    named = PartyConfig.read(write_config(tmp_path, "bob", output={"metrics": "m.json"}))
    with pytest.raises(ConfigError) as raised:
        party_observers(named)
    assert extras.OPS in raised.value.message
    with pytest.raises(ConfigError) as raised:
        DryRunJob().check_files(named)
    assert extras.OPS in raised.value.message


@pytest.mark.usefixtures("core_alone")
def test_an_absent_model_report_is_named_by_its_option(tmp_path):
    table, page = str(ROOT / "examples" / "loans.csv"), str(tmp_path / "model.html")
    with pytest.raises(ConfigError) as raised:
        dispatch(["train", "--data", table, "--model-report", page])
    assert "--model-report" in raised.value.message
    assert extras.RISK in raised.value.message


@pytest.mark.usefixtures("core_alone")
def test_without_the_distribution_of_the_page_a_training_ends_with_a_remark(tmp_path):
    bob = write_config(tmp_path, "bob", output={"report": None, "metrics": None})
    (remark,) = remarks_after(PartyConfig.read(bob), bob)
    assert extras.RISK in remark
    alice = write_config(tmp_path, "alice", output={"metrics": None})
    assert remarks_after(PartyConfig.read(alice), alice) == []


def test_other_distributions_import_modules_of_the_core_and_no_private_name():
    wrong = []
    for name, folder in FOLDERS.items():
        for path in (folder / "src").rglob("*.py") if name != "taciturn" else ():
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == (
                    "taciturn"
                ):
                    private = [alias.name for alias in node.names if alias.name.startswith("_")]
                    wrong += [f"{path}: {name}" for name in private if name != "__version__"]
    assert wrong == []


def test_the_cores_tests_import_no_other_distribution():
    others = {name.replace("-", "_") for name in extras.DISTRIBUTIONS}
    others |= {f"{folder}.tests" for folder in extras.DISTRIBUTIONS.values()}
    others.add("tests.repository")
    wrong = [
        f"{path.relative_to(ROOT)}: {module}"
        for path in (ROOT / "tests").rglob("*.py")
        if "repository" not in path.parts
        for module in imports(path)
        if any(f"{module}.".startswith(f"{other}.") for other in others)
    ]
    assert wrong == []


@pytest.mark.slow  # makes an environment: minutes
def test_wheels_of_all_five_run_the_commands_of_the_readme(tmp_path):
    def pip(python: str | Path, *words: str | Path) -> None:
        subprocess.run(
            [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *words],
            cwd=ROOT,
            check=True,
        )

    wheels, home = tmp_path / "wheels", tmp_path / "venv"
    # Of copies: setuptools leaves a folder beside the sources that it builds from.
    copies = []
    for name, folder in FOLDERS.items():
        copies.append(tmp_path / name)
        shutil.copytree(
            folder / "src", copies[-1] / "src", ignore=shutil.ignore_patterns("*.egg-info")
        )
        for file in ("pyproject.toml", "README.md", "LICENSE"):
            if (folder / file).exists():
                shutil.copy(folder / file, copies[-1])
    pip(sys.executable, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels,
        *copies)  # fmt: skip
    built = sorted(wheels.glob("*.whl"))
    assert len(built) == len(FOLDERS)
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    core = next(wheel for wheel in built if wheel.name.startswith("taciturn-"))
    rest = [wheel for wheel in built if wheel != core]
    pip(home / "bin/python", "install", "--constraint", "constraints.txt", f"{core}[audit]", *rest)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    lines = [line for line in commands(README) if line.startswith("taciturn ")]
    assert len(lines) >= 9
    for line in lines:
        done = subprocess.run(
            [home / "bin" / "taciturn", *shlex.split(line)[1:]],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{line}: {done.stderr}"
        assert done.stdout, line
