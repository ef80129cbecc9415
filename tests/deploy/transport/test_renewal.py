"""Certificates made with openssl, and renewal that the peer does not notice."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from taciturn.__main__ import run
from taciturn.deploy import BROKEN, Party, PartyConfig, way_to_peer
from taciturn.deploy.transport import (
    Credentials,
    DialEndpoint,
    ServeEndpoint,
    load_credentials,
    make_certificates,
)
from taciturn.engine import Callbacks, silent
from taciturn.errors import PeerStopped
from taciturn.protocol import Event, Progress
from tests.certificates import renew
from tests.deploy.sides import write_config, write_tables
from tests.deploy.transport.parties import HOST, QUICK
from tests.waiting import HANG, wait_until


def credentials(folder: Path, name: str, authority: Path | None = None) -> Credentials:
    return load_credentials(
        folder / f"{name}.pem", folder / f"{name}.key", authority or folder / "ca.pem"
    )


def meet(alice: Credentials, bob: Credentials) -> None:
    """Alice serves, Bob dials, and each hears the other."""
    server = ServeEndpoint(f"{HOST}:0", alice, peer="bob", limits=QUICK)
    client = DialEndpoint(f"{HOST}:{server.port}", bob, peer="alice", limits=QUICK)
    try:
        calling, called = client.connect(HANG), server.connect(HANG)
        calling.send(b"hello")
        assert called.receive(HANG) == b"hello"
    finally:
        client.close()
        server.close()


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """An authority and certificates that end in ten days."""
    make_certificates(tmp_path / "certs", ["alice", "bob"], days=10)
    return tmp_path / "certs"


def test_sides_meet_while_only_one_has_its_new_certificate(trial):
    old = {name: credentials(trial, name) for name in ("alice", "bob")}
    assert old["alice"].warnings, "ten days are soon"
    renew(trial)
    new = {name: credentials(trial, name) for name in ("alice", "bob")}
    assert new["alice"].key == old["alice"].key
    assert not new["alice"].warnings
    meet(old["alice"], new["bob"])
    meet(new["alice"], old["bob"])
    meet(new["alice"], new["bob"])


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl on this machine")
def test_the_page_has_the_commands_that_request_sign_and_renew(trial):
    page = Path(__file__).parents[3] / "docs" / "how-to" / "certificates.md"
    shell = re.compile(r"```sh\n(.*?)```", re.DOTALL)
    request, sign, *renewal = shell.findall(page.read_text(encoding="utf-8"))
    for name in ("alice.pem", "alice.key"):
        (trial / name).unlink()
    for commands in (request, sign):
        _run(commands, trial)
    signed, bob = credentials(trial, "alice"), credentials(trial, "bob")
    assert signed.name == "alice"
    meet(signed, bob)
    for commands in renewal:
        _run(commands, trial)
    renewed = credentials(trial, "alice")
    assert (renewed.fingerprint, renewed.warnings) == (signed.fingerprint, ())
    meet(renewed, bob)


def _run(commands: str, folder: Path) -> None:
    subprocess.run(["sh", "-ec", commands], cwd=folder, check=True, capture_output=True)


class Side(threading.Thread):
    """One party of a folder over a real link; interrupted at an iteration, where one is given."""

    def __init__(self, folder: Path, role: str, stop: int = -1) -> None:
        super().__init__(daemon=True)
        self._config = PartyConfig.read(folder / f"{role}.toml")
        self._stop_at = stop
        self.problem: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            with way_to_peer(self._config, silent) as endpoint:
                Party(self._config, endpoint, Callbacks(observe=self._observe)).run()
        except BaseException as problem:
            self.problem = problem

    def _observe(self, event: Event) -> None:
        if isinstance(event, Progress) and event.done == self._stop_at:
            raise KeyboardInterrupt

    def ended(self) -> BaseException | None:
        self.join(HANG)
        assert not self.is_alive()
        return self.problem


@pytest.mark.slow  # a second or two, and others show the same on less
def test_a_session_resumes_over_renewed_certificates(tmp_path, trial):
    """Bob stops in the middle; both are renewed, and resume over real links to the end."""
    write_tables(tmp_path)
    with socket.create_server((HOST, 0)) as free:
        address = f"{HOST}:{free.getsockname()[1]}"
    write_config(tmp_path, "alice", link={"connect": address})
    write_config(tmp_path, "bob", link={"listen": address})
    alice, bob = Side(tmp_path, "alice"), Side(tmp_path, "bob", stop=7)
    assert isinstance(bob.ended(), KeyboardInterrupt)
    # She is told; or his word is lost, and she waits for him with the certificate that she has.
    log = tmp_path / "alice.log"
    wait_until(lambda: not alice.is_alive() or BROKEN in log.read_text())
    before = (trial / "bob.pem").read_bytes()
    renew(trial)
    assert (trial / "bob.pem").read_bytes() != before
    if not alice.is_alive():
        assert isinstance(alice.problem, PeerStopped), alice.problem
        alice = Side(tmp_path, "alice")
    bob = Side(tmp_path, "bob")
    assert (alice.ended(), bob.ended()) == (None, None)
    assert '"event": "session resumed"' in (tmp_path / "bob.log").read_text()


def test_a_name_with_dots_is_shown_as_a_key_that_a_file_may_hold(tmp_path, capsys):
    folder = str(tmp_path)
    assert run(["certs", "--out", folder, "--name", "alice.example", "--name", "bob"]) == 0
    assert run(["certs", "--show", f"{folder}/alice.example.pem"]) == 0
    assert '\n"alice.example" = "' in capsys.readouterr().out
