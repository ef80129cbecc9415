"""What a person at a party's screen reads of the connection: words of the side that they sit at."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.sides import write_config, write_tables
from tests.deploy.transport.parties import HOST, Authority
from tests.waiting import HANG

# How gRPC begins a line of its log.
RAW = re.compile(r"^[IWE]\d{4} ", re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tables(tmp_path)
    for place in ("certs", "other"):
        authority = Authority.make(tmp_path / place)
        for name in ("alice", "bob"):
            authority.party(name)
    return tmp_path


def party(folder: Path, role: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "taciturn", "party", str(folder / f"{role}.toml"), "--dry-run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_port_in_use_is_said_in_words_alone(folder):
    with socket.create_server((HOST, 0)) as taken:
        write_config(folder, "bob", link={"listen": f"{HOST}:{taken.getsockname()[1]}"})
        _, said = party(folder, "bob").communicate(timeout=HANG)
    assert "cannot listen on this address: the port is in use" in said
    assert not RAW.search(said), said


def test_each_side_says_its_own_part_of_a_handshake_that_fails(folder):
    """Alice calls, and does not accept Bob: he shows a certificate of another authority."""
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    files = {"ca": "other/ca.pem", "certificate": "other/bob.pem", "key": "other/bob.key"}
    write_config(folder, "bob", link={"listen": f"{HOST}:{port}", **files})
    write_config(folder, "alice", link={"connect": f"{HOST}:{port}"})
    bob, alice = party(folder, "bob"), party(folder, "alice")
    _, hers = alice.communicate(timeout=HANG)
    assert alice.returncode == 42
    assert "the server's certificate is not accepted" in hers
    assert "refused a connection" not in hers
    assert "a connection failed" not in hers
    bob.terminate()
    _, his = bob.communicate(timeout=HANG)
    assert not RAW.search(hers + his), hers + his
