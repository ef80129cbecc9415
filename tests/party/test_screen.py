"""What a person at a party's screen reads of the connection: words of the side that they sit at."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from taciturn.errors import PeerRefused
from tests.party.sides import write_config, write_tables
from tests.transport.parties import HOST, Authority
from tests.waiting import HANG, wait_until

# How gRPC begins a line of its log.
Process = subprocess.Popen[str]
# An event of the log, which docs/two_machines.md lists.
WAITING = "waiting for the peer"
RAW = re.compile(r"^[IWE]\d{4} ", re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tables(tmp_path)
    for place in ("certs", "other"):
        authority = Authority.make(tmp_path / place)
        for name in ("alice", "bob"):
            authority.party(name)
    return tmp_path


# The line of each minute, many times a second.
BEATING = """
import taciturn.cli.console as console
from taciturn.__main__ import main
console.BEAT_SECONDS = 0.1
main()
"""


def party(folder: Path, role: str, program: tuple[str, ...] = ("-m", "taciturn")) -> Process:
    return subprocess.Popen(
        [sys.executable, *program, "party", str(folder / f"{role}.toml"), "--dry-run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow  # four processes
def test_each_side_says_its_own_part_of_a_handshake_that_fails(folder):
    """Alice calls, and does not accept Bob: he shows a certificate of another authority."""
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    files = {"ca": "other/ca.pem", "certificate": "other/bob.pem", "key": "other/bob.key"}
    write_config(folder, "bob", link={"listen": f"{HOST}:{port}", **files})
    write_config(folder, "alice", link={"connect": f"{HOST}:{port}"})
    bob, alice = party(folder, "bob"), party(folder, "alice")
    _, hers = alice.communicate(timeout=HANG)
    assert alice.returncode == PeerRefused.exit_code
    bob.terminate()
    _, his = bob.communicate(timeout=HANG)
    assert not RAW.search(hers + his), hers + his


@pytest.mark.slow  # some seconds
def test_a_side_says_why_it_waits_and_goes_on_waiting(folder):
    """Alice is first, and calls a port that nobody has opened; the reason is in her log, once.

    She has no terminal: a line now and then says what she does, and for how long.
    """
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    write_config(folder, "bob", link={"listen": f"{HOST}:{port}"})
    write_config(folder, "alice", link={"connect": f"{HOST}:{port}"})
    alice, log = party(folder, "alice", ("-c", BEATING)), folder / "alice.log"
    wait_until(lambda: log.exists() and WAITING in log.read_text())
    bob = party(folder, "bob")
    _, his = bob.communicate(timeout=HANG)
    _, hers = alice.communicate(timeout=HANG)
    assert (alice.returncode, bob.returncode) == (0, 0), hers + his
    assert re.search(rf"^alice: .*{HANG:g} s.* 0:\d\d:\d\d ", hers, re.MULTILINE)
    events = [json.loads(line) for line in log.read_text().splitlines()]
    reasons = [event["reason"] for event in events if event["event"] == WAITING]
    assert len({*reasons}) == len(reasons) > 0
    assert hers.count(reasons[0]) == 1
    assert "connected" in [event["event"] for event in events]
