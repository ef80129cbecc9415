"""Digests of data as they lie on a disk: by which two runs are known to be of the same table."""

from __future__ import annotations

import hashlib
from pathlib import Path

from taciturn.data.parts import files_of, is_parted, unreadable


def file_digest(path: Path) -> str:
    """The SHA-256 of a table's file, or of the names and digests of all files of one in parts."""
    if not is_parted(path):
        return _digest(path)
    sha = hashlib.sha256()
    for file in files_of(path):
        sha.update(f"{file.name}\0{_digest(file)}\n".encode())
    return sha.hexdigest()


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as problem:
        raise unreadable(path, problem) from None
