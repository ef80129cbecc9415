"""What a party needs is the core; whatever needs more names the extra that brings it."""

from __future__ import annotations

import json

import pytest
from ops.tests.tampering import Scene

from taciturn_ops.doctor.machine import check_extras
from tests.repository.test_schema import problems
from tests.test_extras import command, core_alone


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("line", "package", "extra"),
    [
        ("train --dataset breast-cancer", "scikit-learn", "audit"),
        ("check --columns 4", "scipy", "audit"),
        ("audit --data examples/loans.csv --id customer --label default", "scipy", "audit"),
        (
            "train --data examples/loans.csv --id customer --label default --engine dask",
            "distributed",
            "cluster",
        ),
    ],
)
def test_what_needs_an_extra_names_it(line, package, extra):
    done = command(line)
    assert done.returncode == 10
    assert package in done.stderr
    assert f"'.[{extra}]'" in done.stderr


@pytest.mark.parametrize("role", ["alice", "bob"])
def test_a_review_states_what_is_exposed_without_running_an_attack(tmp_path, role):
    scene = Scene(tmp_path / "both")
    (scene.folder / "agreement.toml").write_text(scene.text)
    files = [str(scene.folder / name) for name in ("agreement.toml", f"{role}.toml")]
    program = "from taciturn.__main__ import main\nmain()"
    done = core_alone(program, "agreement", "review", *files, "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert problems(record, "review") == []
    assert "check" not in record
    assert record["price"]["learns"]["columns"]
    assert ("columns" in record) == (role == "alice")
    if role == "alice":
        shown = core_alone(program, "agreement", "review", *files)
        assert shown.returncode == 0, shown.stderr


def test_the_doctor_names_what_an_extra_lacks():
    (line,) = check_extras({"odd": {"no-such-package": "1"}})
    assert "no-such-package" in line.summary
    assert "[odd]" in line.way_out
