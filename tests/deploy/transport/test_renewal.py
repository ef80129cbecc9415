"""Requests, their signing, and renewal that the peer does not notice."""

from __future__ import annotations

import json
import socket
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding

from taciturn.__main__ import run
from taciturn.deploy.config import PartyConfig
from taciturn.deploy.link import BROKEN
from taciturn.deploy.train import Party
from taciturn.deploy.transport.certs import (
    Issuer,
    certify,
    key_pem,
    make_certificates,
    make_issuer,
    new_key,
    pem,
    subject_of,
)
from taciturn.deploy.transport.dial import DialEndpoint
from taciturn.deploy.transport.renewal import (
    renew_certificates,
    request_certificate,
    sign_request,
)
from taciturn.deploy.transport.serve import ServeEndpoint
from taciturn.deploy.transport.tls import Credentials, load_credentials
from taciturn.deploy.way import way_to_peer
from taciturn.engine.callbacks import Callbacks, silent
from taciturn.errors import CertificateError, ConfigError, OutputError, PeerStopped
from taciturn.protocol.events import Event, Progress
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


def expiring(folder: Path, end: timedelta) -> None:
    """An authority and a certificate of alice's, which end so long from now."""
    start, expires = datetime.now(UTC) - timedelta(days=9), datetime.now(UTC) + end
    issuer, key = make_issuer("old", start, expires), new_key()
    folder.mkdir()
    (folder / "ca.pem").write_bytes(pem(issuer.certificate))
    (folder / "ca.key").write_bytes(key_pem(issuer.key))
    (folder / "alice.pem").write_bytes(
        pem(certify(issuer, "alice", key.public_key(), start, expires))
    )
    (folder / "alice.key").write_bytes(key_pem(key))
    (folder / "alice.key").chmod(0o600)


def test_a_party_asks_with_its_own_key_and_is_signed_for(trial, tmp_path):
    asked = request_certificate(tmp_path / "carol", "carol")
    assert asked.key.stat().st_mode & 0o777 == 0o600
    assert b"PRIVATE" not in asked.request.read_bytes()
    signed = sign_request(trial, asked.request, name="carol", days=5)
    assert signed.fingerprint == asked.fingerprint
    own = load_credentials(signed.certificate, asked.key, trial / "ca.pem")
    assert own.name == "carol"
    assert not (trial / "carol.key").exists()


def test_a_second_request_uses_the_same_key(tmp_path):
    first = request_certificate(tmp_path, "alice")
    key = first.key.read_bytes()
    assert request_certificate(tmp_path, "alice").fingerprint == first.fingerprint
    assert first.key.read_bytes() == key


def test_a_certificate_ends_no_later_than_its_authority(trial, tmp_path):
    asked = request_certificate(tmp_path, "carol")
    authority = x509.load_pem_x509_certificate((trial / "ca.pem").read_bytes())
    assert sign_request(trial, asked.request, days=90).expires == authority.not_valid_after_utc


def test_a_certificate_that_is_there_is_replaced_only_to_be_renewed(trial):
    before = credentials(trial, "alice")
    asked = request_certificate(trial, "alice")
    with pytest.raises(OutputError, match="not overwritten"):
        sign_request(trial, asked.request)
    sign_request(trial, asked.request, renew=True)
    after = credentials(trial, "alice")
    assert (after.name, after.key) == (before.name, before.key)
    assert after.certificate != before.certificate


def request(path: Path, *names: str, key: object = None, authority: bool = False) -> Path:
    """A request that somebody has made with other tools."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject_of("x"))
    if names:
        alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        builder = builder.add_extension(alternatives, critical=False)
    if authority:
        basic = x509.BasicConstraints(ca=True, path_length=None)
        builder = builder.add_extension(basic, critical=True)
    own: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey = (
        key if isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) else new_key()
    )
    path.write_bytes(builder.sign(own, hashes.SHA256()).public_bytes(Encoding.PEM))
    return path


def test_of_a_request_only_the_key_and_the_name_are_taken(trial, tmp_path):
    """One that asks to be an authority is signed as a party's."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    asked = request(tmp_path / "r.csr", "carol", key=key, authority=True)
    signed = x509.load_pem_x509_certificate(sign_request(trial, asked).certificate.read_bytes())
    basic = signed.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert not basic.ca
    assert signed.subject == subject_of("carol")


@pytest.mark.parametrize("names", [(), ("carol", "dave"), ("*.x",), ("ca",), ("../x",)])
def test_a_request_is_for_one_party(trial, tmp_path, names):
    with pytest.raises(CertificateError, match="exactly one party"):
        sign_request(trial, request(tmp_path / "r.csr", *names))


