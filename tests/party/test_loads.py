"""A party's process loads what its side of a training needs: what a reviewer has to read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from taciturn.results.folder import ResultFolder, run_folders
from tests.party.sides import MECHANISMS, write_certificates, write_config, write_tables
from tests.seldom import seldom
from tests.system import free_port
from tests.waiting import HANG

# The command as it is, except that it names its modules as it leaves, which it does by os._exit.
COMMAND = """
import json, os, sys
from pathlib import Path
from taciturn.__main__ import main

leave, target = os._exit, Path(sys.argv.pop(1))

def tell(code):
    target.write_text(json.dumps(sorted(sys.modules)))
    leave(code)

os._exit = tell
main()
"""
# Rooms and libraries of which no party needs anything.
NEVER = (
    "taciturn.api",
    "taciturn_audit",
    # Without --watch.
    "taciturn_ops.dashboard",
    "taciturn_paper",
    "taciturn_risk.scorecard.build",
    "taciturn.estimator",
    "taciturn.simulation",
    "taciturn.jobs.train.simulation",
    # Where the engine is local.
    "taciturn.crypto.cluster",
    "dask",
    "distributed",
    "jinja2",
    "matplotlib",
    "pandas",
    "sklearn",
)
# What only whoever pays for releases needs.
PAYING = (
    "taciturn.party.bob_inputs",
    "taciturn.party.consent.label_budget",
    "taciturn.privacy.ledger",
    "dp_accounting",
    "scipy.stats",
)
# What the page at the end is printed with.
PAGE = {
    f"taciturn.report{name}" for name in ("", ".blocks", ".terminal", ".training", ".formatting")
}


def within(modules: set[str], *rooms: str) -> set[str]:
    """Those of the modules that are in these rooms, or are one of them.

    The declarations of all installed jobs are read to find the one that runs, and nothing else of
    another distribution's.
    """
    declared = {name for name in modules if name.endswith(".declaration")}
    homes = {name.rsplit(".", depth)[0] for name in declared for depth in (1, 2)} - {"taciturn"}
    modules = modules - {name for name in declared | homes if not name.startswith("taciturn.")}
    return {name for name in modules if any(f"{name}.".startswith(f"{room}.") for room in rooms)}


def furnish(folder: Path, agreement: dict[str, object]) -> None:
    write_tables(folder, rows=60)
    write_certificates(folder / "certs")
    address = f"127.0.0.1:{free_port()}"
    for role, way in (("alice", "connect"), ("bob", "listen")):
        common = {"epochs": 1, "held-out": 0.3, **agreement}
        page = {"output": {"report": None}} if role == "bob" else {}
        write_config(folder, role, agreement=common, link={way: address}, **page)


def loaded(folder: Path, options: dict[str, list[str]]) -> dict[str, set[str]]:
    """Trains, each side in a process of its own; the modules of each at its end."""
    running = {
        role: subprocess.Popen(
            [sys.executable, "-c", COMMAND, f"{role}.modules", "party", f"{role}.toml", *words],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for role, words in options.items()
    }
    for process in running.values():
        out, _ = process.communicate(timeout=HANG)
        assert process.returncode == 0, out
    return {role: set(json.loads((folder / f"{role}.modules").read_text())) for role in running}


@pytest.mark.parametrize("mechanism", seldom(["sealed", "add"], always=["sealed"]))
def test_a_party_loads_its_own_side_and_nothing_of_an_audit(tmp_path, mechanism):
    furnish(tmp_path, {**MECHANISMS[mechanism], "scheme": "bfv"})
    modules = loaded(
        tmp_path, {"alice": ["--json", "--out", "hers/"], "bob": ["--out", "bobs-run"]}
    )
    for place in (next(run_folders(tmp_path / "hers")), tmp_path / "bobs-run"):
        kept = ResultFolder.read(place)
        assert (kept.manifest.kind, kept.manifest.private) == ("party", True)
        assert {path.stat().st_mode & 0o077 for path in (place, *place.iterdir())} == {0}
        assert kept.manifest.settings["mechanism"] == mechanism
        assert set(kept.manifest.data.digests) == {"file"}
    for role, other in (("alice", "bob"), ("bob", "alice")):
        ours = modules[role]
        # The search finds what is there.
        assert len(within(ours, "taciturn.jobs.train", f"taciturn.protocol.{role}")) > 10
        assert within(ours, *NEVER) == set()
        assert within(ours, f"taciturn.protocol.{other}") == set()
        assert within(ours, "taciturn.crypto.paillier", "gmpy2") == set()
        assert within(ours, "taciturn.privacy.multiplicative") == set()
        assert (
            within(ours, "taciturn.engine.transcript", "taciturn.party.consent.label_flips")
            == set()
        )
        assert within(ours, "taciturn_paper") <= {"taciturn_paper", "taciturn_paper.cli"}
    assert within(modules["alice"], *PAYING) == set()
    assert "taciturn.privacy.ledger" in modules["bob"]
    assert within(modules["alice"], "taciturn.report") == set()
    assert within(modules["bob"], "taciturn.report") <= PAGE
