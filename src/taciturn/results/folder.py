"""A result folder: a result, its provenance, and the report on it.

**Guarantee.** A folder is there whole or not at all: it is written beside its place, made lasting,
and then given its name. A reader learns which file is absent, cut short, altered, or of
a later version; nothing of such a folder is shown.

**Assumes.** The digests find accidents. Anyone who may write into the folder can make a new
manifest.

It names no secret: settings are public or this side's own limits, data are counts and digests, and
what stands before the ``@`` of an address in a command is left out.

What kind of result a record is, it does not say: a key that no other kind has tells.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from taciturn import extensions
from taciturn.errors import DataError, FileError, OutputError
from taciturn.files import canonical_json, finite_json, reporting_write_errors, sync_folder, to_json
from taciturn.job_registry import registry
from taciturn.results.reading import read, refusal
from taciturn.results.serialise import Result, record_of
from taciturn.rng import SystemEntropy
from taciturn.setting_syntax import Hint

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
class ManifestData:
    """Shape of the data, without any value of it.

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
    """Manifest of a result.

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
    data: ManifestData
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


def kinds() -> tuple[type[Result], ...]:
    """All kinds of results, those of other packages first."""
    # Imported here: they show themselves, and a party that writes a folder need not load a report.
    from taciturn.results.cost_preview import Estimate
    from taciturn.results.ledger import ExposureResult, LedgerResult
    from taciturn.results.model import ModelList, UsedModel
    from taciturn.results.runs import Runs

    loaded = {kind.name: kind.load for kind in extensions.installed(extensions.RESULTS)}
    for name, (job, path) in registry().results.items():
        loaded[name] = partial(job.load, path)
    added: list[Any] = [loaded[name]() for name in sorted(loaded)]
    # The first that recognises a record decides.
    return (
        *added,
        Runs,
        UsedModel,
        ModelList,
        LedgerResult,
        ExposureResult,
        Estimate,
    )


def load(path: str | Path) -> Result:
    """Read what a command printed with ``--json``; DataError if the file holds no result."""
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "it holds no JSON"
        raise DataError(f"the result cannot be read: {reason}", where=str(path)) from None
    try:
        return from_record(record)
    except DataError as problem:
        raise problem.at(str(path)) from None


def from_record(record: object) -> Result:
    """Result of a record, with recomputed means; raise DataError for an invalid record."""
    if not isinstance(record, Mapping):
        raise refusal("", "is not an object")
    for kind in kinds():
        if kind.recognises(record):
            return kind.from_record(record)
    raise refusal("", "has none of the keys of one")


def json_schema() -> dict[str, Any]:
    """The JSON schema of every record that a command prints, made from the types."""
    shared: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for kind in kinds():
        schemas |= kind.schemas(shared)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Results of taciturn",
        "description": "What the commands of taciturn print as JSON, by the command's name.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in schemas],
        "$defs": {**schemas, **dict(sorted(shared.items()))},
    }


MOST_MANIFEST_BYTES = 8 << 20
MOST_FILE_BYTES = 1 << 30
MOST_FILES = 100
_UNNAMEABLE = re.compile(r"[^a-z0-9.]+")
_BLOCK = 1 << 20


# --- where a folder goes ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Destination:
    """Place of a result folder: ``path`` itself, or a new folder ``within`` it."""

    path: Path
    within: bool

    @classmethod
    def parse(cls, text: str) -> Destination:
        """The destination that a person named, before any work is done for it.

        A text that ends with a slash, and a folder that holds result folders, mean a new folder in
        it. Anything else is the result folder itself, which must be new or empty.

        Raises OutputError where it cannot be written.
        """
        path = Path(text)
        within = text.endswith(("/", os.sep)) or is_folder_of_runs(path)
        with reporting_write_errors(path, "result folder", "name another folder"):
            _require_room(path, within)
        return cls(path, within)

    def name(self, started: datetime, *words: str | None) -> str:
        """The name of a new folder: when, and what it is about.

        >>> when = datetime(2026, 11, 17, 10, 11, 12, tzinfo=UTC)
        >>> Destination(Path("runs"), True).name(when, "train", "Own data", None, "sealed")
        '2026-11-17T101112-train-own-data-sealed'
        """
        parts = [_UNNAMEABLE.sub("-", word.lower()).strip("-.")[:40] for word in words if word]
        return "-".join([f"{started.astimezone(UTC):%Y-%m-%dT%H%M%S}", *filter(None, parts)])


def is_folder_of_runs(path: Path) -> bool:
    """Whether a folder holds result folders, and is none itself."""
    return path.is_dir() and not (path / MANIFEST).exists() and any(run_folders(path))


def run_folders(path: Path) -> Iterator[Path]:
    """The result folders in a folder, by name; what was left behind half-written is none."""
    with contextlib.suppress(OSError):
        for entry in sorted(path.iterdir()):
            if not entry.name.startswith(".") and (entry / MANIFEST).is_file():
                yield entry


def _require_room(path: Path, within: bool) -> None:
    if path.exists() and not path.is_dir():
        raise OutputError(
            "this is a file, not a result folder",
            where=str(path),
            hint="name another folder",
        )
    if within and (path / MANIFEST).exists():
        raise OutputError(
            "this is a result folder itself, and holds no others",
            where=str(path),
            hint="name the folder that it lies in, or another one",
        )
    if not within and path.is_dir() and any(path.iterdir()):
        raise OutputError(
            "this folder is not empty, and results never overwrite files",
            where=str(path),
            hint=f"name another folder, or {path}{os.sep} for a new one in it",
        )
    above = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise OutputError(
            "cannot create a folder here", where=str(above), hint="name another folder"
        )


# --- writing one ------------------------------------------------------------------------------


def write_folder(
    destination: Destination, name: str, manifest: Manifest, files: Mapping[str, bytes]
) -> Path:
    """Write a result folder, whole or not at all (OutputError), and return its path.

    ``name`` is used where the destination holds several, numbered if it is taken. The manifest's
    list of files is made here.
    """
    entries = tuple(
        FileFacts(file, len(content), hashlib.sha256(content).hexdigest())
        for file, content in sorted(files.items())
    )
    record = signed_record(replace(manifest, files=entries))
    whole = {**files, MANIFEST: f"{to_json(record)}\n".encode()}
    target = destination.path / name if destination.within else destination.path
    with reporting_write_errors(target, "result folder", "free some room, or name another folder"):
        target.parent.mkdir(parents=True, exist_ok=True)
        # Hidden, and of a name that no other process has: whatever a stop leaves is no run.
        fresh = target.with_name(f".{target.name}.{SystemEntropy().token(8).hex()}.new")
        try:
            fresh.mkdir(mode=0o700 if manifest.private else 0o777)
            for file, content in whole.items():
                _write(fresh / file, content, private=manifest.private)
            sync_folder(fresh)
            placed = _place(fresh, target, numbered=destination.within)
            sync_folder(target.parent)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
    return placed


def _write(path: Path, content: bytes, *, private: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    descriptor = os.open(path, flags, 0o600 if private else 0o666)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _place(fresh: Path, target: Path, *, numbered: bool) -> Path:
    """Rename a folder to its final name; the system refuses a name that is taken."""
    for number in range(1, 1000):
        chosen = target if number == 1 else target.with_name(f"{target.name}-{number}")
        try:
            fresh.rename(chosen)
        except OSError:
            if not numbered or not chosen.exists():
                raise
        else:
            return chosen
    raise OutputError("there are too many folders of this name", where=str(target))


# --- reading one ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ResultFolder:
    """A result folder that was read and found whole."""

    path: Path
    manifest: Manifest
    record: Mapping[str, Any] = field(repr=False)
    result: Result = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> ResultFolder:
        """Read a folder and compare every file with the manifest; a DataError names the file."""
        manifest = read_manifest(path)
        contents = {file.name: _checked(path, file) for file in manifest.files}
        if RESULT not in contents:
            raise _broken(path / MANIFEST, "it names no result")
        try:
            record = json.loads(contents[RESULT])
            result = from_record(record)
        except (ValueError, RecursionError):
            raise _broken(path / RESULT, "it holds no JSON") from None
        except DataError as problem:
            raise problem.at(str(path / RESULT)) from None
        return cls(path, manifest, record, result)

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.path.name or str(self.path)

    def content(self, name: str) -> bytes | None:
        """A file's content; None where the folder has none of that name."""
        entry = next((file for file in self.manifest.files if file.name == name), None)
        return None if entry is None else _checked(self.path, entry)


