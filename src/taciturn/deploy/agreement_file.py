"""``AgreementFile``: what both sides sign, in one TOML file that both hold.

::

    format = 1                       # of the file
    id = "5e0c…"                     # of this agreement: no other one has it
    valid-until = 2026-12-17T09:00:00Z
    purpose = "…"                    # what people sign in words; may be left out
    [agreement]                      # every agreed setting with its value
    [study]                          # where there is one
    [side.bob]                       # name, fingerprint of the key, columns
    [side.alice]                     # or each of several Alices by her name
    [[signature]]                    # one for each side

What is signed is the canonical text: everything but the signatures, in one spelling, under a tag of
its own. Comments, blanks and the order of keys are no part of it; the order of several Alices is.

**Guarantee.** Two files with the same canonical text say the same. A key that is not known here is
refused and not skipped: nothing is signed that was not understood.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from taciturn.errors import ConfigError, SignatureError, nearest
from taciturn.files import canonical_json
from taciturn.settings.parties import MOST

FORMAT = 1
TAG = "taciturn agreement"
LARGEST_FILE = 1 << 20
MOST_COLUMNS = 10_000
LONGEST_PURPOSE = 2_000
LONGEST_NAME = 253
LONGEST_CHAIN = 5
# Bob, and as many Alices as there may be; a second signature of one of them is refused by name.
MOST_SIGNATURES = 2 * (MOST + 1)
BOB = "bob"
_WHOLE = "take a whole copy of the file, or propose it anew"
_HEX = re.compile("[0-9a-f]{64}")
_ID = re.compile("[0-9a-f]{32}")
_TOP = ("format", "id", "valid-until", "purpose", "agreement", "study", "side", "signature")
_SIDE = ("name", "fingerprint", "label", "columns", "prepared-columns")
_SIGNATURE = ("name", "role", "time", "digest", "fingerprint", "certificate", "text", "value")


@dataclass(frozen=True, slots=True)
class AgreedSide:
    """One side of an agreement; a value that is None is not disclosed.

    ``title`` is ``bob``, ``alice``, or the name of one of several Alices; ``name`` is the name in
    its certificate. ``fingerprint`` is that of its key; None where the proposer did not know it.
    ``columns`` are those of the unprepared table, and ``prepared`` is their number after
    preparation.
    """

    title: str
    name: str
    fingerprint: str | None = None
    label: str | None = None
    columns: tuple[str, ...] | None = None
    prepared: int | None = None

    @property
    def role(self) -> str:
        """``bob`` or ``alice``."""
        return BOB if self.title == BOB else "alice"

    def values(self) -> dict[str, Any]:
        """The side as the file has it."""
        columns = None if self.columns is None else list(self.columns)
        values = {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "label": self.label,
            "columns": columns,
            "prepared-columns": self.prepared,
        }
        return {key: value for key, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Signature:
    """One side's signature as the file has it, not yet verified.

    ``time`` is by the signer's clock; ``digest`` is SHA-256 of ``text``, the canonical text that
    was signed, which is stored so that an error can name later changes. ``chain`` is the signer's
    certificate, perhaps followed by intermediate ones, DER.
    """

    name: str
    role: str
    time: datetime
    digest: str
    fingerprint: str
    chain: tuple[bytes, ...] = field(repr=False)
    text: str = field(repr=False)
    value: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class AgreementFile:
    """An agreement of two sides or more.

    ``agreement`` and ``study`` are settings as a party's file would hold them; ``sides`` has Bob
    first; a training may begin until ``valid_until``.
    """

    path: str
    id: str
    valid_until: datetime
    agreement: Mapping[str, Any]
    sides: tuple[AgreedSide, ...]
    purpose: str = ""
    study: Mapping[str, Any] | None = None
    signatures: tuple[Signature, ...] = ()

    @classmethod
    def read(cls, path: Path) -> AgreementFile:
        """Reads a file."""
        try:
            with path.open("rb") as stream:
                octets = stream.read(LARGEST_FILE + 1)
        except OSError as problem:
            raise ConfigError(
                f"the agreement cannot be read: {problem.strerror}",
                where=str(path),
                hint="taciturn propose writes one",
            ) from None
        if len(octets) > LARGEST_FILE:
            raise ConfigError("the file is too large to be an agreement", where=str(path))
        try:
            return cls.parse(octets.decode(), str(path))
        except UnicodeDecodeError:
            raise ConfigError("the agreement is not text in UTF-8", where=str(path)) from None

    @classmethod
    def parse(cls, text: str, path: str) -> AgreementFile:
        """Reads a file's text."""
        try:
            values = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as problem:
            raise ConfigError(
                f"the agreement is not TOML: {problem}", where=path, hint=_WHOLE
            ) from None
        _require_format(values, path)
        _refuse_unknown(values, _TOP, path, "")
        read = _Reader(path)
        agreed, study = values.get("agreement"), values.get("study")
        if not isinstance(agreed, dict) or not agreed:
            raise ConfigError("the agreement has no section [agreement]", where=path, hint=_WHOLE)
        if study is not None and not isinstance(study, dict):
            raise ConfigError("study is no section of settings", where=path, hint=_WHOLE)
        made = cls(
            path=path,
            id=read.matching(values, "id", _ID, "32 hexadecimal digits"),
            valid_until=read.moment(values, "valid-until"),
            agreement=agreed,
            sides=read.sides(values.get("side")),
            purpose=read.text(values, "purpose", LONGEST_PURPOSE) if "purpose" in values else "",
            study=study,
            signatures=read.signatures(values.get("signature", [])),
        )
        made._require_parties()
        made.canonical()
        return made

    def body(self) -> dict[str, Any]:
        """What is signed, as the file has it: everything but the signatures."""
        values: dict[str, Any] = {
            "format": FORMAT,
            "id": self.id,
            "valid-until": self.valid_until,
            "purpose": self.purpose or None,
            "agreement": dict(self.agreement),
            "study": self.study,
            "side": {side.title: side.values() for side in self.sides},
        }
        return {key: value for key, value in values.items() if value is not None}

    def canonical(self) -> str:
        """One text for one agreement: what is signed."""
        body = self.body()
        parties = body["agreement"].get("parties")
        if isinstance(parties, dict):
            # Sorted keys would lose their order, which is agreed on.
            body["agreement"]["parties"] = [list(pair) for pair in parties.items()]
        body["valid-until"] = moment_text(self.valid_until)
        try:
            return canonical_json({"tag": TAG, **body})
        except (TypeError, ValueError, RecursionError):
            raise ConfigError(
                "a value of the agreement is neither a text nor a finite number, nor a list or "
                "section of them",
                where=self.path,
            ) from None

    def _require_parties(self) -> None:
        # Several Alices stand in two places of the file, which must agree.
        parties = self.agreement.get("parties")
        pinned = {side.name: side.fingerprint for side in self.alices}
        if parties is None and len(pinned) == 1:
            return
        if parties != pinned:
            raise ConfigError(
                "the sides are not those of [agreement.parties], by name and fingerprint",
                where=self.path,
            )

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical text."""
        return text_digest(self.canonical())

    @property
    def bob(self) -> AgreedSide:
        """Bob's side."""
        return self.sides[0]

    @property
    def alices(self) -> tuple[AgreedSide, ...]:
        """The other sides."""
        return self.sides[1:]


