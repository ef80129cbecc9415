"""Files that are written whole or not at all, and JSON and TOML in one spelling."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import stat
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from taciturn.errors import ConfigError, FileError, OutputError, TaciturnError
from taciturn.file_kinds import file_kind
from taciturn.setting_syntax import Hint

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_WAY_OUT = "name a file in a folder that exists, may be written and has room"
# By the parser's words.
_TOML_WAYS_OUT = (
    ("Invalid value", 'correct that line: text stands in quotes, name = "value"'),
    ("Unescaped '\\'", "write the path with /, or the text in single quotes"),
    ("Cannot overwrite", "the setting is there twice: remove one of them"),
    ("Cannot declare", "the section is there twice: merge the two"),
    ("Expected '='", 'correct that line: a setting is name = "value"'),
)
# What a file system answers that has no hard links.
_WITHOUT_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
_LARGEST_TOML = 16 << 20


def canonical_json(values: Mapping[str, Any]) -> str:
    """Canonical JSON: sorted keys, no blanks, no infinities."""
    return _CANONICAL.encode(values)


def finite_json(value: Any) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """The value with infinity as text and NaN as null.

    >>> finite_json({"a": float("inf"), "b": (float("nan"), 1.5)})
    {'a': 'inf', 'b': [None, 1.5]}
    """
    if isinstance(value, Mapping):
        return {key: finite_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def to_json(record: Mapping[str, Any]) -> str:
    """Indented JSON, for people and scripts."""
    return json.dumps(finite_json(record), indent=2, allow_nan=False)


def require_writable(*paths: Path | None) -> None:
    """Raise ``OutputError`` unless files can be written, before any work is done for them.

    Existing files stay unchanged, and nothing is left behind. None stands for a file that is not
    asked for.
    """
    for path in paths:
        if path is not None:
            with reporting_write_errors(path):
                _try_to_open(Path(os.path.realpath(path)))


def read_toml(
    path: Path, kind: str, hint: str | Hint, unreadable: type[TaciturnError] = ConfigError
) -> dict[str, Any]:
    """Values of a TOML file, whose ``kind`` an error names; ``hint`` is for an absent one."""
    try:
        if path.stat().st_size > _LARGEST_TOML:
            raise ValueError("it is too large")
        return parse_toml(path.read_text(encoding="utf-8"))
    except OSError as problem:
        message = f"the {kind} cannot be read: {problem.strerror}"
        raise unreadable(message, where=str(path), hint=hint) from None
    except ValueError as problem:
        if (other := file_kind(path)) and "TOML" not in other:
            raise ConfigError(
                f"this is {other}, and not a {kind}", where=str(path), hint=hint
            ) from None
        ways = (way for words, way in _TOML_WAYS_OUT if words in str(problem))
        raise ConfigError(
            f"this is not TOML: {problem}",
            where=str(path),
            hint=next(ways, "correct that line"),
        ) from None


def parse_toml(text: str) -> dict[str, Any]:
    """Values of a TOML text; ValueError for one that is invalid, too deep or out of range.

    Integers have 64 bits, as TOML requires at least: no setting needs more, and a longer one could
    be neither converted nor shown.

    >>> parse_toml("rows = 0x1_0000_0000_0000_0000")
    Traceback (most recent call last):
    ...
    ValueError: a number has more than 64 bits
    """
    try:
        values = tomllib.loads(text)
        _require_64_bits(values)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        # Python's own limit, of 4,300 digits, comes before ours.
        raise ValueError("a number has more than 64 bits") from None
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
    return values


def _require_64_bits(value: object) -> None:
    if isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            _require_64_bits(item)
    elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ValueError


def write_text(path: Path, text: str) -> None:
    """Write a text file."""
    with reporting_write_errors(path):
        path.write_text(text, encoding="utf-8")


def write_private(path: Path, content: str | bytes, kind: str = "file") -> None:
    """Write a file atomically that only its owner may read; errors call it ``kind``."""
    octets = content.encode() if isinstance(content, str) else content
    with private_file(path, kind) as stream:
        stream.write(octets)


def create_private(path: Path, content: str, kind: str = "file") -> None:
    """Write a private file atomically, unless it exists: an existing one stays as it is."""
    with (
        reporting_write_errors(path, kind),
        tempfile.TemporaryDirectory(".new", f"{path.name}.", path.parent) as folder,
    ):
        fresh = Path(folder) / path.name
        write_private(fresh, content, kind)
        try:
            # Unlike a rename, a link never takes the place of another process's file.
            os.link(fresh, path)
        except FileExistsError:
            return
        except OSError as problem:
            if problem.errno not in _WITHOUT_LINKS or path.exists():
                raise
            fresh.rename(path)
        sync_folder(path.parent)


@contextlib.contextmanager
def private_file(path: Path, kind: str = "file") -> Iterator[BinaryIO]:
    """A file to be written atomically, that only its owner may read."""
    with reporting_write_errors(path, kind):
        # A name of its own, of mode 0600: another program may be writing the same file.
        descriptor, name = tempfile.mkstemp(".new", f"{path.name}.", path.parent)
        fresh = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            fresh.replace(path)
            sync_folder(path.parent)
        except BaseException:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise


def remove_unfinished(path: Path) -> None:
    """Remove what ``private_file`` leaves beside a file where the process was killed meanwhile.

    Only for a file that one process at a time writes.
    """
    # The name that mkstemp makes.
    name = re.compile(re.escape(path.name) + r"\.[a-z0-9_]{8}\.new")
    with contextlib.suppress(OSError):
        for other in path.parent.iterdir():
            if name.fullmatch(other.name):
                other.unlink(missing_ok=True)


def is_private(status: os.stat_result) -> bool:
    """Whether nobody but this account, or root, may read or change a file.

    As PostgreSQL has it for keys, the group may read a file of root's: a container that is not
    root's reads its secrets by its group.
    """
    others = 0o037 if status.st_uid == 0 != os.getuid() else 0o077
    return not status.st_mode & others


def require_private(path: Path, content: str) -> None:
    """Raise ``FileError`` if others may read or change a file, or if it is absent.

    A pipe or the like has no mode of its own.
    """
    try:
        status = path.stat()
    except OSError as problem:
        raise FileError(
            f"the file with {content} cannot be read: {problem.strerror}",
            where=str(path),
            hint="check the path",
        ) from None
    if stat.S_ISREG(status.st_mode) and not is_private(status):
        raise FileError(
            f"others on this machine may read or change {content}",
            where=str(path),
            hint=f"chmod 600 {path}",
        )


def private_folder(path: Path) -> None:
    """Make a folder that only its owner may look into, and missing parents; raises ``OSError``."""
    for folder in (*reversed(path.parents), path):
        # One at a time: a mode is the last one's alone.
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)


def settings_home() -> Path:
    """The account's folder of settings: ``$XDG_CONFIG_HOME``, or ``~/.config``.

    Raises ``RuntimeError`` where the account has no home folder.
    """
    home = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return home if home.is_absolute() else Path.home() / ".config"


def append_private(path: Path, text: str) -> None:
    """Append text to a file that only its owner may read; one that others may is closed to them.

    A pipe or the like keeps its mode. Raises ``OSError``.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "a", encoding="utf-8") as stream:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            os.fchmod(descriptor, 0o600)
        stream.write(text)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk (fsync)."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def exclusive_lock(path: Path) -> Iterator[bool]:
    """Hold a lock that one process can have at a time; yields whether it was acquired.

    Raises ``OSError`` where the lock's file cannot be made.
    """
    import fcntl  # Windows has none; what needs no lock runs there

    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def reporting_write_errors(path: Path, kind: str = "file", hint: str = _WAY_OUT) -> Iterator[None]:
    """Turn an ``OSError`` into an ``OutputError`` that names the file."""
    try:
        yield
    except OSError as problem:
        raise OutputError(
            f"the {kind} cannot be written: {problem.strerror}", where=str(path), hint=hint
        ) from None


def _try_to_open(path: Path) -> None:
    try:
        # Only a file that this call makes is removed again.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        # Neither cut nor touched; a pipe without a reader, which is no obstacle yet, does not wait.
        if not path.is_fifo():
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
    else:
        path.unlink()
