"""``BookFile``: what a party counts over time, in a file of its own.

The file is JSON with a format's name, a version and a SHA-256 digest of all that stands in it. It
is for its owner's eyes only (mode 0600).

**Guarantee.** The file is replaced whole or not at all, and by one program at a time. One that was
cut, altered or is of another version is refused.

**Assumes.** Whoever can write the file means well: a digest without a key stops accidents.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taciturn.errors import FileError, OutputError
from taciturn.files import canonical_pieces, exclusive_lock, private_file, reporting_write_errors


@dataclass(frozen=True, slots=True)
class BookFile:
    """A file in which something is counted; made when first written.

    ``loss`` is what restoring the newest copy prevents, for the error.
    """

    path: Path
    kind: str
    loss: str
    version: int = 1

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Holds a lock beside the file, which one program can have, from reading to writing."""
        lock = self.path.with_name(self.path.name + ".lock")
        with contextlib.ExitStack() as held:
            # Around the lock alone: what the caller's block raises is none of its errors.
            with reporting_write_errors(self.path, self.kind):
                alone = held.enter_context(exclusive_lock(lock))
            if not alone:
                raise OutputError(
                    f"another program is writing this {self.kind}",
                    where=str(lock),
                    hint="wait for it",
                )
            yield

    @contextlib.contextmanager
    def reading(self) -> Iterator[dict[str, Any] | None]:
        """The content, None where there is no file; what the block cannot parse is altered."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            yield None
            return
        except OSError as problem:
            raise FileError(
                f"the {self.kind} cannot be read: {problem.strerror}", where=str(self.path)
            ) from None
        altered = FileError(
            f"this is not a {self.kind}, or it is altered",
            where=str(self.path),
            hint=f"restore the newest copy: {self.loss}",
        )
        try:
            record: dict[str, Any] = json.loads(text)
            # A book of many rows is there once, and not twice.
            del text
            if record["format"] != f"taciturn {self.kind}":
                raise altered
            if record["version"] != self.version:
                raise FileError(
                    f"a {self.kind} of version {record['version']!s:.20}; this program reads "
                    f"{self.version}",
                    where=str(self.path),
                )
            if record.pop("digest") != _digest(record):
                raise altered
            yield record
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise altered from None

    def write(self, content: Mapping[str, Any]) -> None:
        """Replaces the file."""
        values = {"format": f"taciturn {self.kind}", "version": self.version, **content}
        digest = _digest(values)
        with private_file(self.path, self.kind) as stream:
            stream.writelines(canonical_pieces({**values, "digest": digest}))


def _digest(values: Mapping[str, Any]) -> str:
    sha = hashlib.sha256()
    for piece in canonical_pieces(values):
        sha.update(piece)
    return sha.hexdigest()