def test_requests_that_are_not_signed(trial, tmp_path):
    short = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 - refused
    with pytest.raises(CertificateError, match="not signed here"):
        sign_request(trial, request(tmp_path / "r.csr", "carol", key=short))
    curve = ec.generate_private_key(ec.SECP256K1())
    with pytest.raises(CertificateError, match="not signed here"):
        sign_request(trial, request(tmp_path / "r.csr", "carol", key=curve))
    asked = request(tmp_path / "r.csr", "carol")
    with pytest.raises(CertificateError, match="is of 'carol', not of 'alice'"):
        sign_request(trial, asked, name="alice")
    octets = bytearray(asked.read_bytes())
    octets[-60] ^= 1
    asked.write_bytes(octets)
    with pytest.raises(CertificateError, match="no certificate request"):
        sign_request(trial, asked)
    asked.write_bytes(b"\0" * (1 << 21))
    with pytest.raises(CertificateError, match="too large"):
        sign_request(trial, asked)
    assert not (trial / "carol.pem").exists()


def test_an_authority_whose_key_is_gone_or_anothers_signs_nothing(trial, tmp_path):
    asked = request(tmp_path / "r.csr", "carol")
    (trial / "ca.key").write_bytes(key_pem(new_key()))
    for act in (lambda: sign_request(trial, asked), lambda: renew_certificates(trial)):
        with pytest.raises(CertificateError, match="does not belong to the authority"):
            act()
    (trial / "ca.key").unlink()
    for act in (lambda: sign_request(trial, asked), lambda: renew_certificates(trial)):
        with pytest.raises(CertificateError, match="the authority's key is not here"):
            act()
    with pytest.raises(ConfigError, match="certificates cannot be valid for 0 days"):
        renew_certificates(trial, days=0)


def test_an_authority_that_has_expired_is_renewed_and_signs_nothing_before(tmp_path):
    folder = tmp_path / "old"
    expiring(folder, timedelta(days=-1))
    with pytest.raises(CertificateError, match="expired"):
        sign_request(folder, request(tmp_path / "r.csr", "carol"))
    with pytest.raises(CertificateError, match="expired"):
        credentials(folder, "alice")
    renew_certificates(folder)
    assert credentials(folder, "alice").warnings == ()


def test_a_certificate_of_another_authority_is_not_renewed(trial):
    before = (trial / "ca.pem").read_bytes()
    start = datetime.now(UTC)
    other = make_issuer("other", start, start + timedelta(days=9))
    key = new_key().public_key()
    foreign = certify(Issuer(other.certificate, other.key), "alice", key, start, start)
    (trial / "alice.pem").write_bytes(pem(foreign))
    with pytest.raises(CertificateError, match="not signed by the authority in this folder"):
        renew_certificates(trial)
    assert (trial / "ca.pem").read_bytes() == before
    with pytest.raises(CertificateError, match="does not exist"):
        renew_certificates(trial, ["nobody"])


def test_sides_meet_while_only_one_has_its_new_certificate(trial):
    old = {name: credentials(trial, name) for name in ("alice", "bob")}
    assert old["alice"].warnings, "ten days are soon"
    renew_certificates(trial, days=90)
    new = {name: credentials(trial, name) for name in ("alice", "bob")}
    assert new["alice"].key == old["alice"].key
    assert not new["alice"].warnings
    meet(old["alice"], new["bob"])
    meet(new["alice"], old["bob"])
    meet(new["alice"], new["bob"])


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
    renew_certificates(trial, days=90)
    assert (trial / "bob.pem").read_bytes() != before
    if not alice.is_alive():
        assert isinstance(alice.problem, PeerStopped), alice.problem
        alice = Side(tmp_path, "alice")
    bob = Side(tmp_path, "bob")
    assert (alice.ended(), bob.ended()) == (None, None)
    assert '"event": "session resumed"' in (tmp_path / "bob.log").read_text()


def test_the_command_asks_signs_and_renews(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("certs --out ca --name alice --name bob --days 10".split()) == 0
    assert run("certs --out carol --request --name carol".split()) == 0
    said = capsys.readouterr().out
    assert "to nobody: carol/carol.key" in said
    assert run("certs --out ca --sign carol/carol.csr --name carol --json".split()) == 0
    signed = json.loads(capsys.readouterr().out)
    assert signed["certificate"] == "ca/carol.pem"
    assert signed["fingerprint"] in said
    assert run("certs --show ca/carol.pem --json".split()) == 0
    assert json.loads(capsys.readouterr().out) == {
        key: signed[key] for key in ("name", "certificate", "expires", "fingerprint")
    }
    assert run("certs --show ca/carol.pem".split()) == 0
    assert f'carol = "{signed["fingerprint"]}"' in capsys.readouterr().out
    assert run("certs --out ca --renew --days 60 --json".split()) == 0
    renewed = json.loads(capsys.readouterr().out)
    assert [party["name"] for party in renewed["parties"]] == ["alice", "bob", "carol"]
    assert renewed["expires"] > signed["expires"]
    assert "PRIVATE" not in said


def test_a_name_with_dots_is_shown_as_a_key_that_a_file_may_hold(tmp_path, capsys):
    folder = str(tmp_path)
    assert run(["certs", "--out", folder, "--name", "alice.example", "--name", "bob"]) == 0
    assert run(["certs", "--show", f"{folder}/alice.example.pem"]) == 0
    assert '\n"alice.example" = "' in capsys.readouterr().out
