"""The doctor: what it says of a sound machine and file, and of every way we know to break them."""

from __future__ import annotations

import fcntl
import json
import re
import socket
import sqlite3
import tomllib
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from taciturn.__main__ import run
from taciturn.crypto.clear import ClearScheme
from taciturn.data.ids import RowIds
from taciturn.party.aligned_rows import AlignedRows
from taciturn.party.consent.store import ConsentStore
from taciturn.transport.certs import make_certificates
from taciturn_ops.doctor.machine import (
    NEEDED,
    OLDEST_PYTHON,
    TESTED_PYTHONS,
    check_clock,
    check_datasets,
    check_memory,
    check_packages,
    check_platform,
    check_processor,
    check_python,
    check_scheme,
)
from taciturn_ops.doctor.party import check_party
from taciturn_ops.doctor.result import Finding, Level
from tests.party.sides import write_config, write_tables
from tests.transport.parties import Authority

ROOT = Path(__file__).resolve().parents[3]


def said(findings: list[Finding], area: str, level: Level = Level.PROBLEM) -> str:
    """What is told of an area at a level, with the ways out; all of those have one."""
    matching = [finding for finding in findings if (finding.area, finding.level) == (area, level)]
    assert matching, [(finding.area, finding.level, finding.summary) for finding in findings]
    assert level is Level.OK or all(finding.way_out for finding in matching)
    return "\n".join(f"{finding.summary}\n{finding.way_out}" for finding in matching)


def problems(findings: list[Finding]) -> list[str]:
    return [finding.area for finding in findings if finding.level is Level.PROBLEM]


@pytest.fixture
def bob(tmp_path):
    """A sound folder of Bob's."""
    write_tables(tmp_path)
    make_certificates(tmp_path / "certs", ["alice", "bob"], days=90)
    return write_config(tmp_path, "bob")


MACHINE = {"python", "packages", "platform", "processor", "memory", "clock", "ports", "schemes"}


