"""The manifest of a result folder: what made a result, of which data, and which files hold it.

It names no secret: settings are public or this side's own limits, data are counts and digests, and
what stands before the ``@`` of an address in a command is left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from taciturn.files import canonical_json
from taciturn.results.serialise import record_of

FORMAT = 1
MANIFEST, RESULT, REPORT = "manifest.json", "result.json", "report.html"
# Up to the last sign: a password may hold slashes and signs of its own.
_CREDENTIALS = re.compile(r"(?<=://)[^\s'\"]+@")


@dataclass(frozen=True, slots=True)
class FileFacts:
    """One file of the folder: its name, its size in bytes, the SHA-256 of its content."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFacts:
    """What was trained on or looked at, in numbers; no value of it.

    ``columns`` has the number of prepared columns of each side that is known. ``digests`` has those
    that exist: ``content`` of a published dataset, ``file`` of an own table.
    """

    name: str
    rows: int | None
    held_out_rows: int | None
    columns: Mapping[str, int]
    digests: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The machine that made the result."""

    python: str
    platform: str
    cores: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What made a result.

    ``private``: the folder is a party's, and its figures may depend on labels that only Bob has.
    ``settings`` have every default filled in. ``started`` and ``ended`` are of ISO 8601, in UTC.
    ``digest`` is that of all other keys.
    """

    format: int
    kind: str
    private: bool
    command: str
    version: str
    started: str
    ended: str
    seconds: float
    settings: Mapping[str, object] = field(repr=False)
    data: DataFacts
    host: HostFacts
    files: tuple[FileFacts, ...] = field(repr=False)
    digest: str = ""


def digest_of(record: Mapping[str, Any]) -> str:
    """The digest of a manifest's record: SHA-256 of its canonical text, without the digest itself.

    >>> digest_of({"a": 1, "digest": "x"}) == digest_of({"a": 1})
    True
    """
    rest = {name: value for name, value in record.items() if name != "digest"}
    return hashlib.sha256(canonical_json(rest).encode()).hexdigest()


def signed_record(manifest: Manifest) -> dict[str, Any]:
    """The manifest's record with its digest."""
    record = record_of(manifest)
    return {**record, "digest": digest_of(record)}


def without_credentials(command: str) -> str:
    """A command as it was typed, without the names and passwords of addresses.

    >>> without_credentials("taciturn runs export a --mlflow https://me:word@host/x")
    'taciturn runs export a --mlflow https://***@host/x'
    """
    return _CREDENTIALS.sub("***@", command)
