"""The rooms: who may import whom, and what may stand in a file at all."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import taciturn

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "taciturn"
HOMES = tuple(ROOT / folder / "src" for folder in (".", "audit", "ops", "paper", "risk"))
FILES = sorted(path for home in HOMES for path in home.rglob("*.py"))
FOLDERS = sorted({path.parent for path in FILES})


def name(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def test_every_room_says_what_it_is():
    for folder in FOLDERS:
        opening = folder / "__init__.py"
        assert opening.is_file(), name(folder)
        assert ast.get_docstring(ast.parse(opening.read_text(encoding="utf-8"))), name(folder)


def imports(path: Path) -> set[str]:
    """Every module that a file imports, however it does so."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return modules


FORBIDDEN = {"pickle", "marshal", "random", "secrets", "shelve", "dill", "cloudpickle"}


@pytest.mark.slow  # some seconds
def test_no_file_imports_what_runs_received_bytes_or_draws_on_its_own():
    wrong = []
    for path in FILES:
        modules = imports(path)
        roots = {module.split(".")[0] for module in modules}
        wrong += [name(path)] * bool(roots & FORBIDDEN or "numpy.random" in modules)
    assert wrong == []


def test_only_rng_asks_the_operating_system_for_randomness():
    asking = [path for path in FILES if "urandom" in path.read_text(encoding="utf-8")]
    assert asking == [SOURCE / "rng.py"]


def test_the_public_names_are_pinned():
    assert taciturn.__all__ == [
        "AuditResult",
        "CheckResult",
        "Comparison",
        "FeatureTable",
        "LabelTable",
        "RunList",
        "SessionAudit",
        "SimulatedStudy",
        "TaciturnError",
        "TrainResult",
        "VerticalGammaRegressor",
        "VerticalLogisticRegression",
        "VerticalPoissonRegressor",
        "VerticalRidge",
        "WoeAudit",
        "WoeResult",
        "__version__",
        "align",
        "audit",
        "audit_session",
        "audit_woe",
        "check",
        "compare",
        "epsilon_lower_bound",
        "estimate",
        "runs",
        "study",
        "train",
        "woe",
    ]
    assert all(hasattr(taciturn, name) for name in taciturn.__all__)


def private_imports(path: Path) -> list[str]:
    """Imports of private names of ours, but for those that say why above their line."""
    text = path.read_text(encoding="utf-8")
    lines, wrong = text.splitlines(), []
    for node in ast.walk(ast.parse(text)):
        if not (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("taciturn")):
            continue
        private = [alias.name for alias in node.names if alias.name.startswith("_")]
        explained = lines[node.lineno - 2].lstrip().startswith("# private:")
        if set(private) - {"__version__"} and not explained:
            wrong.append(f"{name(path)}:{node.lineno}: {', '.join(private)}")
    return wrong


def test_a_test_of_a_private_name_gives_its_reason():
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert [place for path in files for place in private_imports(path)] == []


def test_an_import_of_a_private_name_is_noticed(tmp_path):
    lines = [
        "from taciturn.rng import Entropy",
        "from taciturn.rng import _ByteSource",
        "# private: shown here",
        "from taciturn.rng import _ByteSource",
    ]
    path = tmp_path / "private.py"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert [int(place.split(":")[1]) for place in private_imports(path)] == [2]


def test_a_party_loads_no_attack_no_audit_and_nothing_that_draws():
    """What ``taciturn party`` imports, in a process of its own."""
    program = """
import sys
from taciturn.cli import party_console
from taciturn.jobs.train import command, job
from taciturn.party import config, endpoints
from taciturn.report import terminal, training
rooms = {name.split(".")[1] for name in sys.modules if name.startswith("taciturn.")}
print(sorted(rooms & {"attacks", "column_attacks", "audit", "simulation", "view", "estimator"}))
print(sorted({"matplotlib", "jinja2", "sklearn"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n[]\n"


# Written in parts, so that this file does not hold what it forbids.
REGISTRY = re.compile("index" + "-url")
ABSOLUTE = re.compile(r"(?<![\w./-])/(?:" + "work" + "|home|root|Users" + r")/\w")


def tracked() -> list[Path]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    return [ROOT / path for path in listed.stdout.decode().split("\0") if path]


def test_no_tracked_text_names_a_registry_or_a_place_on_someones_machine():
    wrong = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        wrong += [
            f"{name(path)}:{number}"
            for number, line in enumerate(text.splitlines(), start=1)
            if REGISTRY.search(line) or ABSOLUTE.search(line)
        ]
    assert wrong == []


@pytest.mark.parametrize(
    ("line", "matches"),
    [
        ("/" + "work/main", True),
        ('open("/' + 'home/me/x")', True),
        ("https://example.org/" + "home/x", False),
        ("docs/" + "work/x", False),
        ("pip --extra-" + "index" + "-url=x", True),
    ],
)
def test_the_search_finds_what_it_looks_for(line, matches):
    assert bool(REGISTRY.search(line) or ABSOLUTE.search(line)) is matches
