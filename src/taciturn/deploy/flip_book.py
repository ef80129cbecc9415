"""``FlipBook``: the flipped labels of ``label-rr`` in a file, so that they are drawn once.

A label's guarantee is that of *one* answer. A second training that flips the labels anew gives a
second answer, and the epsilons add up: averaging many answers tells the label. So two real parties
must answer the same each time. The book holds the answer of every row that was ever asked for;
further rows are drawn and added.

The book is bound to its label: it names the column, and has for each row a keyed digest of the
column, the id and the true label (``LabelBinding``). Another label of the same people, or a label
that was changed, is refused; else it would be given the answers of the first.

The file is JSON: a format name, a version, a name of its own (by which ``ledger_book`` tells its
answers from another book's), epsilon, the column, a name of the key, the ids, their
released labels as a text of 0s and 1s, their digests, and a SHA-256 digest of all that. Without the
key, which is elsewhere, it tells no true label and no flip. Beside the true labels it tells every
flip, alone it tells what the ledger says: it is for its owner's eyes only (mode 0600).

**Guarantee.** A row gets one answer for as long as the file is kept, also from two programs at the
same time: one of them is refused. The file is on disk before an answer is handed out, and it is
replaced whole or not at all. A row whose label is not the one that was answered for is noticed but
for one case in 65,536.

**Assumes.** The file is not deleted, restored from an older copy or copied for a second use: each
would spend again, and nothing here can tell. Under another key than the book's only the column's
name can be compared: such a book is refused unless Bob names the new key (``[privacy]
accept-flips-key``), and its labels are bound anew then. So are those of a book of version 1, which
was not bound.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.data.tables import LabelTable
from taciturn.deploy.config import PartyConfig
from taciturn.errors import FileError, OutputError, PrivacyError
from taciturn.faces import Hint
from taciturn.files import canonical_json, exclusive_lock, reporting_write_errors, write_private
from taciturn.privacy.base import LabelFlips
from taciturn.rng import Entropy
from taciturn.version import FORMER_NAME

FORMAT, VERSION, UNBOUND_VERSION, NAMELESS_VERSION = "taciturn flip book", 3, 1, 2
_FORMER_FORMAT = f"{FORMER_NAME} flip book"


_TAG_BYTES, _KEY_NAME_BYTES = 2, 8
_UNKNOWN = "-" * (2 * _TAG_BYTES)


@dataclass(frozen=True, slots=True, repr=False)
class LabelBinding:
    """Which label a book answers for; ``key`` is 32 secret bytes, kept apart from the book."""

    column: str
    key: bytes

    @property
    def key_name(self) -> str:
        """Tells whether a digest was made under this key."""
        return self._hashed(b"name", _KEY_NAME_BYTES)

    def tags(self, labels: LabelTable) -> list[str]:
        """A short keyed digest of each row's id and true label."""
        head = len(self.column.encode()).to_bytes(8, "big") + self.column.encode()
        rows = zip(labels.ids.series.to_list(), labels.values.tolist(), strict=True)
        return [
            self._hashed(b"row" + head + bytes([label]) + row.encode(), _TAG_BYTES)
            for row, label in rows
        ]

    def _hashed(self, data: bytes, size: int) -> str:
        return hashlib.blake2b(
            data, digest_size=size, key=self.key, person=b"flip book"
        ).hexdigest()


@dataclass(frozen=True, slots=True)
class _Answer:
    label: int
    tag: str


