"""Our own certificate, key and authority: read, and checked before anybody else refuses them.

A handshake that fails says little, and on purpose. So everything that can be found wrong with our
own files is found here, and named: absent, unreadable, not PEM, a key of another certificate,
expired, signed by another authority, of the wrong purpose, without a name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

from taciturn.errors import CertificateError
from taciturn.files import is_private

EXPIRES_SOON = timedelta(days=30)
LONGEST_CHAIN = 5
LARGEST_FILE = 1 << 20
PURPOSES = {
    ExtendedKeyUsageOID.SERVER_AUTH: "serving",
    ExtendedKeyUsageOID.CLIENT_AUTH: "dialling",
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """A party's certificate chain and key, and the authority that it trusts, in PEM.

    ``name`` is the first DNS name of its certificate; ``certificate`` is the whole chain.
    """

    name: str
    expires: datetime
    warnings: tuple[str, ...]
    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)
    authority: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of its public key, by which an agreement pins it."""
        return certificate_fingerprint(x509.load_pem_x509_certificate(self.certificate))


@dataclass(frozen=True, slots=True)
class CertificateSummary:
    """A party's certificate file; the fingerprint is SHA-256 of the public key."""

    name: str
    certificate: Path
    fingerprint: str
    expires: datetime


def show_certificate(path: Path) -> CertificateSummary:
    """Summary of a certificate file, with the fingerprint that an agreement pins."""
    leaf = read_certificates(path)[0]
    return CertificateSummary(
        party_name(leaf, path), path, certificate_fingerprint(leaf), leaf.not_valid_after_utc
    )


def certificate_fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 of a certificate's public key, in hexadecimal; a renewal keeps it."""
    return hashlib.sha256(public_octets(certificate)).hexdigest()


def public_octets(owner: x509.Certificate | PrivateKeyTypes) -> bytes:
    """The public key of a certificate, or of a private key, in its one form."""
    return owner.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def pin_mismatch(actual: str, agreed: str) -> str:
    """Objection to a certificate whose key is not the one that the agreement pins."""
    return (
        f"its certificate is not the agreed one: its key has fingerprint {actual[:16]}…, and the "
        f"agreement has {agreed[:16]}…"
    )


def load_credentials(
    certificate: Path, key: Path, authority: Path, *, now: datetime | None = None
) -> Credentials:
    """Load and check a party's three PEM files; raise ``CertificateError`` if invalid.

    The certificate may be followed by intermediate ones; the key has no passphrase; there may be
    several certificates of the authority.
    """
    at = now or datetime.now(UTC)
    chain, roots = read_certificates(certificate), read_certificates(authority)
    leaf = chain[0]
    key_pem = read_file(key, "private key")
    _check_key(key, key_pem, certificate, leaf)
    for signed in chain:
        _check_dates(signed, certificate, at)
    for root in roots:
        _check_dates(root, authority, at)
        if not _may_sign(root):
            raise CertificateError(
                f"the certificate of {_subject(root)} is not an authority's",
                where=str(authority),
                hint="name the CA's certificate, such as ca.pem, and not a party's",
            )
    if not is_vouched_for(chain, roots):
        raise CertificateError(
            f"the certificate was not signed by the authority in {authority}",
            where=str(certificate),
            hint="both parties' certificates must come from that authority",
        )
    _check_purposes(leaf, certificate)
    warnings = [
        f"the certificate of {_subject(listed)} expires on {day(listed.not_valid_after_utc)}"
        for listed in (*chain, *roots)
        if listed.not_valid_after_utc - at < EXPIRES_SOON
    ]
    if not is_private(key.stat()):
        warnings.append(f"the private key {key} can be read by others: chmod 600 {key}")
    return Credentials(
        name=party_name(leaf, certificate),
        expires=leaf.not_valid_after_utc,
        warnings=tuple(warnings),
        certificate=_joined(chain),
        key=key_pem,
        authority=_joined(roots),
    )


