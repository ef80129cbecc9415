"""Scores file: scores and labels of a training, which Bob stores for the page of his model.

Without Alice no score can be computed again. So the end of a training leaves the scores and labels
of the rows that Bob has scores of, in ``bob.model.scores`` beside ``bob.model.json``, for his eyes
only. Deleting the file loses the page of that model, and nothing else.

The file is one line of JSON, which says how many rows follow and has a digest of them, and then the
numbers: little-endian 64-bit scores and 8-bit labels of the training rows, and of the held-out
rows. Labels of other families than ``binomial`` have 64 bits, and where they have exposures or
weights, these follow. What does not have the size that its first line says is refused before it is
read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.arrays import FloatArray, LabelArray
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.errors import FileError
from taciturn.families.base import Response
from taciturn.families.registry import BINOMIAL, FAMILIES
from taciturn.files import write_private

FORMAT, VERSION = "taciturn-scores", 1
SUFFIX = ".scores"
_MOST_LINE = 4096
_MOST_ROWS = 1 << 40
_BESIDE = ("exposure", "weights")
_SETS = ("train", "held_out")


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Scores (as the training gave them) and labels of rows."""

    scores: FloatArray = field(repr=False)
    labels: LabelArray = field(repr=False)
    family: str = BINOMIAL
    exposure: FloatArray | None = field(default=None, repr=False)
    weights: FloatArray | None = field(default=None, repr=False)

    @classmethod
    def from_labels(cls, scores: FloatArray, labels: LabelTable) -> ScoredRows:
        """Scores of rows beside their labels."""
        return cls(scores, labels.values, labels.family, labels.exposure, labels.weights)

    def table(self, response: Response) -> LabelTable:
        """The labels, with the coordinates of the scores."""
        ids = RowIds.numbered(len(self))
        beside = self.exposure, self.weights
        return LabelTable(ids, self.labels, self.family, *beside, response)

    @property
    def beside(self) -> list[str]:
        """What the rows have beside scores and labels."""
        return [name for name in _BESIDE if getattr(self, name) is not None]

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True, slots=True)
class StoredScores:
    """Scores of one model, in the order of Bob's table; None where he has none of such rows."""

    session: str
    train: ScoredRows | None = None
    held_out: ScoredRows | None = None

    def save(self, path: Path) -> None:
        """Write the file atomically, readable by its owner only."""
        parts = [rows for rows in (self.train, self.held_out) if rows is not None]
        body = b"".join(_pieces(parts))
        counts = [None if rows is None else len(rows) for rows in (self.train, self.held_out)]
        line = {
            "format": FORMAT,
            "version": VERSION,
            "session": self.session,
            **dict(zip(_SETS, counts, strict=True)),
            **_family_facts(parts[0]),
            "digest": hashlib.sha256(body).hexdigest(),
        }
        write_private(path, json.dumps(line).encode() + b"\n" + body, "file of scores")

    @classmethod
    def load(cls, path: Path) -> StoredScores:
        """Read a file."""
        try:
            with path.open("rb") as stream:
                line = _first_line(stream.readline(_MOST_LINE), path)
                rows = sum(line[name] or 0 for name in _SETS)
                size = rows * _row_bytes(line)
                if path.stat().st_size != stream.tell() + size:
                    raise _altered(path)
                body = stream.read(size)
        except OSError as problem:
            raise FileError(
                f"the model's scores cannot be read: {problem.strerror}",
                where=str(path),
                hint="the end of a training leaves them beside Bob's model; train again, or name "
                "scores of new rows",
            ) from None
        if hashlib.sha256(body).hexdigest() != line["digest"]:
            raise _altered(path)
        train_rows = line["train"] or 0
        sets = (
            None if line[name] is None else _rows(body, start * _row_bytes(line), line[name], line)
            for name, start in zip(_SETS, (0, train_rows), strict=True)
        )
        return cls(line["session"], *sets)


def scores_path(model: Path) -> Path:
    """Scores file of a model file."""
    return model.with_name(model.name.removesuffix(".json") + SUFFIX)


def _first_line(text: bytes, path: Path) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        raise _altered(path) from None
    if not isinstance(line, dict) or line.get("format") != FORMAT:
        raise FileError(
            "this is not a file of a model's scores",
            where=str(path),
            hint="the end of a training leaves it beside Bob's model",
        )
    if line.get("version") != VERSION:
        raise FileError(
            f"the scores are of version {str(line.get('version'))[:20]}; this program reads "
            f"{VERSION}",
            where=str(path),
            hint="read them with the version of taciturn that wrote them",
        )
    counts = [line.get(name) for name in _SETS]
    sound = all(
        count is None or (type(count) is int and 0 < count < _MOST_ROWS) for count in counts
    )
    if not sound or not all(isinstance(line.get(name), str) for name in ("session", "digest")):
        raise _altered(path)
    family, beside = line.get("family", BINOMIAL), line.get("beside", [])
    if family not in FAMILIES or beside not in ([], ["exposure"], ["weights"], [*_BESIDE]):
        raise _altered(path)
    return {
        "session": line["session"],
        "digest": line["digest"],
        "family": family,
        "beside": beside,
        **dict(zip(_SETS, counts, strict=True)),
    }


def _family_facts(rows: ScoredRows) -> dict[str, Any]:
    """What the first line says of other families; nothing of two classes."""
    return (
        {} if FAMILIES[rows.family].has_classes else {"family": rows.family, "beside": rows.beside}
    )


def _row_bytes(line: dict[str, Any]) -> int:
    return 9 if FAMILIES[line["family"]].has_classes else 16 + 8 * len(line["beside"])


def _pieces(parts: Sequence[ScoredRows]) -> Iterator[bytes]:
    for rows in parts:
        kind = "<u1" if FAMILIES[rows.family].has_classes else "<f8"
        yield rows.scores.astype("<f8").tobytes()
        yield np.asarray(rows.labels).astype(kind).tobytes()
        for name in rows.beside:
            yield getattr(rows, name).astype("<f8").tobytes()


def _rows(body: bytes, start: int, count: int, line: dict[str, Any]) -> ScoredRows:
    def numbers(place: int) -> FloatArray:
        at = start + 8 * count * place
        return np.frombuffer(body, "<f8", count, at).astype(np.float64, copy=False)

    if FAMILIES[line["family"]].has_classes:
        return ScoredRows(numbers(0), np.frombuffer(body, "<u1", count, start + 8 * count))
    beside = {name: numbers(2 + place) for place, name in enumerate(line["beside"])}
    return ScoredRows(numbers(0), numbers(1), line["family"], **beside)


def _altered(path: Path) -> FileError:
    return FileError(
        "the file of scores was cut, or changed after it was written",
        where=str(path),
        hint="take a whole copy of it, or train again",
    )
