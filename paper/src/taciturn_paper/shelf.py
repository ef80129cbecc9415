"""Results of long experiments on disk, by what they are results of.

An interrupted run goes on where it stopped, and two tables that need the same trainings share them.
A file's name is the digest of everything that decides its content; what is asked for is written
beside the result, and a file that does not hold exactly that is as good as absent.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taciturn.data.datasets import cache_dir
from taciturn.errors import OutputError
from taciturn.faces import Hint
from taciturn_paper.record import Record

# Raised whenever the arithmetic changes in a way that a result would show.
ARITHMETIC = 1


def usual_folder() -> Path:
    """Where results are kept unless a folder is named."""
    return cache_dir() / "reproduce"


@dataclass(frozen=True, slots=True)
class Shelf:
    """A folder of results.

    Args:
        folder: Made when the first result is put there; None keeps nothing.
    """

    folder: Path | None

    def result(self, asked: Record, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - any JSON
        """The result of what is asked, from the shelf or made now and put there.

        Raises:
            OutputError: The folder cannot be written.
        """
        wanted = {"arithmetic": ARITHMETIC, **asked}
        if self.folder is None:
            return make()
        text = json.dumps(wanted, sort_keys=True)
        path = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
        kept = _read(path)
        if kept is not None and kept.get("asked") == json.loads(text) and "result" in kept:
            return kept["result"]
        result = make()
        _write(path, json.dumps({"asked": wanted, "result": result}))
        return result


def _read(path: Path) -> Record | None:
    """What a file holds; nothing where it is absent or damaged."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(name, path)
    except OSError as problem:
        raise OutputError(
            f"a result cannot be kept: {problem.strerror}",
            where=str(path.parent),
            hint=Hint("name a folder with room by {cache}"),
        ) from None
