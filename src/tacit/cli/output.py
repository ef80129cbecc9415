"""Writes a result to a file, or says why it cannot."""

from __future__ import annotations

from pathlib import Path

from tacit.errors import OutputError


def write_text(path: Path, text: str) -> None:
    """Writes a text file.

    Raises:
        OutputError: It cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise OutputError(
            f"the file cannot be written: {problem.strerror}",
            where=str(path),
            hint="name a file in a folder that exists, may be written and has room",
        ) from None
