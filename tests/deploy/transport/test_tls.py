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

from taciturn.deploy.transport import Credentials, DialEndpoint, load_credentials, objection
from taciturn.errors import CertificateError, ConfigError
from tests.deploy.transport.parties import NOW, Authority


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


def test_good_files_give_the_name_and_no_warning(files):
    credentials = load(files)
    assert credentials.name == "alice"
    assert credentials.warnings == ()
    assert "PRIVATE" not in repr(credentials)
    assert "BEGIN" not in repr(credentials)


@pytest.mark.parametrize("name", ["alice.pem", "alice.key", "ca.pem"])
def test_an_absent_file_is_named(files, name):
    (files / name).unlink()
    with pytest.raises(CertificateError, match="does not exist") as caught:
        load(files)
    assert caught.value.where == str(files / name)


@pytest.mark.parametrize("name", ["alice.pem", "alice.key", "ca.pem"])
@pytest.mark.parametrize("content", [b"", b"nonsense", b"\xff" * 100])
def test_a_file_that_is_not_pem_is_named(files, name, content):
    (files / name).write_bytes(content)
    with pytest.raises(CertificateError, match="in PEM form") as caught:
        load(files)
    assert caught.value.where == str(files / name)


def test_a_directory_is_no_certificate(files):
    (files / "ca.pem").unlink()
    (files / "ca.pem").mkdir()
    with pytest.raises(CertificateError, match="cannot be read"):
        load(files)


def test_an_enormous_file_is_not_read(files):
    (files / "ca.pem").write_bytes(bytes(2 << 20))
    with pytest.raises(CertificateError, match="too large"):
        load(files)


def test_a_key_of_another_certificate(files, authority):
    shutil.copy(authority.folder / "bob.key", files / "alice.key")
    with pytest.raises(CertificateError, match="does not belong to the certificate"):
        load(files)


def test_a_key_with_a_passphrase(files):
    key = ec.generate_private_key(ec.SECP256R1())
    form = (Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    (files / "alice.key").write_bytes(key.private_bytes(*form))
    with pytest.raises(CertificateError, match="passphrase"):
        load(files)


def test_another_authority(files, stranger):
    shutil.copy(stranger.folder / "ca.pem", files / "ca.pem")
    with pytest.raises(CertificateError, match="not signed by the authority"):
        load(files)


def test_a_party_is_no_authority(files, authority):
    shutil.copy(authority.folder / "bob.pem", files / "ca.pem")
    with pytest.raises(CertificateError, match="not an authority's"):
        load(files)


@pytest.mark.parametrize(
    ("days", "message"), [(70, "has expired on 20"), (-2, "is not valid before 20")]
)
def test_dates_are_checked_and_said(files, days, message):
    with pytest.raises(CertificateError, match=message):
        load(files, now=NOW + timedelta(days=days))


def test_the_end_is_announced(files):
    (warning,) = load(files, now=NOW + timedelta(days=50)).warnings
    assert "'CN=alice' expires on" in warning


def test_a_key_that_others_can_read_is_warned_of(files):
    (files / "alice.key").chmod(0o644)
    (warning,) = load(files).warnings
    assert "can be read by others: chmod 600" in warning


def test_a_certificate_for_serving_only(files):
    spoil(files, a=NAMED, b=x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]))
    with pytest.raises(CertificateError, match="not made for dialling"):
        load(files)


@pytest.mark.parametrize("names", [None, ["*.example"]])
def test_a_certificate_without_a_usable_name(files, names):
    more = {"a": x509.SubjectAlternativeName([x509.DNSName(n) for n in names])} if names else {}
    spoil(files, **more)
    with pytest.raises(CertificateError, match="names no party"):
        load(files)


def test_no_extended_usage_means_any(files):
    spoil(files, a=NAMED)
    assert load(files).name == "alice"


@pytest.mark.parametrize(
    ("shown", "against"),
    [
        ({"peer_dns": [b"bob"], "ssl_tls_version": [b"TLSv1.3"]}, ""),
        ({"peer_dns": [b"x", b"bob"], "ssl_tls_version": [b"TLSv1.3"]}, ""),
        ({"peer_dns": [b"bob"], "ssl_tls_version": [b"TLSv1.2"]}, "it does not use TLS 1.3"),
        ({"peer_dns": [b"bob"]}, "it does not use TLS 1.3"),
        ({"ssl_tls_version": [b"TLSv1.3"]}, "its certificate names nobody, not 'bob'"),
        (
            {"peer_dns": [b"*"], "ssl_tls_version": [b"TLSv1.3"]},
            "its certificate names '*', not 'bob'",
        ),
        (
            {"x509_common_name": [b"bob"], "ssl_tls_version": [b"TLSv1.3"]},
            "its certificate names nobody, not 'bob'",
        ),
    ],
)
def test_what_speaks_against_a_caller(shown, against):
    assert objection(shown, ["bob"]) == against


@pytest.mark.parametrize("address", ["", "bob", "bob:", "bob:0x1", "bob:99999", ":1", "a b:1"])
def test_an_address_that_is_none(authority, address):
    with pytest.raises(ConfigError, match="is not an address"):
        DialEndpoint(address, authority.load("bob"), peer="alice")
