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
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from taciturn.errors import ConfigError, SignatureError
from taciturn.file_kinds import file_kind
from taciturn.files import canonical_json, parse_toml
from taciturn.settings.schema import MOST_PARTIES

FORMAT = 1
TAG = "taciturn agreement"
LARGEST_FILE = 1 << 20
MOST_COLUMNS = 10_000
LONGEST_PURPOSE = 2_000
LONGEST_NAME = 253
LONGEST_CHAIN = 5
# Bob, and as many Alices as there may be; a second signature of one of them is refused by name.
MOST_SIGNATURES = 2 * (MOST_PARTIES + 1)
BOB = "bob"
_WHOLE = "take a whole copy of the file, or propose it anew"


def _octets(value: object) -> bytes:
    """Bytes in base64, in the one spelling that they have: spare bits are zero."""
    octets = b64decode(value, validate=True) if isinstance(value, str) else b""
    if not octets or b64encode(octets).decode() != value:
        raise ValueError("it is not in base64")
    return octets


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("it is not a moment that a clock can show") from None


_Text = Annotated[str, Field(strict=True, min_length=1, max_length=LONGEST_PURPOSE)]
_Column = Annotated[str, Field(strict=True, min_length=1)]
_Name = Annotated[str, Field(strict=True, min_length=1, max_length=LONGEST_NAME)]
_Digest = Annotated[str, Field(strict=True, pattern="^[0-9a-f]{64}$")]
_Moment = Annotated[AwareDatetime, Field(strict=True), AfterValidator(_in_utc)]
_Octets = Annotated[bytes, BeforeValidator(_octets)]


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
    def role(self) -> Literal["alice", "bob"]:
        """``bob`` or ``alice``."""
        return "bob" if self.title == BOB else "alice"

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

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    name: _Name
    role: Literal["alice", "bob"]
    time: _Moment
    digest: _Digest
    fingerprint: _Digest
    chain: Annotated[
        tuple[_Octets, ...], Field(alias="certificate", min_length=1, max_length=LONGEST_CHAIN)
    ] = field(repr=False)
    text: Annotated[str, Field(strict=True, min_length=1, max_length=LARGEST_FILE)] = field(
        repr=False
    )
    value: _Octets = field(repr=False)


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _SideTable(_Table):
    name: _Name
    fingerprint: _Digest | None = None
    label: _Text | None = None
    columns: Annotated[tuple[_Column, ...], Field(max_length=MOST_COLUMNS)] | None = None
    prepared: Annotated[int | None, Field(alias="prepared-columns", strict=True, ge=0)] = None


class _FileTable(_Table):
    format: int
    id: Annotated[str, Field(strict=True, pattern="^[0-9a-f]{32}$")]
    valid_until: Annotated[_Moment, Field(alias="valid-until")]
    purpose: _Text | None = None
    agreement: Annotated[dict[str, Any], Field(min_length=1)]
    study: dict[str, Any] | None = None
    side: Annotated[dict[str, _SideTable], Field(min_length=2, max_length=MOST_PARTIES + 1)]
    signature: Annotated[tuple[Signature, ...], Field(max_length=MOST_SIGNATURES)] = ()


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
                hint="taciturn agreement propose writes one",
            ) from None
        kind = file_kind(path)
        if kind and "TOML" not in kind:
            raise ConfigError(
                f"this is {kind}, and not an agreement",
                where=str(path),
                hint="taciturn propose writes one",
            )
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
            values = parse_toml(text)
        except ValueError as problem:
            raise ConfigError(
                f"the agreement is not TOML: {problem}", where=path, hint=_WHOLE
            ) from None
        _require_format(values, path)
        try:
            table = _FileTable.model_validate(values)
        except ValidationError as problem:
            raise _wrong(problem, values, path) from None
        made = cls(
            path=path,
            id=table.id,
            valid_until=table.valid_until,
            agreement=table.agreement,
            sides=_sides(table.side, path),
            purpose=table.purpose or "",
            study=table.study,
            signatures=table.signature,
        )
        made._require_parties()
        made.canonical()
        return made

    def body(self) -> dict[str, Any]:
        """Signed part of the file: everything but the signatures."""
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
            hint="taciturn agreement propose writes one",
        )
    if type(number) is not int or number != FORMAT:
        raise ConfigError(
            f"the agreement is of format {str(number)[:20]}; this program knows {FORMAT}",
            where=path,
            hint="use the version of taciturn that both sides have",
        )


def _wrong(problem: ValidationError, values: Mapping[str, Any], path: str) -> ConfigError:
    first = problem.errors(include_url=False, include_context=False, include_input=False)[0]
    place = [str(part)[:80] for part in first["loc"]]
    kind, subject = ConfigError, ".".join(place)
    if place[0] == "signature":
        kind = SignatureError
        if len(place) > 2:
            name = values["signature"][first["loc"][1]].get("name")
            subject = f"{'.'.join(place[2:])} in the signature of {str(name)[:80]}"
    reason = first["msg"].removeprefix("Value error, ")
    return kind(f"{subject}: {reason[:1].lower()}{reason[1:]}", where=path, hint=_WHOLE)


def _sides(tables: Mapping[str, _SideTable], path: str) -> tuple[AgreedSide, ...]:
    if BOB not in tables:
        raise ConfigError("the agreement needs [side.bob]", where=path, hint=_WHOLE)
    order = [BOB, *(title for title in tables if title != BOB)]
    if len(order) == 2 and order[1] != "alice":
        raise ConfigError("with one Alice her section is [side.alice]", where=path, hint=_WHOLE)
    for title in order[1:] if len(order) > 2 else ():
        if title != tables[title].name:
            raise ConfigError(
                f"with several Alices a side is called by its name: {tables[title].name!r}, and "
                f"not {title[:80]!r}",
                where=path,
            )
    if len({side.name for side in tables.values()}) < len(tables):
        raise ConfigError("two sides of the agreement have the same name", where=path, hint=_WHOLE)
    return tuple(AgreedSide(title, **dict(tables[title])) for title in order)