def _joined(certificates: list[x509.Certificate]) -> bytes:
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def read_file(path: Path, kind: str) -> bytes:
    """Content of a file of credentials."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise CertificateError(f"the {kind} file is too large to be one", where=str(path))
        return path.read_bytes()
    except FileNotFoundError:
        raise CertificateError(
            f"the {kind} file does not exist",
            where=str(path),
            hint="check the path; taciturn certs makes a set for a trial",
        ) from None
    except OSError as problem:
        raise CertificateError(
            f"the {kind} file cannot be read: {problem.strerror}", where=str(path)
        ) from None


def read_certificates(path: Path) -> list[x509.Certificate]:
    """Certificates in a PEM file."""
    data = read_file(path, "certificate")
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError:
        raise CertificateError(
            "the file holds no certificate in PEM form",
            where=str(path),
            hint="a PEM certificate begins with -----BEGIN CERTIFICATE-----",
        ) from None


def _check_key(path: Path, pem: bytes, certificate: Path, loaded: x509.Certificate) -> None:
    try:
        key = load_pem_private_key(pem, password=None)
    except TypeError:
        raise CertificateError(
            "the private key is protected by a passphrase",
            where=str(path),
            hint="store it without one, readable by the party's account alone",
        ) from None
    except Exception:  # unsupported algorithms have classes of their own
        raise CertificateError(
            "the file holds no private key in PEM form", where=str(path)
        ) from None
    if public_octets(key) != public_octets(loaded):
        raise CertificateError(
            f"the private key does not belong to the certificate {certificate}",
            where=str(path),
            hint="name the key that was made with this certificate",
        )
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise CertificateError(
            "the private key is of a kind that TLS here does not use",
            where=str(path),
            hint="use an elliptic-curve key (P-256 or P-384) or an RSA key",
        )


def _check_dates(certificate: x509.Certificate, path: Path, now: datetime) -> None:
    start, end, of_whom = (
        certificate.not_valid_before_utc,
        certificate.not_valid_after_utc,
        f"the certificate of {_subject(certificate)}",
    )
    if now > end:
        raise CertificateError(
            f"{of_whom} has expired on {day(end)}",
            where=str(path),
            hint="have a new one issued, and check this machine's clock",
        )
    if now < start:
        raise CertificateError(
            f"{of_whom} is not valid before {day(start)}",
            where=str(path),
            hint="check this machine's clock",
        )


def _may_sign(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        # A certificate without the extension is no authority's [RFC 5280, 4.2.1.9].
        return False


def is_vouched_for(
    chain: Sequence[x509.Certificate],
    roots: Sequence[x509.Certificate],
    when: datetime | None = None,
) -> bool:
    """Whether one of the roots has signed a certificate, directly or by those that follow it.

    Dates of the roots are not checked, since a renewed one is younger than what its predecessor
    signed. Intermediate certificates must have been valid at ``when``; None for any time.
    """
    at = chain[0]
    # Bounded: certificates that signed each other have no top.
    for _ in range(LONGEST_CHAIN):
        if any(_signed_by(at, root) for root in roots):
            return True
        above = [
            issuer
            for issuer in chain[1:]
            if _may_sign(issuer)
            and (when is None or issuer.not_valid_before_utc <= when <= issuer.not_valid_after_utc)
            and _signed_by(at, issuer)
        ]
        if not above:
            return False
        at = above[0]
    return False


def _signed_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _check_purposes(certificate: x509.Certificate, path: Path) -> None:
    try:
        allowed = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        # A certificate without the extension is good for every purpose [RFC 5280, 4.2.1.12].
        return
    missing = [word for oid, word in PURPOSES.items() if oid not in allowed]
    if missing:
        raise CertificateError(
            f"the certificate is not made for {' and '.join(missing)}",
            where=str(path),
            hint="have it issued for serverAuth and clientAuth: either party may serve",
        )


def party_name(certificate: x509.Certificate, path: Path) -> str:
    """First DNS name of a certificate; ``CertificateError`` if there is none, or a wildcard."""
    try:
        alternatives = certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value
        names = alternatives.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        names = []
    # A wildcard would stand for parties that nobody has named.
    if not names or any("*" in name for name in names):
        raise CertificateError(
            "the certificate names no party, or more than one with an asterisk",
            where=str(path),
            hint="it needs a subject alternative name of type DNS, such as alice",
        )
    return names[0]


def _subject(certificate: x509.Certificate) -> str:
    # What a certificate calls itself is somebody else's text: quoted, and not too long.
    return repr(certificate.subject.rfc4514_string()[:80])


def day(moment: datetime) -> str:
    """A moment for a person.

    >>> day(datetime(2026, 12, 17, 9, tzinfo=UTC))
    '2026-12-17 09:00 UTC'
    """
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
