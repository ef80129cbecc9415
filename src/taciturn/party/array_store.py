"""The long arrays of a party's checkpoints: encrypted files of its state folder, one for each.

A checkpoint that held them would be written anew with all of them at every pass. So a file is
written once, and on the disk before the checkpoint that names it; where a stop comes between, the
next run writes it again. Short arrays stay in the checkpoint's own text.

**Guarantee.** A file tells the length of its array, and without the party's key no more. What is
missing, cut, altered or another's is refused: a checkpoint names a file by its salt, which is drawn
for each file, and under which only the owner of the key can seal anything.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.errors import StateError
from taciturn.memmap import row_blocks
from taciturn.party import encrypted_log
from taciturn.party.encrypted_log import EncryptedLog
from taciturn.protocol.array_store import INLINE, Load
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
        name = str(reference["file"])
        path = self._folder / name
        if not path.exists():
            raise _unfit(path, "is missing")
        if encrypted_log.salt_of(path) != bytes.fromhex(reference["salt"]):
            raise _unfit(path, "is not the one that the checkpoint names")
        self._references[name] = reference
        self._named.add(name)
        return partial(self._read, path, int(reference["length"]))

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
        try:
            for record in encrypted_log.records(path, self._key):
                block = np.frombuffer(record, "<f8")
                values[at : at + len(block)] = block
                at += len(block)
        except StateError:
            raise _unfit(path, "was altered, or the key is wrong") from None
        if at != length:
            raise _unfit(path, "is cut")
        return values


def _unfit(path: Path, problem: str) -> StateError:
    return StateError(
        f"a file of the checkpoint {problem}",
        where=str(path),
        hint=Hint(
            "restore the state folder as it was, or start over on both sides with {fresh}",
            fresh=True,
        ),
    )
