"""Further certificates of a trial's authority: other keys under a party's name, and renewals."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from taciturn.transport.certs import CLOCK_SLACK, Issuer, certify, new_key, pem, self_signed


def issue_again(trial: Path, folder: Path, name: str, key: rsa.RSAPrivateKey | None = None) -> None:
    """Writes to a new folder the authority of a trial, and its certificate for another key.

    Args:
        trial: Where the authority's certificate and key are.
        folder: The folder to make.
        name: The party that the certificate names.
        key: The party's key; None for a new one.
    """
    folder.mkdir()
    shutil.copy(trial / "ca.pem", folder)
    own = key or new_key()
    signed = certify(_issuer(trial), name, own.public_key(), *_dates(60))
    (folder / f"{name}.pem").write_bytes(pem(signed))
    path = folder / f"{name}.key"
    path.write_bytes(own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)


def renew(folder: Path, days: int = 90) -> None:
    """Renews a trial's authority and its parties' certificates; keys and names stay."""
    old, dates = _issuer(folder), _dates(days)
    issuer = Issuer(self_signed(old.certificate.subject, old.key, *dates), old.key)
    (folder / "ca.pem").write_bytes(pem(issuer.certificate))
    for path in folder.glob("*.key"):
        if path.stem != "ca":
            public = _key(path).public_key()
            path.with_suffix(".pem").write_bytes(pem(certify(issuer, path.stem, public, *dates)))


def _dates(days: int) -> tuple[datetime, datetime]:
    now = datetime.now(UTC)
    return now - CLOCK_SLACK, now + timedelta(days=days)


def _issuer(folder: Path) -> Issuer:
    certificate = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    return Issuer(certificate, _key(folder / "ca.key"))


def _key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(path.read_bytes(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key
