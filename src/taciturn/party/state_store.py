"""A party's state folder: one session at a time, one process at a time, locked and encrypted.

The long arrays of a party's checkpoints: sealed files of its state folder, one for each array.

A checkpoint that held them would be written anew with all of them at every pass. So a file is
written once, and on the disk before the checkpoint that names it; where a stop comes between, the
next run writes it again. Short arrays stay in the checkpoint's own text.

**Guarantee.** A file tells the length of its array, and without the party's key no more. What is
missing, cut, altered or another's is refused: a checkpoint names a file by its salt, which is drawn
for each file, and under which only the owner of the key can seal anything.
"""

from __future__ import annotations

import contextlib
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.errors import StateError
from taciturn.files import create_private, exclusive_lock, reporting_write_errors
from taciturn.memmap import Scratch, row_blocks
from taciturn.party import encrypted_log
from taciturn.party.config import PartyConfig
from taciturn.party.encrypted_log import KEY_BYTES, EncryptedLog
from taciturn.party.journal import Journal
from taciturn.party.used_paths import default_key_file, former_key_file
from taciturn.protocol.state import INLINE, Load
from taciturn.rng import SystemEntropy
from taciturn.setting_syntax import Hint

LEAST_BYTES = 64 << 10
"""A shorter array stays in the checkpoint."""


class EncryptedArrayStore:
    """A party's long arrays during its training; the folder holds nothing else."""

    def __init__(self, folder: Path, key: bytes) -> None:
        self._folder, self._key = folder, key
        self._references: dict[str, dict[str, Any]] = {}
        self._named: set[str] = set()

    def put(self, name: str, values: FloatArray) -> Any:  # noqa: ANN401 - JSON
        """Keeps an array; its file is on the disk afterwards."""
        if values.nbytes < LEAST_BYTES:
            return INLINE.put(name, values)
        self._named.add(name)
        if name not in self._references:
            with encrypted_log.reporting_write_errors(self._folder):
                self._folder.mkdir(mode=0o700, exist_ok=True)
            records = (block.astype("<f8").tobytes() for _, block in row_blocks(values))
            sealed = EncryptedLog.create(self._folder / name, self._key, records)
            sealed.close()
            reference = {"file": name, "salt": sealed.salt.hex(), "length": len(values)}
            self._references[name] = reference
        return self._references[name]

    def get(self, reference: Any) -> Load:  # noqa: ANN401 - JSON
        """Loader of an array; StateError where its file is missing or another one."""
        if isinstance(reference, str):
            return INLINE.get(reference)
        name, salt, length = (
            str(reference["file"]),
            bytes.fromhex(reference["salt"]),
            int(reference["length"]),
        )
        path = self._folder / name
        if not path.exists():
            raise _unfit(path, "is missing")
        if encrypted_log.salt_of(path) != salt:
            raise _unfit(path, "is not the one that the checkpoint names")
        self._references[name] = reference
        self._named.add(name)
        return partial(self._read, path, length)

    def sweep(self) -> None:
        """Removes files that the last checkpoint does not name: one that is on the disk."""
        if self._folder.exists():
            for path in self._folder.iterdir():
                if path.name not in self._named:
                    path.unlink()
        self._references = {
            name: reference for name, reference in self._references.items() if name in self._named
        }
        self._named = set()

    def clear(self) -> None:
        """Removes all files: the training is over, or another one begins."""
        self._references, self._named = {}, set()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _read(self, path: Path, length: int) -> FloatArray:
        values, at = np.empty(length), 0
        for block in self._blocks(path):
            values[at : at + len(block)] = block
            at += len(block)
        if at != length:
            raise _unfit(path, "is cut")
        return values

    def _blocks(self, path: Path) -> Iterator[FloatArray]:
        try:
            for record in encrypted_log.records(path, self._key):
                yield np.frombuffer(record, "<f8")
        except StateError:
            raise _unfit(path, "was altered, or the key is wrong") from None


def _unfit(path: Path, problem: str) -> StateError:
    return StateError(
        f"a file of the checkpoint {problem}",
        where=str(path),
        hint=Hint(
            "restore the state folder as it was, or start over on both sides with {fresh}",
            fresh=True,
        ),
    )


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
