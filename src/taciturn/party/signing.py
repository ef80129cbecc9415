"""Verifies the signatures of an agreement, each made with the key of a side's certificate.

What a side signs is a text of its own: a tag, the digest of the agreement's canonical text, its
role, its name and the time. So a signature can be moved to no other agreement, side or time.

**Guarantee.** ``verified`` returns only if every signature in the file is whole, is by the key of a
certificate that this side's own authority vouches for, by intermediate certificates that were valid
when it was made, and that names that side, is of exactly this agreement, and is by the key that the
agreement names, where it names one; this side's own is by its present key. Asked for it, it also
insists that every side has signed, exactly once.

**Assumes.** ECDSA, RSA-PSS and SHA-256 hold. The authority gives nobody a certificate of another's
name: where the agreement names a fingerprint, that need not be assumed. The time of a signature is
what the signer's clock said: whoever has the key can write another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from taciturn.crypto.signatures import verify
from taciturn.errors import CertificateError, CryptoError, SignatureError
from taciturn.files import canonical_json
from taciturn.party.agreement_file import (
    TAG,
    AgreedSide,
    AgreementFile,
    Signature,
    moment_text,
    text_digest,
)
from taciturn.transport.tls import (
    Credentials,
    certificate_fingerprint,
    is_vouched_for,
    party_name,
)

# Two clocks may differ by a little.
CLOCK_SLACK = timedelta(minutes=5)
MOST_CHANGES = 5
_AGAIN = "propose it anew, and have every side sign that"
_ASK = "ask for the file as it was signed, or sign a new proposal"


@dataclass(frozen=True, slots=True)
class Signer:
    """A side whose signature was verified; ``time`` is by its own clock."""

    side: AgreedSide
    time: datetime
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Verifier:
    """Who verifies, by which present key and authority."""

    name: str
    fingerprint: str
    roots: tuple[x509.Certificate, ...] = field(repr=False)
    ca: str

    @classmethod
    def of(cls, own: Credentials, ca: Path) -> Verifier:
        """A side with these credentials."""
        roots = tuple(x509.load_pem_x509_certificates(own.authority))
        return cls(own.name, own.fingerprint, roots, str(ca))


def statement(digest: str, role: str, name: str, time: datetime) -> bytes:
    """What a side signs."""
    values = {"tag": f"{TAG} signature", "digest": digest, "role": role, "name": name}
    return canonical_json({**values, "time": moment_text(time)}).encode()


def require_in_time(agreement: AgreementFile, now: datetime) -> None:
    """Insists that a training, a prediction or a service may still begin with an agreement."""
    if now > agreement.valid_until:
        raise SignatureError(
            f"the agreement was valid until {day(agreement.valid_until)}, and that is over",
            where=agreement.path,
            hint=_AGAIN,
        )


def verified(
    agreement: AgreementFile, verifier: Verifier, now: datetime, *, all_sides: bool = True
) -> dict[str, Signer]:
    """Verifies every signature of an agreement (else SignatureError); who has signed, by name."""
    signers: dict[str, Signer] = {}
    for signature in agreement.signatures:
        side = _Examined(agreement, signature).side_for(verifier, now)
        if side.name in signers:
            raise SignatureError(
                f"{side.name} has signed the agreement twice",
                where=agreement.path,
                hint="remove one of the two blocks [[signature]]",
            )
        signers[side.name] = Signer(side, signature.time, signature.fingerprint)
    for side in agreement.sides if all_sides else ():
        if side.name not in signers:
            raise SignatureError(
                f"{side.name} ({side.role}) has not signed the agreement",
                where=agreement.path,
                hint=f"have it signed there: taciturn sign {Path(agreement.path).name} FILE",
            )
    own = signers.get(verifier.name)
    if own is not None and own.fingerprint != verifier.fingerprint:
        raise SignatureError(
            f"{verifier.name} signed the agreement with another key than it has now: "
            f"{_short(own.fingerprint)}, and the key is {_short(verifier.fingerprint)}",
            where=agreement.path,
            hint=f"a renewed certificate may keep its key; with a new key, {_AGAIN}",
        )
    return signers


@dataclass(frozen=True, slots=True)
class _Examined:
    agreement: AgreementFile
    signature: Signature

    def side_for(self, verifier: Verifier, now: datetime) -> AgreedSide:
        """The side that has signed, where all is right with it."""
        # First that it is a signature at all, then of what, then by whom.
        chain = self._chain()
        self._require_value(chain[0])
        self._require_this_agreement()
        side = self._side()
        if not self._vouched_for(chain, verifier):
            raise self._wrong(
                f"the certificate with which {side.name} signed is not of the authority in "
                f"{verifier.ca}"
            )
        if not self._vouched_for(chain, verifier, self.signature.time):
            raise self._wrong(
                f"an authority between {side.name}'s certificate and {verifier.ca} was not valid "
                f"on {day(self.signature.time)}, when {side.name} signed"
            )
        self._require_name(chain[0])
        if side.fingerprint not in (None, self.signature.fingerprint):
            raise self._wrong(
                f"{side.name} signed with another key than the agreement names: "
                f"{_short(self.signature.fingerprint)}, and the agreement has "
                f"{_short(str(side.fingerprint))}"
            )
        self._require_time(chain[0], now)
        return side

    def _vouched_for(
        self, chain: list[x509.Certificate], verifier: Verifier, when: datetime | None = None
    ) -> bool:
        try:
            return is_vouched_for(chain, verifier.roots, when)
        except Exception:  # certificates of others, in which anything may be damaged
            return False

    def _wrong(self, message: str, hint: str = _ASK) -> SignatureError:
        return SignatureError(message, where=self.agreement.path, hint=hint)

    def _chain(self) -> list[x509.Certificate]:
        try:
            chain = [x509.load_der_x509_certificate(part) for part in self.signature.chain]
            actual = certificate_fingerprint(chain[0])
        except Exception:  # what is unsupported has classes of its own
            raise self._wrong(
                f"the certificate with which {self.signature.name} signed cannot be read"
            ) from None
        if actual != self.signature.fingerprint:
            raise self._wrong(
                f"the signature of {self.signature.name} says the key {self.shown_key}, and its "
                f"certificate has {_short(actual)}"
            )
        return chain

    @property
    def shown_key(self) -> str:
        return _short(self.signature.fingerprint)

    def _require_value(self, own: x509.Certificate) -> None:
        one = self.signature
        octets = own.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        try:
            verify(octets, one.value, statement(one.digest, one.role, one.name, one.time))
        except CryptoError:
            raise self._wrong(
                f"the signature of {one.name} is not by its key, or its name, role, time or digest "
                "was changed"
            ) from None

    def _require_this_agreement(self) -> None:
        one, text = self.signature, self.agreement.canonical()
        if text_digest(one.text) != one.digest:
            raise self._wrong(f"the text in the signature of {one.name} is not the one it signed")
        if one.text == text:
            return
        before, now = _spread(one.text), _spread(text)
        if before.get("id") != now.get("id"):
            raise self._wrong(
                f"the signature of {one.name} is of another agreement: {before.get('id')}, and "
                f"this one is {now.get('id')}"
            )
        changes = "; ".join(_changes(before, now))
        raise self._wrong(
            f"the agreement was changed after {one.name} signed it: {changes}",
            hint=f"restore what {one.name} signed; or, if the change is wanted, {_AGAIN}",
        )

    def _side(self) -> AgreedSide:
        one = self.signature
        for side in self.agreement.sides:
            if (side.name, side.role) == (one.name, one.role):
                return side
        raise self._wrong(
            f"{one.name} has signed the agreement as {one.role}, and is not that side of it",
            hint="remove that block [[signature]]",
        )

    def _require_name(self, own: x509.Certificate) -> None:
        named = ""
        # What a certificate says of itself may be no certificate's language.
        with suppress(CertificateError, ValueError):
            named = party_name(own, Path(self.agreement.path))
        if named != self.signature.name:
            raise self._wrong(
                f"the certificate in the signature of {self.signature.name} names "
                f"{named[:80] or 'nobody'}"
            )

    def _require_time(self, own: x509.Certificate, now: datetime) -> None:
        one = self.signature
        if one.time > now + CLOCK_SLACK:
            raise self._wrong(
                f"{one.name} signed on {day(one.time)}, which is still to come",
                hint="check the clocks of both machines",
            )
        if one.time > self.agreement.valid_until:
            raise self._wrong(
                f"{one.name} signed on {day(one.time)}, when the agreement was over: it was valid "
                f"until {day(self.agreement.valid_until)}",
                hint=_AGAIN,
            )
        # As it was then: a renewed certificate does not undo what its predecessor signed.
        if not own.not_valid_before_utc <= one.time <= own.not_valid_after_utc:
            raise self._wrong(
                f"the certificate of {one.name} was not valid on {day(one.time)}, when it signed"
            )


def day(moment: datetime) -> str:
    """A moment for a person.

    >>> day(datetime(2026, 12, 17, 9, tzinfo=UTC))
    '2026-12-17 09:00 UTC'
    """
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _short(fingerprint: str) -> str:
    return f"{fingerprint[:16]}…"


def _spread(text: str) -> dict[str, Any]:
    """A canonical text as one table, with a dot between sections and keys.

    >>> _spread('{"id":"0f","side":{"bob":{"name":"bob"}}}')
    {'id': '0f', 'side.bob.name': 'bob'}
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return dict(_leaves("", values)) if isinstance(values, dict) else {}


def _leaves(place: str, table: Mapping[str, Any]) -> list[tuple[str, Any]]:
    leaves: list[tuple[str, Any]] = []
    for key, value in table.items():
        name = f"{place}.{key}".lstrip(".")
        leaves += _leaves(name, value) if isinstance(value, dict) and value else [(name, value)]
    return leaves


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What is another than it was, key by key.

    >>> _changes({"a": 1, "b": 2}, {"a": 3, "c": 4})
    ['a is 3, and was 1', 'b is gone, and was 2', 'c is 4, and was not there']
    """
    gone = object()
    keys = sorted(before.keys() | now.keys())
    apart = [key for key in keys if before.get(key, gone) != now.get(key, gone)]

    def word(value: object, absent: str) -> str:
        return absent if value is gone else json.dumps(value)[:80]

    lines = [
        f"{key[:80]} is {word(now.get(key, gone), 'gone')}, and was "
        f"{word(before.get(key, gone), 'not there')}"
        for key in apart[:MOST_CHANGES]
    ]
    rest = len(apart) - len(lines)
    # Equal values in two spellings, such as 1 and 1.0, are two texts.
    return [*lines, *([f"and {rest} more"] if rest else [])] or ["a number is spelled otherwise"]
