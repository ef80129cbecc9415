"""Writes a result to a file, or says why it cannot: before the work that makes it, if possible."""

from __future__ import annotations

import os
from pathlib import Path

from taciturn.errors import OutputError


def require_writable(*paths: Path | None) -> None:
    """Insists that files can be written, before any work is done for them.

    What is there stays as it is, and nothing is left behind.

    Args:
        paths: The files to be written; None stands for one that is not asked for.

    Raises:
        OutputError: One of them cannot be written.
    """
    for path in paths:
        if path is None:
            continue
        try:
            _try_to_open(Path(os.path.realpath(path)))
        except OSError as problem:
            raise _unwritable(path, problem) from None


def write_text(path: Path, text: str) -> None:
    """Writes a text file.

    Raises:
        OutputError: It cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise _unwritable(path, problem) from None


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


def _unwritable(path: Path, problem: OSError) -> OutputError:
    return OutputError(
        f"the file cannot be written: {problem.strerror}",
        where=str(path),
        hint="name a file in a folder that exists, may be written and has room",
    )
