"""The job between two processes with certificates: counts, a budget that is spent, refusals."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from taciturn_counts.job import OTHERS, merged

ROWS = 60
PATIENCE = 120
CERTIFICATES = ("certs", "--out", "certs", "--name", "alice", "--name", "bob")
REGIONS = ["north"] * 30 + ["south"] * 26 + ["island"] * 4


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def party_file(role: str, way: str, own: str) -> str:
    peer = "bob" if role == "alice" else "alice"
    label = 'label = "bought"\n' if role == "bob" else ""
    return f"""
role = "{role}"
[agreement]
mechanism = "none"
[data]
file = "{role}.csv"
id = "id"
{label}
[link]
{way}
peer = "{peer}"
ca = "certs/ca.pem"
certificate = "certs/{role}.pem"
key = "certs/{role}.key"
connect-seconds = {PATIENCE}
[state]
folder = "{role}-state"
[output]
model = "{role}.model.json"
[counts]
{own}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Both sides' files, as a person would write them."""
    run(tmp_path, *CERTIFICATES).communicate(timeout=PATIENCE)
    rows = [f"c{row},{region},{row}" for row, region in enumerate(REGIONS)]
    (tmp_path / "alice.csv").write_text("\n".join(["id,region,age", *rows]) + "\n")
    rows = [f"c{row},{row % 2}" for row in range(ROWS)]
    (tmp_path / "bob.csv").write_text("\n".join(["id,bought", *rows]) + "\n")
    address = f"127.0.0.1:{free_port()}"
    alice = party_file("alice", f'connect = "{address}"', 'share = ["region"]\ncolumns = 1')
    (tmp_path / "alice.toml").write_text(alice)
    ask(tmp_path, "region", address)
    return tmp_path


def ask(folder: Path, column: str, address: str = "") -> None:
    """Bob's file, in which he asks for a column."""
    path = folder / "bob.toml"
    if not address:
        address = path.read_text().split('listen = "')[1].split('"')[0]
    path.write_text(party_file("bob", f'listen = "{address}"', f'column = "{column}"'))


def run(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "taciturn", *words],
        cwd=folder,
        env={**os.environ, "XDG_CONFIG_HOME": str(folder / "settings"), "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def meet(folder: Path) -> dict[str, tuple[int, str, str]]:
    """How both processes end: the exit code, and what they print."""
    started = {role: run(folder, "counts", f"{role}.toml", "--json") for role in ("bob", "alice")}
    ends = {}
    for role, process in started.items():
        out, problems = process.communicate(timeout=PATIENCE)
        ends[role] = process.returncode, out, problems
    return ends


def test_bob_learns_the_counts_once_and_no_more(folder):
    ends = meet(folder)
    expected = {"north": 30, "south": 26}
    for role, (code, out, problems) in ends.items():
        assert code == 0, problems
        record = json.loads(out)
        assert (record["role"], record["counted_column"]) == (role, "region")
        assert record["counts"] == expected
    # The second column would be one more than Alice allows.
    ends = meet(folder)
    assert ends["alice"][0] == 61
    assert "[counts]" in ends["alice"][2]
    assert "columns" in ends["alice"][2]
    assert ends["bob"][0] != 0
    # Not why: that is Alice's own business.
    assert "limit" not in ends["bob"][2]


def test_a_column_that_alice_does_not_share_is_refused_on_both_sides(folder):
    ask(folder, "age")
    ends = meet(folder)
    assert all(code in (32, 34) and "age" in problems for code, _, problems in ends.values()), ends
    # Nothing was charged: the counts of a shared column are there to be had.
    ask(folder, "region")
    assert all(code == 0 for code, _, _ in meet(folder).values())


def test_the_other_partys_settings_are_refused(folder):
    path = folder / "bob.toml"
    path.write_text(path.read_text() + 'share = ["bought"]\n')
    process = run(folder, "counts", "bob.toml")
    problems = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 10
    assert "share is for Alice alone to set" in problems


def test_rare_values_are_counted_together_or_not_at_all():
    assert merged(REGIONS, 10) == {"north": 30, "south": 26}
    assert merged([*REGIONS, *"abcdefgh"], 10) == {"north": 30, "south": 26, OTHERS: 12}
    assert merged([], 1) == {}