def read_manifest(path: Path) -> Manifest:
    """A folder's manifest; DataError if it is absent, cut short, altered or of a later version."""
    file = path / MANIFEST
    if not path.is_dir() or not file.exists():
        raise FileError(
            "this is not a result folder",
            where=str(path),
            hint=Hint("commands leave one where {out} names it; taciturn runs list shows them"),
        )
    content = _read(file, MOST_MANIFEST_BYTES)
    try:
        record = json.loads(content)
    except (ValueError, RecursionError):
        raise _broken(file, "it holds no JSON, or only a part of one") from None
    number = record.get("format") if isinstance(record, dict) else None
    if type(number) is not int or number < 1:
        raise _broken(file, "it is no manifest")
    if number > FORMAT:
        raise FileError(
            f"the result folder is of format {number}, and this version reads up to {FORMAT}",
            where=str(file),
            hint=f"use the version that wrote it ({record.get('version')}), or a later one",
        )
    try:
        manifest = read(Manifest, record)
        same = manifest.digest == digest_of(finite_json(record))
    except DataError as problem:
        raise problem.at(str(file)) from None
    except RecursionError:
        raise _broken(file, "it is nested too deeply") from None
    if not same:
        raise _broken(file, "its digest is another")
    _require_plain(file, manifest)
    return manifest


def _require_plain(file: Path, manifest: Manifest) -> None:
    """Refuse names that lead out of the folder."""
    names = [listed.name for listed in manifest.files]
    if len(names) > MOST_FILES or any(
        name in ("", ".", "..", MANIFEST) or "/" in name or os.sep in name or "\0" in name
        for name in names
    ):
        raise _broken(file, "it names a file that cannot be in the folder")


def _checked(folder: Path, entry: FileFacts) -> bytes:
    path = folder / entry.name
    content = _read(path, MOST_FILE_BYTES)
    if len(content) != entry.size:
        size = f"it has {len(content):,} bytes where {entry.size:,} were written"
        raise _broken(path, size)
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise _broken(path, "it is not what was written")
    return content


def _read(path: Path, limit: int) -> bytes:
    pieces, size = [], 0
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            # A pipe would wait for ever.
            raise _broken(path, "it is no file")
        with path.open("rb") as stream:
            while block := stream.read(_BLOCK):
                size += len(block)
                if size > limit:
                    raise _broken(path, f"it is larger than {limit:,} bytes")
                pieces.append(block)
    except OSError as problem:
        raise _broken(path, f"it cannot be read: {problem.strerror}") from None
    return b"".join(pieces)


def _broken(file: Path, problem: str) -> FileError:
    return FileError(
        f"the result folder is not whole: {problem}",
        where=str(file),
        hint="bring the folder back from a copy, or run its command again",
    )
