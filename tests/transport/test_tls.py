"""Our own files are checked before use, and every fault has its name."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from taciturn.errors import CertificateError
from taciturn.transport.grpc_channel import objection
from taciturn.transport.tls import Credentials, load_credentials
from tests.expected import refused
from tests.transport.parties import NOW, Authority


@pytest.fixture
def files(authority, tmp_path):
    """A copy of alice's files, to be spoilt."""
    for name in ("alice.pem", "alice.key", "ca.pem"):
        shutil.copy(authority.folder / name, tmp_path / name)
    return tmp_path


def load(folder: Path, now: datetime | None = None) -> Credentials:
    return load_credentials(folder / "alice.pem", folder / "alice.key", folder / "ca.pem", now=now)


def spoil(folder: Path, **extensions: x509.ExtensionType) -> None:
    """Replaces alice's certificate by one with just these extensions."""
    issuer = Authority.make(folder).issuer
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "alice")]))
        .issuer_name(issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + timedelta(days=60))
    )
    for value in extensions.values():
        builder = builder.add_extension(value, critical=False)
    signed = builder.sign(issuer.key, hashes.SHA256())
    (folder / "alice.pem").write_bytes(signed.public_bytes(Encoding.PEM))
    (folder / "alice.key").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )


NAMED = x509.SubjectAlternativeName([x509.DNSName("alice")])


FILES = ("alice.pem", "alice.key", "ca.pem")
CONTENTS = {"absent": None, "empty": b"", "nonsense": b"nonsense", "binary": b"\xff" * 100}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content", CONTENTS)
def test_a_file_that_is_absent_or_not_pem_is_named(files, name, content):
    (files / name).unlink()
    if (data := CONTENTS[content]) is not None:
        (files / name).write_bytes(data)
    require_refused(files, name)


def require_refused(folder: Path, name: str, now: datetime | None = None) -> None:
    with refused(CertificateError) as caught:
        load(folder, now)
    assert caught.value.where == str(folder / name)


def a_directory(folder: Path, others: dict[str, Path]) -> None:
    (folder / "ca.pem").unlink()
    (folder / "ca.pem").mkdir()


def an_enormous_file(folder: Path, others: dict[str, Path]) -> None:
    # All is right with it, but for its size.
    (folder / "ca.pem").write_bytes((folder / "ca.pem").read_bytes() + b"\n" * (1 << 20))


def a_key_of_another_certificate(folder: Path, others: dict[str, Path]) -> None:
    shutil.copy(others["authority"] / "bob.key", folder / "alice.key")


def a_key_with_a_passphrase(folder: Path, others: dict[str, Path]) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    form = (Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    (folder / "alice.key").write_bytes(key.private_bytes(*form))


def another_authority(folder: Path, others: dict[str, Path]) -> None:
    shutil.copy(others["stranger"] / "ca.pem", folder / "ca.pem")


def a_party_as_authority(folder: Path, others: dict[str, Path]) -> None:
    shutil.copy(others["authority"] / "bob.pem", folder / "ca.pem")


def for_serving_only(folder: Path, others: dict[str, Path]) -> None:
    spoil(folder, a=NAMED, b=x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]))


def without_a_name(folder: Path, others: dict[str, Path]) -> None:
    spoil(folder)


def with_a_pattern_for_a_name(folder: Path, others: dict[str, Path]) -> None:
    spoil(folder, a=x509.SubjectAlternativeName([x509.DNSName("*.example")]))


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (a_directory, "ca.pem"),
        (an_enormous_file, "ca.pem"),
        (a_key_of_another_certificate, "alice.key"),
        (a_key_with_a_passphrase, "alice.key"),
        (another_authority, "alice.pem"),
        (a_party_as_authority, "ca.pem"),
        (for_serving_only, "alice.pem"),
        (without_a_name, "alice.pem"),
        (with_a_pattern_for_a_name, "alice.pem"),
    ],
)
def test_files_that_are_not_fit_for_use_are_refused(files, authority, stranger, fault, name):
    fault(files, {"authority": authority.folder, "stranger": stranger.folder})
    require_refused(files, name)


@pytest.mark.parametrize("days", [70, -2])
def test_dates_are_checked(files, days):
    require_refused(files, "alice.pem", NOW + timedelta(days=days))


def test_the_end_is_announced(files):
    (warning,) = load(files, now=NOW + timedelta(days=50)).warnings
    assert "alice" in warning


def test_a_key_that_others_can_read_is_warned_of(files):
    (files / "alice.key").chmod(0o644)
    (warning,) = load(files).warnings
    assert "chmod 600" in warning


@pytest.mark.parametrize(
    ("shown", "named"),
    [
        ({"peer_dns": [b"bob"], "ssl_tls_version": [b"TLSv1.3"]}, None),
        ({"peer_dns": [b"x", b"bob"], "ssl_tls_version": [b"TLSv1.3"]}, None),
        ({"peer_dns": [b"bob"], "ssl_tls_version": [b"TLSv1.2"]}, "1.3"),
        ({"peer_dns": [b"bob"]}, "1.3"),
        ({"ssl_tls_version": [b"TLSv1.3"]}, "'bob'"),
        ({"peer_dns": [b"*"], "ssl_tls_version": [b"TLSv1.3"]}, "'*'"),
        ({"x509_common_name": [b"bob"], "ssl_tls_version": [b"TLSv1.3"]}, "'bob'"),
    ],
)
def test_what_speaks_against_a_caller(shown, named):
    against = objection(shown, ["bob"])
    assert bool(against) == (named is not None)
    assert (named or "") in against
