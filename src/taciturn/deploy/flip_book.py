"""``FlipBook``: the flipped labels of ``label-rr`` in a file, so that they are drawn once.

A label's guarantee is that of *one* answer. A second training that flips the labels anew gives a
second answer, and the epsilons add up: averaging many answers tells the label. So two real parties
must answer the same each time. The book holds the answer of every row that was ever asked for;
further rows are drawn and added.

The file is JSON: a format name, a version, epsilon, the ids, their released labels as a text of 0s
and 1s, and a SHA-256 digest of all that. It never holds a true label or a flip. Beside the true
labels it tells every flip, alone it tells what the ledger says: it is for its owner's eyes only
(mode 0600).

**Guarantee.** A row gets one answer for as long as the file is kept, also from two programs at the
same time: one of them is refused. The file is on disk before an answer is handed out, and it is
replaced whole or not at all.

**Assumes.** The file is not deleted, restored from an older copy or copied for a second use: each
would spend again, and nothing here can tell. A label that was corrected later keeps its first
answer, for the same reason.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.data.tables import LabelTable
from taciturn.errors import FileError, OutputError, PrivacyError
from taciturn.faces import Hint
from taciturn.files import canonical_json, exclusive_lock, unwritable, write_private
from taciturn.privacy.label_response import FlippedLabels
from taciturn.rng import Entropy
from taciturn.version import FORMER_NAME

FORMAT, VERSION = "taciturn flip book", 1
_FORMER_FORMAT = f"{FORMER_NAME} flip book"


@dataclass(frozen=True, slots=True)
class FlipBook:
    """The answers that were given, in a file.

    Args:
        path: The file; made when first asked for labels.
        mechanism: What flips the labels of rows that are not in it yet.
    """

    path: Path
    mechanism: FlippedLabels

    def release(self, labels: LabelTable, entropy: Entropy) -> LabelTable:
        """The released labels of these rows: those of the book, and fresh ones for new rows.

        Args:
            labels: The true labels; those of rows in the book are not looked at.
            entropy: Coins for the new rows.

        Raises:
            PrivacyError: The book was made with another epsilon: a second answer would add to it.
            FileError: It cannot be read, is altered or of another version.
            OutputError: It cannot be written, or is being written by another program.
        """
        with self._alone():
            known = self._read()
            ids = labels.ids.series.to_list()
            new = np.array([place for place, row in enumerate(ids) if row not in known], np.int64)
            if len(new):
                fresh = self.mechanism.respond(labels.take(new), entropy)
                known.update(zip(fresh.ids.series.to_list(), fresh.values.tolist(), strict=True))
                self._write(known)
        return LabelTable.of(np.array([known[row] for row in ids], np.int8), ids=labels.ids)

    def rows(self) -> int:
        """How many rows have an answer.

        Raises:
            PrivacyError: The book was made with another epsilon.
            FileError: It cannot be read, is altered or of another version.
        """
        return len(self._read())

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Holds a lock beside the book, which one program can have, from reading to writing."""
        lock = self.path.with_name(self.path.name + ".lock")
        with contextlib.ExitStack() as held:
            with unwritable(self.path, "flip book"):
                alone = held.enter_context(exclusive_lock(lock))
            if not alone:
                raise OutputError(
                    "another program is writing this flip book",
                    where=str(lock),
                    hint="wait for it",
                )
            yield

    def _read(self) -> dict[str, int]:
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as problem:
            raise FileError(
                f"the flip book cannot be read: {problem.strerror}", where=str(self.path)
            ) from None
        epsilon, known = self._parsed(text)
        if epsilon != self.mechanism.event.epsilon:
            raise PrivacyError(
                f"the flip book's labels were released with epsilon {epsilon:g}; releasing them "
                f"again with {self.mechanism.event.epsilon:g} would add to that",
                where=str(self.path),
                hint=Hint(
                    "use {epsilon}; or another book, and add the epsilons up", epsilon=epsilon
                ),
            )
        return known

    def _parsed(self, text: bytes) -> tuple[float, dict[str, int]]:
        altered = FileError(
            "this is not a flip book, or it is altered",
            where=str(self.path),
            hint="restore the newest copy: labels that are flipped again are released again",
        )
        try:
            found: dict[str, Any] = json.loads(text)
            if found["format"] == _FORMER_FORMAT:
                raise FileError(
                    f"this flip book was written under the product's former name, {FORMER_NAME}",
                    where=str(self.path),
                    hint="its labels were released once: flipping them again adds its epsilon to "
                    "the new one",
                )
            if found["format"] != FORMAT:
                raise altered
            if found["version"] != VERSION:
                raise FileError(
                    f"a flip book of version {found['version']!s:.20}; this program reads "
                    f"{VERSION}",
                    where=str(self.path),
                )
            digest, ids, answers = found.pop("digest"), found["ids"], found["labels"]
            epsilon = float(found["epsilon"])
            if digest != _digest(found) or len({*ids}) != len(ids):
                raise altered
            signs = ["01".index(sign) for sign in answers]
            return epsilon, dict(zip(map(str, ids), signs, strict=True))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise altered from None

    def _write(self, known: dict[str, int]) -> None:
        values: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "epsilon": self.mechanism.event.epsilon,
            "ids": list(known),
            "labels": "".join(str(answer) for answer in known.values()),
        }
        text = canonical_json({**values, "digest": _digest(values)})
        write_private(self.path, text, "flip book")


def _digest(values: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(values).encode()).hexdigest()