def test_a_sound_machine_and_file(bob, capsys):
    assert run(["doctor", str(bob), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["problems"] == 0
    assert record["config"] == str(bob)
    areas = [check["area"] for check in record["checks"] if check["level"] == "ok"]
    assert set(areas) >= MACHINE
    assert set("config certificate data agreement state output link".split()) <= set(areas)
    assert record["warnings"] == sum(check["level"] == "warning" for check in record["checks"])
    # A party needs one scheme, and no dataset.
    assert (areas.count("schemes"), areas.count("datasets")) == (1, 0)


def test_a_sound_machine_alone(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TACITURN_DATA", raising=False)
    assert run(["doctor", "--json"]) == 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert {check["area"] for check in checks if check["level"] == "ok"} >= {*MACHINE, "datasets"}
    # Two of the datasets are not here, which is no problem.
    datasets = [check["level"] for check in checks if check["area"] == "datasets"]
    assert datasets.count("warning") == 2


def test_everything_that_is_wrong_with_a_file_is_told_once(bob):
    text = bob.read_text().replace("batch-size = 8", "batchsize = 8")
    text = text.replace("checkpoint-iterations = 5", "checkpoint-iterations = -5")
    text = text.replace('file = "bob.csv"', 'file = "bbo.csv"')
    bob.write_text(f"{text}\n[privcy]\nbudget = 3.0\n")
    faults = [finding for finding in check_party(bob) if finding.level == "problem"]
    assert [finding.area for finding in faults] == ["config"] * 3 + ["data"]
    for named in ("privcy", "checkpoint-iterations", "batchsize", "bbo.csv"):
        assert sum(named in finding.summary for finding in faults) == 1


def test_a_missing_setting_ends_the_list(bob):
    bob.write_text(bob.read_text().replace("id = ", "# id = "))
    faults = check_party(bob)
    assert [finding.area for finding in faults] == ["config"]


@pytest.mark.slow  # some seconds
def test_the_page_fits_a_terminal_and_shows_no_secret(bob, capsys):
    folder = bob.parent
    (folder / "bob.state.key").write_text("ab" * 32)
    (folder / "bob.state.key").chmod(0o644)
    (folder / "certs" / "bob.key").chmod(0o640)
    assert run(["doctor", str(bob)]) == 80
    text = capsys.readouterr().out
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "abab" not in text
    secret = (folder / "certs" / "bob.key").read_text().splitlines()[1]
    assert secret not in text
    assert "p0000" not in text


def test_nothing_is_made_or_changed(bob):
    before = {path: path.stat().st_mtime_ns for path in bob.parent.rglob("*") if path.is_file()}
    check_party(bob)
    after = {path: path.stat().st_mtime_ns for path in bob.parent.rglob("*") if path.is_file()}
    assert after == before


def test_a_file_that_cannot_be_read_is_all_that_is_told_of_it(tmp_path):
    (tmp_path / "bob.toml").write_text('role = "bob"\n')
    for path, named in (
        (tmp_path / "nobody.toml", "nobody.toml"),
        (tmp_path / "bob.toml", "file"),
    ):
        findings = check_party(path)
        assert len(findings) == 1
        assert named in said(findings, "config")


Change: TypeAlias = Callable[[Path], object]


def certificate(**validity: Any) -> Change:
    return lambda folder: Authority.make(folder / "certs").party("bob", **validity)


def configured(**sections: dict[str, object]) -> Change:
    return lambda folder: write_config(folder, "bob", **sections)


def file_text(name: str, change: Callable[[str], str]) -> Change:
    def apply(folder: Path) -> None:
        path = folder / name
        path.write_text(change(path.read_text()))

    return apply


def mode(bits: int) -> Change:
    return lambda folder: (folder / "certs/bob.key").chmod(bits)


def removed(name: str) -> Change:
    return lambda folder: (folder / name).unlink()


def other_key(folder: Path) -> None:
    (folder / "certs/bob.key").write_bytes((folder / "certs/alice.key").read_bytes())


PROBLEMS: list[tuple[str, str, Change]] = [
    ("certificate", "bob.pem", certificate(start=-5, days=-1)),
    ("certificate", "bob.pem", certificate(start=2)),
    ("certificate", "chmod 600", mode(0o644)),
    ("certificate", "chmod 600", mode(0o602)),
    ("certificate", "bob.key", other_key),
    ("certificate", "bob.key", removed("certs/bob.key")),
    ("certificate", "bob.pem", lambda folder: Authority.make(folder / "certs")),
    (
        "certificate",
        "alice",
        file_text("bob.toml", lambda t: t.replace("certs/bob", "certs/alice")),
    ),
    ("data", "who", file_text("bob.csv", lambda text: text.replace("id,", "who,", 1))),
    ("data", "1 of 121", file_text("bob.csv", lambda text: text + text.splitlines()[3] + "\n")),
    ("data", "bob.csv", removed("bob.csv")),
    ("config", "l1", configured(agreement={"mechanism": "sealed", "l1": 0.1})),
    # 192.0.2.0/24 is for documentation: no machine has it.
    ("link", "192.0.2.7:7443", configured(link={"listen": "192.0.2.7:7443"})),
    ("state", "bob-state", lambda folder: (folder / "bob-state").write_text("")),
    ("output", "no/where.json", configured(output={"model": "no/where.json"})),
]


@pytest.mark.parametrize(("area", "named", "change"), PROBLEMS)
def test_a_problem_is_found_in_its_area(area, named, change, bob):
    change(bob.parent)
    assert named in said(check_party(bob), area)


@pytest.mark.parametrize(
    ("area", "named", "change"),
    [
        ("certificate", "CN=bob", certificate(days=3.5)),
        ("certificate", "chmod 600", mode(0o640)),
        ("data", "1 of 120", file_text("bob.csv", lambda text: text.replace("p0007,", "P0007,"))),
    ],
)
def test_a_warning_is_no_problem(area, named, change, bob):
    change(bob.parent)
    findings = check_party(bob)
    assert problems(findings) == []
    assert named in said(findings, area, Level.WARNING)


def test_both_sides_show_the_same_digest_of_their_ids(bob):
    alice = write_config(bob.parent, "alice")
    digests = {
        re.search("ids ([0-9a-f]{16})", said(check_party(path), "data", Level.OK))
        for path in (alice, bob)
    }
    assert len({match and match[1] for match in digests}) == 1


def test_alice_is_told_what_her_training_exposes(bob):
    sealed, mutual = {"mechanism": "sealed"}, {"mechanism": "mutual"}
    alice = write_config(
        bob.parent, "alice", agreement=sealed, privacy={"accept-column-exposure": None}
    )
    assert "accept-column-exposure" in said(check_party(alice), "columns")
    write_config(bob.parent, "alice", agreement=sealed)
    assert said(check_party(alice), "columns", Level.WARNING)
    write_config(bob.parent, "alice", agreement=mutual)
    assert said(check_party(alice), "columns", Level.OK)


def test_which_rows_are_taken_and_how_their_ids_are_spelled(bob):
    table = bob.parent / "bob.csv"
    table.write_text(table.read_text().replace("p0007,", "P0007,"))
    normalised = {"normalise_ids": "case"}
    write_config(bob.parent, "bob", data=normalised)
    assert "data" not in [f.area for f in check_party(bob) if f.level is Level.WARNING]
    table.write_text(table.read_text().replace("p0008,", "p0007,"))
    write_config(bob.parent, "bob", data=normalised)
    assert "data" in problems(check_party(bob))
    ids = RowIds.from_values([f"p{number:04d}" for number in range(20, 120)])
    AlignedRows(ids, ids).write(bob.parent / "rows.csv", "id")
    write_config(bob.parent, "bob", data={"aligned": "rows.csv"})
    assert "rows.csv" in said(check_party(bob), "data", Level.OK)


def test_settings_that_do_not_go_with_alices_table(bob):
    alice = write_config(bob.parent, "alice", agreement={"mechanism": "none", "alice-columns": 9})
    assert "6" in said(check_party(alice), "agreement")


def test_a_port_that_is_taken(bob):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        write_config(bob.parent, "bob", link={"listen": f"127.0.0.1:{port}"})
        assert str(port) in said(check_party(bob), "link")
    assert str(port) in said(check_party(bob), "link", Level.OK)


def test_a_peer_that_is_there_is_not_and_has_no_address(bob):
    folder = bob.parent
    with socket.create_server(("127.0.0.1", 0)) as peer:
        address = f"127.0.0.1:{peer.getsockname()[1]}"
        alice = write_config(folder, "alice", link={"connect": address})
        assert address in said(check_party(alice), "link", Level.OK)
    assert address in said(check_party(alice), "link", Level.WARNING)
    # A name under .invalid never resolves; a port that is none is refused as an address.
    for wrong in ("nobody.invalid:7443", "localhost:99999"):
        alice = write_config(folder, "alice", link={"connect": wrong})
        assert wrong.partition(":")[0] in said(check_party(alice), "link")


def test_a_state_folder_that_is_in_use_or_has_a_damaged_key(bob):
    folder = bob.parent
    state = folder / "bob-state"
    state.mkdir()
    (state / "lock").touch()
    with (state / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert said(check_party(bob), "state", Level.WARNING)
    assert {f.level for f in check_party(bob) if f.area == "state"} == {Level.OK}
    (folder / "bob.state.key").write_text("short")
    text = said(check_party(bob), "state")
    assert "64" in text
    assert "short" not in text


def test_a_consent_store_is_read_whole(bob):
    store = ConsentStore(bob.parent / "bob.consent.sqlite")
    assert "consent" not in {finding.area for finding in check_party(bob)}
    with store.writing() as records:
        account = records.account("answers", "carol")
        account.write_values(account.tags(["ann", "bess"]), np.array([1, 2]))
    assert said(check_party(bob), "consent", Level.OK)
    with closing(sqlite3.connect(store.path)) as database, database:
        database.execute("update columns set content = zeroblob(32)")
    assert said(check_party(bob), "consent")


def test_the_packages_are_those_of_the_project():
    with (ROOT / "pyproject.toml").open("rb") as stream:
        project = tomllib.load(stream)["project"]
    declared = dict(requirement.split(">=") for requirement in project["dependencies"])
    assert dict(NEEDED) == declared
    oldest = tuple(int(part) for part in project["requires-python"].removeprefix(">=").split("."))
    assert oldest == OLDEST_PYTHON
    tested = [
        tuple(map(int, classifier.split("::")[-1].split(".")))
        for classifier in project["classifiers"]
        if re.search(r":: 3\.\d+$", classifier)
    ]
    assert tuple(tested) == TESTED_PYTHONS


def test_packages_that_are_absent_old_or_do_not_load(tmp_path, monkeypatch):
    """Three packages as an installer would leave them, in a folder of their own."""
    monkeypatch.syspath_prepend(tmp_path)
    for name, version, code in (("oldwheel", "1.2", ""), ("badwheel", "3.0", "raise OSError(1)")):
        (tmp_path / f"{name}.py").write_text(code)
        info = tmp_path / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    needed = {"oldwheel": "1.10", "badwheel": "1", "nowheel": "2", "numpy": "2.0"}
    findings = check_packages(needed)
    text = said(findings, "packages")
    for named in ("oldwheel 1.2", "1.10", "badwheel 3.0", "OSError", "nowheel"):
        assert named in text
    assert "1 of 4" in said(findings, "packages", Level.OK)


@pytest.mark.parametrize(
    ("version", "level"), [((3, 10, 9), "problem"), ((3, 12, 0), "ok"), ((3, 99, 0), "warning")]
)
def test_pythons(version, level):
    assert check_python(version).level == level


@pytest.mark.parametrize(
    ("system", "name", "level"),
    [
        ("darwin", "arm64", "warning"),
        ("linux", "aarch64", "warning"),
        ("win32", "AMD64", "problem"),
    ],
)
def test_platforms_that_are_not_tested(system, name, level):
    assert check_platform(system, name).level == level


def test_a_processor_without_instructions_is_named():
    assert "avx2" in check_processor("flags : aes sse", 1).summary
    assert "avx2" not in check_processor("", 1).summary


def test_little_memory_and_a_coarse_clock():
    little = check_memory("MemTotal: 900000 kB\nMemAvailable: 500000 kB\n")
    assert little.level is Level.WARNING
    now = datetime.now(UTC)
    assert check_clock(now, 0.015).level is Level.WARNING


class WrongKey:
    """A key under which every product is one too large."""

    def __init__(self, right: Any) -> None:
        self._right = right

    def __getattr__(self, name: str) -> Any:
        return getattr(self._right, name)

    def unmask(self, *arguments: Any) -> Any:
        return self._right.unmask(*arguments) + np.int64(1)


class WrongScheme(ClearScheme):
    def read_public(self, *arguments: Any) -> Any:
        return WrongKey(super().read_public(*arguments))


class DeadScheme(ClearScheme):
    def generate(self, *arguments: Any) -> Any:
        raise RuntimeError("no such library")


def test_schemes_that_compute_wrongly_or_not_at_all_are_found():
    assert check_scheme(WrongScheme()).level is Level.PROBLEM
    assert "RuntimeError" in check_scheme(DeadScheme()).summary


def test_datasets_found_altered_and_looked_for_in_vain(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TACITURN_DATA", str(tmp_path / "nowhere"))
    assert "TACITURN_DATA" in said(check_datasets(), "datasets", Level.WARNING)
    (tmp_path / "adult.csv").write_text("age,income\n31,0\n")
    monkeypatch.setenv("TACITURN_DATA", str(tmp_path))
    assert "census-income" in said(check_datasets(), "datasets")
