"""Signals to a party's process: the peer is told once, however many signals there are."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from taciturn.cli.party_console import INTERRUPTED
from taciturn.errors import PeerStopped
from tests.party.sides import (
    MECHANISMS,
    ROLES,
    write_certificates,
    write_config,
    write_tables,
)
from tests.system import free_port
from tests.waiting import HANG, wait_until


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Both sides in the middle of a training: Bob waits a minute before each message of his."""
    write_certificates(tmp_path / "certs")
    write_tables(tmp_path, rows=80)
    address = f"127.0.0.1:{free_port()}"
    for role, way, privacy in (
        ("bob", "listen", {"answer-interval-milliseconds": 60_000.0}),
        ("alice", "connect", {}),
    ):
        agreement = MECHANISMS["sealed"]
        write_config(tmp_path, role, agreement=agreement, link={way: address}, privacy=privacy)
    started = {
        role: subprocess.Popen(
            [sys.executable, "-m", "taciturn", "party", f"{role}.toml"],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        for role in ROLES
    }
    wait_until(lambda: all(met(tmp_path / f"{role}.log") for role in ROLES))
    yield started
    for process in started.values():
        process.kill()
        process.communicate()


def met(log: Path) -> bool:
    # exact: a line of the log, which programs read
    return log.exists() and '"event": "connected"' in log.read_text()


@pytest.mark.parametrize("numbers", [[signal.SIGINT], [signal.SIGTERM, signal.SIGINT]])
def test_however_many_signals_come_the_peer_is_told_and_the_process_says_why(processes, numbers):
    alice, bob = processes["alice"], processes["bob"]
    while bob.poll() is None:
        for number in numbers:
            bob.send_signal(number)
    _, said = bob.communicate(timeout=HANG)
    assert bob.returncode == INTERRUPTED
    assert "error: interrupted" in said
    _, heard = alice.communicate(timeout=HANG)
    assert alice.returncode == PeerStopped.exit_code
    assert "interrupted" in heard
