"""Certificates made with openssl, and renewal that the peer does not notice."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from taciturn.transport.certs import make_certificates
from taciturn.transport.dial import DialEndpoint
from taciturn.transport.tls import Credentials, load_credentials
from tests.certificates import renew
from tests.transport.parties import HOST, QUICK
from tests.transport.serve_endpoint import ServeEndpoint
from tests.waiting import HANG


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
    page = Path(__file__).parents[2] / "docs" / "how-to" / "install.md"
    shell = re.compile(r"```sh\n(.*?)```", re.DOTALL)
    request, sign, *renewal = shell.findall(
        page.read_text(encoding="utf-8").partition("\n## Certificates\n")[2]
    )
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
