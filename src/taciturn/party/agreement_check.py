"""Whether one side fits the agreement that its file names, and everybody has signed it.

What a side signs is a text of its own: a tag, the digest of the agreement's canonical text, its
role, its name and the time. So a signature can be moved to no other agreement, side or time.

**Guarantee.** ``require_signed`` returns only if this side and its peers are the sides of the
agreement, every signature that is there is right, and none is missing where this side's file says
``signed = true``. ``verified`` returns only if every signature in the file is whole, is by the key
of a certificate that this side's own authority vouches for, by intermediate certificates that were
valid when it was made, and that names that side, is of exactly this agreement, and is by the key
that the agreement names, where it names one; this side's own is by its present key. Asked for it,
it also insists that every side has signed, exactly once.

**Assumes.** ECDSA, RSA-PSS and SHA-256 hold. The authority gives nobody a certificate of another's
name: where the agreement names a fingerprint, that need not be assumed. The time of a signature is
what the signer's clock said: anyone who has the key can write another.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

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
from taciturn.party.config import PartyConfig
from taciturn.party.credentials import credentials_of
from taciturn.party.tables import PartyTables
from taciturn.settings.agreement import differences
from taciturn.transport.tls import (
    Credentials,
    certificate_fingerprint,
    day,
    is_vouched_for,
    party_name,
    public_octets,
)

# Two clocks may differ by a little.
CLOCK_SLACK = timedelta(minutes=5)
_AGAIN = "propose it anew, and have every side sign that"
_ASK = "ask for the file as it was signed, or sign a new proposal"
_SIGN_ANEW = "propose it anew, and have every side sign that; or restore what was signed"


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
    def from_credentials(cls, credentials: Credentials, ca: Path) -> Verifier:
        """A side with these credentials."""
        roots = tuple(x509.load_pem_x509_certificates(credentials.authority))
        return cls(credentials.name, credentials.fingerprint, roots, str(ca))


def require_signed(config: PartyConfig, now: datetime | None = None) -> dict[str, Signer]:
    """Verifies the agreement that a party's file names, and returns who has signed it, by name.

    Nobody is returned where the agreement stands in the party's own file.
    """
    agreement = config.agreement_file
    if agreement is None:
        return {}
    credentials, ca = credentials_of(config), config.path(config.link.ca)
    own_side(config, agreement, credentials)
    at = now or datetime.now(UTC)
    return verified(
        agreement, Verifier.from_credentials(credentials, ca), at, all_sides=config.signed
    )


def peer_fingerprints(config: PartyConfig) -> dict[str, str]:
    """Fingerprints of the keys that the peers must show, by their names, as far as agreed on."""
    agreement = config.agreement_file
    if agreement is None:
        return {}
    signers = require_signed(config)
    pinned = {side.name: side.fingerprint for side in agreement.sides if side.fingerprint}
    keys = {**pinned, **{name: signer.fingerprint for name, signer in signers.items()}}
    return {name: key for name, key in keys.items() if name in config.peers}


def require_begun_in_time(config: PartyConfig, now: datetime | None = None) -> None:
    """Insists that a session may begin now; one that has begun may be finished later."""
    if config.agreement_file is not None:
        require_in_time(config.agreement_file, now or datetime.now(UTC))


def own_side(config: PartyConfig, agreement: AgreementFile, credentials: Credentials) -> AgreedSide:
    """This side's part of an agreement."""
    sides = [side for side in agreement.sides if side.role == config.role]
    side = next((candidate for candidate in sides if candidate.name == credentials.name), None)
    if side is None:
        names = " or ".join(candidate.name for candidate in sides)
        raise SignatureError(
            f"the agreement's {config.role} is {names}, and this side's certificate names "
            f"{credentials.name}",
            where=agreement.path,
            hint="name this side's own certificate in [link], or ask for a proposal with its name",
        )
    if side.fingerprint not in (None, credentials.fingerprint):
        raise SignatureError(
            f"the agreement has the key {str(side.fingerprint)[:16]}… for {credentials.name}, "
            f"and this side's certificate has {credentials.fingerprint[:16]}…",
            where=agreement.path,
            hint="name the certificate that was agreed on in [link], or ask for a new proposal",
        )
    expected = {candidate.name for candidate in config.side.counterparts(agreement)}
    if set(config.peers) != expected:
        raise SignatureError(
            f"the agreement is with {', '.join(sorted(expected))}, and this side's peer is "
            f"{config.peer}",
            where=agreement.path,
            hint="write the name of the agreement as peer in [link], or ask for a new proposal",
        )
    return side


