"""A party's state folder: one session at a time, one process at a time, locked and encrypted."""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from taciturn.errors import StateError
from taciturn.files import create_private, exclusive_lock, reporting_write_errors
from taciturn.memmap import Scratch
from taciturn.party import encrypted_log
from taciturn.party.array_store import EncryptedArrayStore
from taciturn.party.config import PartyConfig
from taciturn.party.encrypted_log import KEY_BYTES
from taciturn.party.journal import Journal
from taciturn.party.used_paths import default_key_file, former_key_file
from taciturn.rng import SystemEntropy

LOCK = "lock"


class StateFolderInUse(StateError):
    """Another process works in this party's state folder."""


@dataclass(frozen=True, slots=True)
class SessionState:
    """Content of the state folder.

    ``array_store`` is for the long arrays of the session's checkpoints, ``results`` for those of a
    study's trained models, ``scratch`` for long arrays while this process works on them.
    """

    journal: Journal
    array_store: EncryptedArrayStore
    results: EncryptedArrayStore
    scratch: Scratch
    warnings: tuple[str, ...]

    def clear(self) -> None:
        """Removes the long arrays: the session is over, or another one begins."""
        self.array_store.clear()
        self.results.clear()


@contextlib.contextmanager
def locked_state_folder(config: PartyConfig) -> Iterator[None]:
    """Makes a party's state folder; no other process may work in it meanwhile (StateError)."""
    folder = config.path(config.state.folder)
    with encrypted_log.reporting_write_errors(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with exclusive_lock(folder / LOCK) as alone:
        if not alone:
            raise StateFolderInUse(
                "another process is using this state folder",
                where=str(folder),
                hint="wait for it, or give this party a separate state folder",
            )
        yield


@contextlib.contextmanager
def state_folder(config: PartyConfig) -> Iterator[SessionState]:
    """Opens a party's state folder, which this process has locked."""
    folder = config.path(config.state.folder)
    key, warnings = state_key(config)
    journal = Journal(folder / "journal", key, sync=config.state.sync)
    scratch = Scratch(folder / "scratch")
    try:
        arrays, results = (
            EncryptedArrayStore(folder / name, key) for name in ("arrays", "results")
        )
        yield SessionState(journal, arrays, results, scratch, warnings)
    finally:
        scratch.clear()
        journal.close()


def state_key(config: PartyConfig) -> tuple[bytes, tuple[str, ...]]:
    """The party's secret key for what it keeps, made where there is none, and warnings about it."""
    path, warnings = key_place(config)
    key, more = _read_key(path, config.path(config.state.folder))
    return key, (*warnings, *more)


def key_place(config: PartyConfig) -> tuple[Path, tuple[str, ...]]:
    """Path of the party's state key, and a warning about a bad location."""
    if config.state.key is not None:
        return config.path(config.state.key), ()
    usual, former = default_key_file(config), former_key_file(config)
    # Up to 0.1 the key was made beside the settings, where the state folder is as a rule.
    if usual.exists() or not former.exists():
        return usual, ()
    warning = (
        f"the state key {former} is kept beside the state folder, so that who copies one has both: "
        f"move it to {usual}, or name its place as [state] key"
    )
    return former, (warning,)


def boot() -> str:
    """A name of this start of the machine; empty where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _read_key(path: Path, folder: Path) -> tuple[bytes, tuple[str, ...]]:
    """The key for the state ``folder``; made where there is none."""
    if not path.exists():
        with reporting_write_errors(path, "state key", "name another place for it as [state] key"):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_private(path, f"{SystemEntropy().token(KEY_BYTES).hex()}\n", "state key")
    try:
        text = path.read_text(encoding="ascii").strip()
        key = bytes.fromhex(text)
    except (OSError, ValueError):
        # One message for every fault: it must not show what the file holds.
        key = b""
    if len(key) != KEY_BYTES:
        raise StateError(
            "the state key is not 64 hexadecimal digits",
            where=str(path),
            hint=_way_out(path, folder),
        )
    loose = stat.S_IMODE(path.stat().st_mode) & 0o077
    warning = f"the state key {path} may be read by others: chmod 600 {path.name}"
    return key, (warning,) if loose else ()


def _way_out(path: Path, folder: Path) -> str:
    # Up to 0.1 a disk that was full when the key was made left an empty file.
    if path.is_file() and not path.stat().st_size and not (folder / "journal").exists():
        return (
            "the file is empty, as a full disk leaves it, and there is no session to resume: "
            "delete the file, and the next run makes a new key"
        )
    return "restore the one that was used; without it an unfinished session is lost"
