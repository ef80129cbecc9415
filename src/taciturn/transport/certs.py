"""A private certificate authority and party certificates, for a trial between two companies.

Elliptic curve P-256, one DNS name per party, for serving and for dialling, since either party
may do either. A certificate is checked by the peer against ``ca.pem`` and against the name it was
told to expect; nothing public vouches for it. Keys and serial numbers are drawn by OpenSSL from the
operating system: a seed has no place here.

Guarantee: private keys are readable by their owner alone, and no existing file is overwritten.

Assumes: each party's key travels to that party over a channel both trust. Where a party makes its
own key and has a request signed, as with a company's own authority, no key travels.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from taciturn.errors import ConfigError, OutputError
from taciturn.setting_syntax import Hint
from taciturn.transport.address import check_name

PublicKey: TypeAlias = ec.EllipticCurvePublicKey | rsa.RSAPublicKey
"""The kinds of keys that a party may have."""
MOST_DAYS = 3650
# Clocks differ between machines: a fresh certificate is valid from a little while ago.
CLOCK_SLACK = timedelta(hours=1)
AUTHORITY, AUTHORITY_KEY = "ca.pem", "ca.key"


@dataclass(frozen=True, slots=True)
class TrialCertificates:
    """Files of a trial, with name, certificate and key of each party, and ``authority_key``."""

    authority: Path
    authority_key: Path
    parties: tuple[tuple[str, Path, Path], ...]
    expires: datetime


@dataclass(frozen=True, slots=True)
class Issuer:
    """A certificate authority: its certificate and the key it signs with."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def __repr__(self) -> str:
        return "Issuer(<key withheld>)"


def make_certificates(folder: Path, names: Sequence[str], *, days: int = 90) -> TrialCertificates:
    """Make an authority and one certificate per party; on an error nothing is left behind."""
    _check_request(names, days)
    start = datetime.now(UTC) - CLOCK_SLACK
    expires = start + CLOCK_SLACK + timedelta(days=days)
    issuer = make_issuer("taciturn trial authority", start, expires)
    parties = tuple((name, folder / f"{name}.pem", folder / f"{name}.key") for name in names)
    made = TrialCertificates(folder / AUTHORITY, folder / AUTHORITY_KEY, parties, expires)
    files = {made.authority: pem(issuer.certificate), made.authority_key: key_pem(issuer.key)}
    for name, certificate, key in parties:
        signed, private_key = issue(issuer, name, start, expires)
        files[certificate], files[key] = pem(signed), key_pem(private_key)
    _write_new(folder, files)
    return made


def make_issuer(name: str, start: datetime, expires: datetime) -> Issuer:
    """A new authority that may sign certificates of parties, and no further authorities."""
    key = new_key()
    return Issuer(self_signed(subject_of(name), key, start, expires), key)


def self_signed(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, start: datetime, expires: datetime
) -> x509.Certificate:
    """Certificate of an authority that may sign for parties, and for no other authority."""
    return (
        _unsigned(subject, subject, key.public_key(), start, expires)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def issue(
    issuer: Issuer, name: str, start: datetime, expires: datetime
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """A new key, and the issuer's certificate that it belongs to the named party."""
    key = new_key()
    return certify(issuer, name, key.public_key(), start, expires), key


def new_key() -> ec.EllipticCurvePrivateKey:
    """A new private key."""
    return ec.generate_private_key(ec.SECP256R1())


def certify(
    issuer: Issuer, name: str, key: PublicKey, start: datetime, expires: datetime
) -> x509.Certificate:
    """The issuer's certificate that a key belongs to the named party."""
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    above = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key())
    return (
        _unsigned(subject_of(name), issuer.certificate.subject, key, start, expires)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(above, critical=False)
        .sign(issuer.key, hashes.SHA256())
    )


def _check_request(names: Sequence[str], days: int) -> None:
    for name in names:
        check_name(name)
    # The authority's own files are called ca.
    if len(names) < 2 or len(set(names)) < len(names) or "ca" in names:
        raise ConfigError(
            "a trial needs two or more different names, none of them ca",
            setting="name",
            hint="name two, such as alice and bob",
        )
    if not 1 <= days <= MOST_DAYS:
        raise ConfigError(
            f"certificates cannot be valid for {days} days",
            setting="days",
            hint=f"use 1 to {MOST_DAYS}",
        )


def subject_of(name: str) -> x509.Name:
    """Subject of a certificate of the named party."""
    # A common name holds at most 64 characters; the name that counts is the alternative one.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _unsigned(
    subject: x509.Name,
    issuer: x509.Name,
    key: PublicKey,
    start: datetime,
    expires: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(expires)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def pem(certificate: x509.Certificate) -> bytes:
    """A certificate in PEM form."""
    return certificate.public_bytes(Encoding.PEM)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key in PEM form, without a passphrase."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write_new(folder: Path, files: dict[Path, bytes]) -> None:
    """Write every file or none: half a set of certificates is useless."""
    written: list[Path] = []
    try:
        for missing in (*reversed(folder.parents), folder):
            # Not for others to write to, whatever the umask: they could replace the authority.
            missing.mkdir(mode=0o755, exist_ok=True)
        for path, content in files.items():
            _write_one(path, content)
            written.append(path)
    except OSError as problem:
        for path in written:
            path.unlink(missing_ok=True)
        exists = isinstance(problem, FileExistsError)
        raise OutputError(
            "a file of that name exists and is not overwritten"
            if exists
            else f"the certificates cannot be written: {problem.strerror}",
            where=str(problem.filename or folder),
            hint=Hint("name another folder with {out}"),
        ) from None


def _write_one(path: Path, content: bytes) -> None:
    """Write a new file; a key is never readable by others, not for a moment."""
    mode = 0o600 if path.suffix == ".key" else 0o644
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