def misfits(config: PartyConfig, tables: PartyTables, side: AgreedSide) -> list[str]:
    """Statements of an agreement that this side's table contradicts."""
    problems = []
    sources, prepared = source_columns(tables), len(tables.preparation.columns)
    if side.columns is not None and set(side.columns) != set(sources):
        gone = [name for name in side.columns if name not in sources]
        new = [name for name in sources if name not in side.columns]
        changes = [f"{name} is gone" for name in gone] + [f"{name} is new" for name in new]
        rest = len(changes) - 5
        listed = [*changes[:5], *([f"and {rest} more"] if rest > 0 else [])]
        problems.append(f"the columns are not those of the agreement: {', '.join(listed)}")
    if side.prepared is not None and side.prepared != prepared:
        problems.append(
            f"there are {prepared} prepared columns, and the agreement has {side.prepared}"
        )
    if side.label is not None and side.label != config.data.label:
        problems.append(f"the label is {config.data.label}, and the agreement has {side.label}")
    return problems


def require_fit(config: PartyConfig, tables: PartyTables) -> None:
    """Insists that this side's table is the one that the agreement speaks of."""
    agreement = config.agreement_file
    if agreement is None:
        return
    problems = misfits(config, tables, own_side(config, agreement, credentials_of(config)))
    if problems:
        raise SignatureError(
            f"this side's table does not fit the agreement: {'; '.join(problems)}",
            where=f"{config.where}, [data]",
            hint=_SIGN_ANEW,
        )


def source_columns(tables: PartyTables) -> tuple[str, ...]:
    """A table's columns as its file has them, as far as they are used, in order."""
    return tuple(dict.fromkeys(tables.preparation.sources))


# --- signatures -----------------------------------------------------------------------------------


def statement(digest: str, role: str, name: str, time: datetime) -> bytes:
    """Text that a side signs."""
    values = {"tag": f"{TAG} signature", "digest": digest, "role": role, "name": name}
    return canonical_json({**values, "time": moment_text(time)}).encode()


