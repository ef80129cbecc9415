"""Requests for certificates, their signing by a trial's authority, and renewal.

A party makes its own key and a request (PKCS #10), which holds the public key and the name; the
authority signs it, and no private key travels. Renewal keeps keys and names and moves the dates: a
peer that knows a party by its name and authority notices nothing, and sessions resume.

Guarantee: a private key is written by its owner alone, never shown and never replaced. Of a request
the authority takes the public key and one name; whatever else it asks for is left out.

Assumes: whoever signs has compared the fingerprint of a request with the party that sent it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from taciturn.deploy.transport.address import check_name
from taciturn.deploy.transport.certs import (
    AUTHORITY,
    AUTHORITY_KEY,
    CLOCK_SLACK,
    Issuer,
    Made,
    PublicKey,
    certify,
    check_days,
    key_pem,
    new_key,
    pem,
    self_signed,
    subject_of,
    write_new,
)
from taciturn.deploy.transport.tls import (
    certificate_fingerprint,
    fingerprint,
    party_name,
    read_certificates,
    read_file,
)
from taciturn.errors import CertificateError, ConfigError
from taciturn.faces import Hint
from taciturn.files import reporting_write_errors, sync_folder

FEWEST_RSA_BITS = 2048


@dataclass(frozen=True, slots=True)
class Request:
    """What a party has made to ask an authority for a certificate.

    Attributes:
        name: The party.
        key: Its private key's file, which stays where it is.
        request: The request's file.
        fingerprint: SHA-256 of the public key, for whoever signs to compare.
    """

    name: str
    key: Path
    request: Path
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Signed:
    """A party's certificate.

    Attributes:
        name: The party.
        certificate: Its file.
        fingerprint: SHA-256 of the public key.
        expires: When it ends: after the days that were asked for, or with its authority.
    """

    name: str
    certificate: Path
    fingerprint: str
    expires: datetime


def show_certificate(path: Path) -> Signed:
    """Whose a certificate is, with the fingerprint that an agreement pins.

    Raises:
        CertificateError: The file holds no party's certificate.
    """
    own = read_certificates(path)[0]
    return Signed(
        party_name(own, path), path, certificate_fingerprint(own), own.not_valid_after_utc
    )


def request_certificate(folder: Path, name: str) -> Request:
    """Makes a party's private key, where it has none, and a request for a certificate.

    Args:
        folder: Where the key is, and the request goes; made if it is not there.
        name: The party's name, which its peer pins.

    Raises:
        ConfigError: The name is not usable.
        CertificateError: The key that is there is not fit for use.
        OutputError: A file cannot be written.
    """
    check_name(name)
    if name == "ca":
        raise ConfigError("the authority's own files are called ca", setting="name")
    key_file, request_file = folder / f"{name}.key", folder / f"{name}.csr"
    if key_file.exists():
        key = _load_key(key_file)
    else:
        key = new_key()
        write_new(folder, {key_file: key_pem(key)})
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(subject_of(name))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write_over(request_file, request.public_bytes(Encoding.PEM))
    return Request(name, key_file, request_file, fingerprint(key.public_key()))


def sign_request(
    folder: Path, request: Path, *, days: int = 90, renew: bool = False, name: str | None = None
) -> Signed:
    """Signs a party's request with a trial's authority.

    Args:
        folder: Where the authority's certificate and key are, and the party's certificate goes.
        request: The request's file.
        days: How long the certificate is valid, and no longer than the authority's own.
        renew: Whether a certificate of that party that is there is replaced.
        name: The party that it must be of; None for whichever it names.

    Raises:
        ConfigError: The number of days is not usable.
        CertificateError: The request or the authority is not fit for use.
        OutputError: The certificate cannot be written, or is there already.
    """
    check_days(days)
    asked = _load_request(request)
    party = _name_of(asked, request)
    if name not in (None, party):
        raise CertificateError(
            f"the request is of {party!r}, not of {name!r}",
            where=str(request),
            hint="compare names and fingerprint with the party that sent it",
        )
    issuer, key = _load_issuer(folder), _usable_key(asked, request)
    start, expires = _validity(days, issuer)
    content = pem(certify(issuer, party, key, start, expires))
    certificate = folder / f"{party}.pem"
    if renew:
        _write_over(certificate, content)
    else:
        write_new(folder, {certificate: content})
    return Signed(party, certificate, fingerprint(key), expires)


def renew_certificates(folder: Path, names: Sequence[str] = (), *, days: int = 90) -> Made:
    """Renews a trial's authority and its parties' certificates; keys and names stay.

    Certificates of before and after fit each other, as long as none has expired: the two sides may
    take their new files one after the other.

    Args:
        folder: Where the files are.
        names: The parties; all whose certificates are there where none is named.
        days: How long the certificates are valid from now on.

    Raises:
        ConfigError: The number of days is not usable.
        CertificateError: The authority's key or a certificate is absent, or not fit for use.
        OutputError: A file cannot be written.
    """
    check_days(days)
    issuer = _load_issuer(folder, expired=True)
    start, expires = _dates(days)
    renewed = Issuer(
        self_signed(issuer.certificate.subject, issuer.key, start, expires), issuer.key
    )
    there = sorted(path.stem for path in folder.glob("*.pem") if path.name != AUTHORITY)
    parties = [(name, folder / f"{name}.pem", folder / f"{name}.key") for name in names or there]
    files = {folder / AUTHORITY: pem(renewed.certificate)}
    for name, certificate, _ in parties:
        files[certificate] = pem(_again(renewed, issuer, name, certificate, start, expires))
    # Only what can be renewed as a whole is written.
    for path, content in files.items():
        _write_over(path, content)
    return Made(folder / AUTHORITY, folder / AUTHORITY_KEY, tuple(parties), expires)


def _again(
    renewed: Issuer,
    issuer: Issuer,
    name: str,
    path: Path,
    start: datetime,
    expires: datetime,
) -> x509.Certificate:
    """The same certificate with later dates."""
    own = read_certificates(path)[0]
    if party_name(own, path) != name:
        raise CertificateError(
            f"the certificate is of {party_name(own, path)!r}, not of {name!r}", where=str(path)
        )
    try:
        own.verify_directly_issued_by(issuer.certificate)
    except Exception:
        raise CertificateError(
            "the certificate was not signed by the authority in this folder",
            where=str(path),
            hint="have it renewed by the authority that signed it",
        ) from None
    key = own.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey):
        raise _unusable(path)
    return certify(renewed, name, key, start, expires)


def _dates(days: int) -> tuple[datetime, datetime]:
    now = datetime.now(UTC)
    return now - CLOCK_SLACK, now + timedelta(days=days)


def _validity(days: int, issuer: Issuer) -> tuple[datetime, datetime]:
    """From now on, and not beyond the authority's own end."""
    start, expires = _dates(days)
    return start, min(expires, issuer.certificate.not_valid_after_utc)