def text_digest(text: str) -> str:
    """SHA-256 of a canonical text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def moment_text(moment: datetime) -> str:
    """A moment in one spelling.

    >>> moment_text(datetime.fromisoformat("2026-12-17T10:00:00+01:00"))
    '2026-12-17T09:00:00+00:00'
    """
    return moment.astimezone(UTC).isoformat()


def _require_format(values: Mapping[str, Any], path: str) -> None:
    number = values.get("format")
    if number is None:
        raise ConfigError(
            "the file is no agreement: it has no format",
            where=path,
            hint="taciturn propose writes one",
        )
    if type(number) is not int or number != FORMAT:
        raise ConfigError(
            f"the agreement is of format {str(number)[:20]}; this program knows {FORMAT}",
            where=path,
            hint="use the version of taciturn that both sides have",
        )


def _kind(place: str) -> type[ConfigError]:
    return SignatureError if place.startswith("signature") else ConfigError


def _refuse_unknown(
    values: Mapping[str, Any], known: tuple[str, ...], path: str, place: str
) -> None:
    for key in values:
        if key not in known:
            within = f" in {place}" if place else ""
            raise _kind(place)(
                f"the agreement has a key that is not known here: {key[:80]!r}{within}",
                where=path,
                hint=nearest(key, known),
            )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the parts of a file, each of its kind and no longer than it may be."""

    path: str

    def wrong(self, key: str, kind: str, place: str = "") -> ConfigError:
        within = f"{place}: " if place else ""
        message = f"{within}{key} is missing, or is not {kind}"
        return _kind(place)(message, where=self.path, hint=_WHOLE)

    def text(self, values: Mapping[str, Any], key: str, longest: int, place: str = "") -> str:
        value = values.get(key)
        if not isinstance(value, str) or not value or len(value) > longest:
            raise self.wrong(key, f"a text of 1 to {longest:,} characters", place)
        return value

    def matching(
        self,
        values: Mapping[str, Any],
        key: str,
        form: re.Pattern[str],
        kind: str,
        place: str = "",
    ) -> str:
        value = values.get(key)
        if not isinstance(value, str) or not form.fullmatch(value):
            raise self.wrong(key, kind, place)
        return value

    def moment(self, values: Mapping[str, Any], key: str, place: str = "") -> datetime:
        value = values.get(key)
        if not isinstance(value, datetime) or value.tzinfo is None:
            raise self.wrong(
                key, "a date with time and offset, such as 2026-12-31T12:00:00Z", place
            )
        try:
            return value.astimezone(UTC)
        except OverflowError:
            raise self.wrong(key, "a moment that a clock can show", place) from None

    def sides(self, table: object) -> tuple[AgreedSide, ...]:
        if not isinstance(table, dict) or BOB not in table or not 2 <= len(table) <= MOST + 1:
            raise ConfigError(
                "the agreement needs [side.bob] and another side", where=self.path, hint=_WHOLE
            )
        order = [BOB, *(title for title in table if title != BOB)]
        if len(order) == 2 and order[1] != "alice":
            raise ConfigError(
                "with one Alice her section is [side.alice]", where=self.path, hint=_WHOLE
            )
        sides = tuple(self._side(title, table[title]) for title in order)
        for title, side in zip(order[1:], sides[1:], strict=True):
            if len(order) > 2 and title != side.name:
                raise ConfigError(
                    f"with several Alices a side is called by its name: {side.name!r}, and not "
                    f"{title[:80]!r}",
                    where=self.path,
                )
        names = [side.name for side in sides]
        if len(set(names)) < len(names):
            raise ConfigError(
                "two sides of the agreement have the same name", where=self.path, hint=_WHOLE
            )
        return sides

    def _side(self, title: str, values: object) -> AgreedSide:
        place = f"[side.{title[:80]}]"
        if not isinstance(values, dict):
            raise ConfigError(f"{place} is no section", where=self.path, hint=_WHOLE)
        _refuse_unknown(values, _SIDE, self.path, place)
        columns, prepared = values.get("columns"), values.get("prepared-columns")
        if columns is not None and not _are_texts(columns, MOST_COLUMNS):
            raise self.wrong("columns", f"a list of up to {MOST_COLUMNS:,} names", place)
        if prepared is not None and (type(prepared) is not int or prepared < 0):
            raise self.wrong("prepared-columns", "a number of columns", place)
        return AgreedSide(
            title=title,
            name=self.text(values, "name", LONGEST_NAME, place),
            fingerprint=self._fingerprint(values, place) if "fingerprint" in values else None,
            label=self.text(values, "label", LONGEST_PURPOSE, place) if "label" in values else None,
            columns=None if columns is None else tuple(columns),
            prepared=prepared,
        )

    def _fingerprint(self, values: Mapping[str, Any], place: str) -> str:
        return self.matching(values, "fingerprint", _HEX, "64 hexadecimal digits", place)

    def signatures(self, blocks: object) -> tuple[Signature, ...]:
        if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
            raise SignatureError(
                "a signature is a block [[signature]]", where=self.path, hint=_WHOLE
            )
        if len(blocks) > MOST_SIGNATURES:
            raise SignatureError(
                "there are more signatures than sides", where=self.path, hint=_WHOLE
            )
        return tuple(self._signature(block, number) for number, block in enumerate(blocks, start=1))

    def _signature(self, values: dict[str, Any], number: int) -> Signature:
        name = values.get("name")
        whose = f" of {name[:80]}" if isinstance(name, str) and name else ""
        place = f"signature {number}{whose} is not whole"
        _refuse_unknown(values, _SIGNATURE, self.path, f"signature {number}{whose}")
        role, chain = values.get("role"), values.get("certificate")
        if role not in (BOB, "alice"):
            raise self.wrong("role", "alice or bob", place)
        if not _are_texts(chain, LONGEST_CHAIN) or not chain:
            raise self.wrong("certificate", "a list of certificates", place)
        return Signature(
            name=self.text(values, "name", LONGEST_NAME, place),
            role=role,
            time=self.moment(values, "time", place),
            digest=self.matching(values, "digest", _HEX, "64 hexadecimal digits", place),
            fingerprint=self._fingerprint(values, place),
            chain=tuple(self._octets("certificate", part, place) for part in chain),
            text=self.text(values, "text", LARGEST_FILE, place),
            value=self._octets("value", values.get("value"), place),
        )

    def _octets(self, key: str, value: object, place: str) -> bytes:
        """Bytes in base64, in the one spelling that they have: spare bits are zero."""
        octets = b""
        with suppress(ValueError):
            octets = b64decode(value, validate=True) if isinstance(value, str) else b""
        if not octets or b64encode(octets).decode() != value:
            raise self.wrong(key, "in base64", place)
        return octets


def _are_texts(value: object, most: int) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= most
        and all(isinstance(part, str) and part for part in value)
    )