def require_in_time(agreement: AgreementFile, now: datetime) -> None:
    """Insists that a training, a prediction or a service may still begin with an agreement."""
    if now > agreement.valid_until:
        raise SignatureError(
            f"the agreement expired on {day(agreement.valid_until)}",
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
                hint="have it signed there: taciturn agreement sign "
                f"{Path(agreement.path).name} FILE",
            )
    signer = signers.get(verifier.name)
    if signer is not None and signer.fingerprint != verifier.fingerprint:
        raise SignatureError(
            f"{verifier.name} signed the agreement with another key than it has now: "
            f"{_short(signer.fingerprint)}, and the key is {_short(verifier.fingerprint)}",
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
        side, signed = self._side(), self.signature
        self._require(
            self._vouched_for(chain, verifier),
            f"the certificate with which {side.name} signed is not of the authority in "
            f"{verifier.ca}",
        )
        self._require(
            self._vouched_for(chain, verifier, signed.time),
            f"an authority between {side.name}'s certificate and {verifier.ca} was not valid "
            f"on {day(signed.time)}, when {side.name} signed",
        )
        self._require_name(chain[0])
        self._require(
            side.fingerprint in (None, signed.fingerprint),
            f"{side.name} signed with another key than the agreement names: "
            f"{_short(signed.fingerprint)}, and the agreement has {_short(str(side.fingerprint))}",
        )
        self._require_time(chain[0], now)
        return side

    def _require(self, sound: bool, problem: str, hint: str = _ASK) -> None:
        if not sound:
            raise SignatureError(problem, where=self.agreement.path, hint=hint)

    def _vouched_for(
        self, chain: list[x509.Certificate], verifier: Verifier, when: datetime | None = None
    ) -> bool:
        # Certificates of others, in which anything may be damaged.
        with suppress(Exception):
            return is_vouched_for(chain, verifier.roots, when)
        return False

    def _chain(self) -> list[x509.Certificate]:
        signed, chain, actual = self.signature, [], ""
        with suppress(Exception):  # what is unsupported has classes of its own
            chain = [x509.load_der_x509_certificate(encoded) for encoded in signed.chain]
            actual = certificate_fingerprint(chain[0])
        self._require(
            bool(actual), f"the certificate with which {signed.name} signed cannot be read"
        )
        self._require(
            actual == signed.fingerprint,
            f"the signature of {signed.name} says the key {_short(signed.fingerprint)}, and its "
            f"certificate has {_short(actual)}",
        )
        return chain

    def _require_value(self, certificate: x509.Certificate) -> None:
        signed, sound = self.signature, False
        text = statement(signed.digest, signed.role, signed.name, signed.time)
        with suppress(CryptoError):
            verify(public_octets(certificate), signed.value, text)
            sound = True
        self._require(
            sound,
            f"the signature of {signed.name} is not by its key, or its name, role, time or digest "
            "was changed",
        )

    def _require_this_agreement(self) -> None:
        signed, text = self.signature, self.agreement.canonical()
        self._require(
            text_digest(signed.text) == signed.digest,
            f"the text in the signature of {signed.name} is not the one it signed",
        )
        if signed.text == text:
            return
        other = self.agreement.id
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            other = json.loads(signed.text)["id"]
        self._require(
            other == self.agreement.id,
            f"the signature of {signed.name} is of another agreement: {str(other)[:80]}, and this "
            f"one is {self.agreement.id}",
        )
        changes = differences(signed.text, text, "when signed", "now")
        # Equal values in two spellings, such as 1 and 1.0, are two texts.
        words = "; ".join(changes) or "a number is spelled otherwise"
        self._require(
            False,
            f"the agreement was changed after {signed.name} signed it: {words}",
            f"restore what {signed.name} signed; or, if the change is wanted, {_AGAIN}",
        )

    def _side(self) -> AgreedSide:
        signed = self.signature
        for side in self.agreement.sides:
            if (side.name, side.role) == (signed.name, signed.role):
                return side
        raise SignatureError(
            f"{signed.name} has signed the agreement as {signed.role}, and is not that side of it",
            where=self.agreement.path,
            hint="remove that block [[signature]]",
        )

    def _require_name(self, certificate: x509.Certificate) -> None:
        named, signer = "", self.signature.name
        # What a certificate says of itself may be no certificate's language.
        with suppress(CertificateError, ValueError):
            named = party_name(certificate, Path(self.agreement.path))
        self._require(
            named == signer,
            f"the certificate in the signature of {signer} names {named[:80] or 'nobody'}",
        )

    def _require_time(self, certificate: x509.Certificate, now: datetime) -> None:
        name, time, until = self.signature.name, self.signature.time, self.agreement.valid_until
        self._require(
            time <= now + CLOCK_SLACK,
            f"{name} signed on {day(time)}, which is still to come",
            "check the clocks of both machines",
        )
        self._require(
            time <= until,
            f"{name} signed on {day(time)}, after the agreement had expired on {day(until)}",
            _AGAIN,
        )
        # As it was then: a renewed certificate does not undo what its predecessor signed.
        self._require(
            certificate.not_valid_before_utc <= time <= certificate.not_valid_after_utc,
            f"the certificate of {name} was not valid on {day(time)}, when it signed",
        )


def _short(fingerprint: str) -> str:
    return f"{fingerprint[:16]}…"