def _load_issuer(folder: Path, *, expired: bool = False) -> Issuer:
    """A trial's authority, whose key is there; one that has expired only to be renewed."""
    path = folder / AUTHORITY_KEY
    if not path.exists():
        raise CertificateError(
            "the authority's key is not here, and without it nothing can be signed",
            where=str(path),
            hint=Hint("name the folder that has it with {out}; with another authority, ask that"),
        )
    certificate, key = read_certificates(folder / AUTHORITY)[0], _load_key(path)
    if fingerprint(key.public_key()) != certificate_fingerprint(certificate):
        raise CertificateError(
            f"the key does not belong to the authority in {folder / AUTHORITY}", where=str(path)
        )
    if not expired and certificate.not_valid_after_utc <= datetime.now(UTC):
        raise CertificateError(
            "the authority's own certificate has expired",
            where=str(folder / AUTHORITY),
            hint=Hint("renew it first with {renew}", renew=True),
        )
    return Issuer(certificate, key)


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    content = read_file(path, "private key")
    try:
        key = load_pem_private_key(content, password=None)
    except Exception:  # a passphrase, another form, an algorithm that is not supported
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError(
            "the file holds no elliptic-curve key in PEM form without a passphrase",
            where=str(path),
            hint="use one that taciturn certs has made, or make the request with your own tools",
        )
    return key


def _load_request(path: Path) -> x509.CertificateSigningRequest:
    content = read_file(path, "request")
    try:
        asked = x509.load_pem_x509_csr(content)
        # Whoever asks has the private key.
        sound = asked.is_signature_valid
    except Exception:  # what is unsupported has classes of its own
        sound = False
    if not sound:
        raise CertificateError(
            "the file holds no certificate request in PEM form, or its signature is wrong",
            where=str(path),
            hint="a request begins with -----BEGIN CERTIFICATE REQUEST-----",
        )
    return asked


def _name_of(asked: x509.CertificateSigningRequest, path: Path) -> str:
    """The one name that a request is for."""
    try:
        alternatives = asked.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names = alternatives.get_values_for_type(x509.DNSName)
    except (x509.ExtensionNotFound, ValueError):
        names = []
    with contextlib.suppress(ConfigError):
        if len(names) == 1 and names[0] != "ca":
            return check_name(names[0])
    raise CertificateError(
        "the request does not name exactly one party",
        where=str(path),
        hint="it needs one subject alternative name of type DNS, such as alice",
    )


def _usable_key(asked: x509.CertificateSigningRequest, path: Path) -> PublicKey:
    key = asked.public_key()
    curves = (ec.SECP256R1, ec.SECP384R1)
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, curves):
        return key
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= FEWEST_RSA_BITS:
        return key
    raise _unusable(path)


def _unusable(path: Path) -> CertificateError:
    return CertificateError(
        "the public key is of a kind that is not signed here",
        where=str(path),
        hint=f"use elliptic curve P-256 or P-384, or RSA with {FEWEST_RSA_BITS} bits or more",
    )


def _write_over(path: Path, content: bytes) -> None:
    """A public file, whole or not at all, in place of whatever has its name."""
    fresh = path.with_name(path.name + ".new")
    with reporting_write_errors(path, "certificate"):
        try:
            fresh.write_bytes(content)
            fresh.chmod(0o644)
            fresh.replace(path)
            sync_folder(path.parent)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(fresh)
            raise