@dataclass(frozen=True, slots=True)
class _Content:
    """What a book holds; one of an earlier version has no name."""

    name: str = ""
    answers: dict[str, _Answer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FlipBook:
    """The answers that were given, in a file, made when first asked for labels.

    ``accepted_key`` is the name of the one key that may replace the book's; None for none.
    """

    path: Path
    flips: LabelFlips
    binding: LabelBinding
    accepted_key: str | None = None

    def release(self, labels: LabelTable, entropy: Entropy) -> LabelTable:
        """The released labels of these rows: those of the book, and fresh ones for new rows.

        The true labels of rows in the book are only compared. A book of another epsilon, another
        label or a key that is not accepted is refused (PrivacyError).
        """
        with self._alone():
            content = self._read()
            known, before = dict(content.answers), content.answers
            ids = labels.ids.series.to_list()
            tags = dict(zip(ids, self.binding.tags(labels), strict=True))
            self._require_same_labels(known, tags)
            new = np.array([place for place, row in enumerate(ids) if row not in known], np.int64)
            # Rows whose digest could not be compared get today's.
            known.update(
                (row, replace(known[row], tag=tag)) for row, tag in tags.items() if row in known
            )
            if len(new):
                fresh = self.flips.respond(labels.take(new), entropy)
                answers = zip(fresh.ids.series.to_list(), fresh.values.tolist(), strict=True)
                known.update((row, _Answer(label, tags[row])) for row, label in answers)
            if known != before or not content.name:
                name = content.name or entropy.fork("name of the book").words(1)[0].tobytes().hex()
                self._write(_Content(name, known))
        return _answered(labels, known)

    def recall(self, labels: LabelTable) -> LabelTable:
        """The labels that these rows were answered with; nothing is drawn or written."""
        known, ids = self._read().answers, labels.ids.series.to_list()
        if lacking := sum(row not in known for row in ids):
            raise FileError(
                f"the flip book has no answer for {lacking:,} of {len(ids):,} rows",
                where=str(self.path),
                hint="give the book with which the labels were flipped then",
            )
        return _answered(labels, known)

    def _require_same_labels(self, known: dict[str, _Answer], tags: dict[str, str]) -> None:
        changed = sum(
            row in known and known[row].tag not in (_UNKNOWN, tag) for row, tag in tags.items()
        )
        if changed:
            raise PrivacyError(
                f"{changed:,} of {len(tags):,} labels in column {self.binding.column!r} are not "
                "those that the flip book has answers for",
                where=str(self.path),
                hint=Hint(
                    "another label needs a book of its own ({flips}), and its epsilon comes on "
                    "top; labels that were corrected since must be put back: their answers stand",
                ),
            )

    def name(self) -> str:
        """Name that tells its answers from those of another book; empty where it has none."""
        return self._read().name

    def rows(self) -> int:
        """How many rows have an answer."""
        return len(self._read().answers)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        lock = self.path.with_name(self.path.name + ".lock")
        with contextlib.ExitStack() as held:
            # Around the lock alone: what the caller's block raises is none of its errors.
            with reporting_write_errors(self.path, "flip book"):
                alone = held.enter_context(exclusive_lock(lock))
            if not alone:
                raise OutputError(
                    "another program is writing this flip book",
                    where=str(lock),
                    hint="wait for it",
                )
            yield

    def _read(self) -> _Content:
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return _Content()
        except OSError as problem:
            raise FileError(
                f"the flip book cannot be read: {problem.strerror}", where=str(self.path)
            ) from None
        epsilon, content = self._parsed(text)
        if epsilon != self.flips.epsilon:
            raise PrivacyError(
                f"the flip book's labels were released with epsilon {epsilon:g}; releasing them "
                f"again with {self.flips.epsilon:g} would add to that",
                where=str(self.path),
                hint=Hint(
                    "use {epsilon}; or another book, and add the epsilons up", epsilon=epsilon
                ),
            )
        return content

    def _parsed(self, text: bytes) -> tuple[float, _Content]:
        altered = FileError(
            "this is not a flip book, or it is altered",
            where=str(self.path),
            hint="restore the newest copy: labels that are flipped again are released again",
        )
        try:
            record: dict[str, Any] = json.loads(text)
            if record["format"] == _FORMER_FORMAT:
                raise FileError(
                    f"this flip book was written under the product's former name, {FORMER_NAME}",
                    where=str(self.path),
                    hint="its labels were released once: flipping them again adds its epsilon to "
                    "the new one",
                )
            if record["format"] != FORMAT:
                raise altered
            if record["version"] not in (UNBOUND_VERSION, NAMELESS_VERSION, VERSION):
                raise FileError(
                    f"a flip book of version {record['version']!s:.20}; this program reads "
                    f"{VERSION}",
                    where=str(self.path),
                )
            digest, ids, answers = record.pop("digest"), record["ids"], record["labels"]
            epsilon = float(record["epsilon"])
            if digest != _digest(record) or len({*ids}) != len(ids):
                raise altered
            tags = self._tags(record, len(ids))
            entries = (
                _Answer("01".index(sign), tag) for sign, tag in zip(answers, tags, strict=True)
            )
            name = str(record["name"]) if record["version"] == VERSION else ""
            return epsilon, _Content(name, dict(zip(map(str, ids), entries, strict=True)))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise altered from None

    def _tags(self, record: dict[str, Any], rows: int) -> list[str]:
        """The digests of the labels that were answered for, where they can be compared."""
        if record["version"] == UNBOUND_VERSION:
            # Books of that version hold no digests.
            return [_UNKNOWN] * rows
        if record["column"] != self.binding.column:
            raise PrivacyError(
                f"the flip book has answers for the label {record['column']!r}, not for "
                f"{self.binding.column!r}",
                where=str(self.path),
                hint=Hint(
                    "another label needs a book of its own ({flips}), and its epsilon comes on "
                    "top; give a column that was renamed its former name"
                ),
            )
        key = self.binding.key_name
        if record["key"] != key:
            if self.binding.key and self.accepted_key != key:
                raise PrivacyError(
                    "the flip book was made under another state key, so that nobody can tell "
                    "whether its answers are of these labels",
                    where=str(self.path),
                    setting="accept_flips_key",
                    hint=Hint(
                        "restore the key ([state] key); if it is lost and the labels are those of "
                        "then, write {accept_flips_key} in [privacy]",
                        accept_flips_key=key,
                    ),
                )
            # Without the former key labels cannot be compared; the answers still stand.
            return [_UNKNOWN] * rows
        width, text = 2 * _TAG_BYTES, str(record["tags"])
        return [text[at : at + width] for at in range(0, len(text), width)]

    def _write(self, content: _Content) -> None:
        known = content.answers
        values: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "name": content.name,
            "epsilon": self.flips.epsilon,
            "column": self.binding.column,
            "key": self.binding.key_name,
            "ids": list(known),
            "labels": "".join(str(answer.label) for answer in known.values()),
            "tags": "".join(answer.tag for answer in known.values()),
        }
        text = canonical_json({**values, "digest": _digest(values)})
        write_private(self.path, text, "flip book")


def _answered(labels: LabelTable, known: dict[str, _Answer]) -> LabelTable:
    values = [known[row].label for row in labels.ids.series.to_list()]
    return LabelTable.of(np.array(values, np.int8), ids=labels.ids)


def flip_book(config: PartyConfig, flips: LabelFlips, key: bytes) -> FlipBook:
    """The book of a party's file; an empty ``key`` looks at answers without comparing labels."""
    binding = LabelBinding(config.data.label or "", key)
    limits = config.privacy
    return FlipBook(config.path(limits.flips), flips, binding, limits.accept_flips_key)


def _digest(values: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(values).encode()).hexdigest()
