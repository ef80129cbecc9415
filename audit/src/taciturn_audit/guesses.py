"""Guesses in a file: made at Alice, who has no labels, and judged at Bob, who has them.

The file is JSON. It holds what the attacks say of each training row, in the rows' order and without
their ids, and which session it is about. A digest of all the rest shows a file that was cut or
changed by accident; it is no signature.

**Who learns what from it.** Anyone who reads it has Alice's guesses, which are as good as labels
where she can tell them: it is written for its owner's eyes only. Bob, who has the labels, learns
from it what her attacks made of her columns: a number for each row and attack. ``model-only`` is
her part of the score, of which he saw at least as much in the training. A digest of her table would
confirm a guess at the whole of it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.arrays import BoolArray, FloatArray
from taciturn.errors import DataError, FileError
from taciturn.files import canonical_json, write_private
from taciturn.results.reading import read
from taciturn.results.serialise import OMITTED, record_of
from taciturn_audit.attacks.base import LabelGuess
from taciturn_audit.results.audit import Distinguisher, MessageSeen, Skipped
from taciturn_audit.results.session import Recording
from taciturn_audit.runner import Guesses

FORMAT = "taciturn-guesses"
VERSION = 1
MOST_BYTES = 2 << 30
_MOST_ATTACKS = 1000


@dataclass(frozen=True, slots=True)
class _Written:
    """One guess: arrays as base64 of little-endian numbers, and of bits."""

    name: str
    scores: str
    signal: str
    certain: str
    seconds: float
    remark: str
    limited: bool | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessesFile:
    """Guesses at the labels of a session's training rows, and what else Alice's side can say."""

    recording: Recording
    guesses: Guesses
    messages: tuple[MessageSeen, ...]
    distinguisher: Distinguisher | None

    def save(self, path: Path) -> None:
        """Write the file, readable by its owner alone; ``OutputError`` where that fails."""
        attacks, control = self.guesses.attacks, self.guesses.model_only
        values: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "recording": record_of(self.recording),
            "model_only": None if control is None else record_of(_written("", control, 0.0)),
            "attacks": [
                record_of(_written(name, guess, self.guesses.seconds[name]))
                for name, guess in attacks.items()
            ],
            "skipped": [record_of(skip) for skip in self.guesses.skipped],
            "messages": [record_of(message) for message in self.messages],
            "distinguisher": None if self.distinguisher is None else record_of(self.distinguisher),
        }
        values["digest"] = _digest(values)
        write_private(path, json.dumps(values, allow_nan=False) + "\n", "file of guesses")

    @classmethod
    def load(cls, path: Path) -> GuessesFile:
        """Read a file; ``FileError`` where it is absent, cut, altered or of another kind."""
        values = _parsed(path)
        try:
            recording = read(Recording, values["recording"])
            rows = recording.rows
            written = [read(_Written, record) for record in _listed(values["attacks"])]
            control = values["model_only"]
            look = values["distinguisher"]
            return cls(
                recording=recording,
                guesses=Guesses(
                    None if control is None else _guess(read(_Written, control), rows),
                    {record.name: _guess(record, rows) for record in written},
                    {record.name: record.seconds for record in written},
                    tuple(read(Skipped, record) for record in _listed(values["skipped"])),
                ),
                messages=tuple(read(MessageSeen, record) for record in _listed(values["messages"])),
                distinguisher=None if look is None else read(Distinguisher, look),
            )
        except (KeyError, TypeError, ValueError, DataError):
            raise FileError(
                "the file of guesses lacks a part, or has one that does not fit",
                where=str(path),
                hint="take a whole copy of it, or let Alice's side write it again",
            ) from None


def _written(name: str, guess: LabelGuess, seconds: float) -> _Written:
    return _Written(
        name,
        base64.b64encode(guess.scores.astype("<f8").tobytes()).decode(),
        _bits(guess.signal),
        _bits(guess.certain),
        seconds,
        guess.remark,
        guess.limited or None,
    )


def _bits(values: BoolArray) -> str:
    return base64.b64encode(np.packbits(values).tobytes()).decode()


def _guess(written: _Written, rows: int) -> LabelGuess:
    octets = _octets(written.scores)
    if len(octets) != 8 * rows:
        raise ValueError("another number of rows")
    scores: FloatArray = np.frombuffer(octets, dtype="<f8").astype(np.float64)
    signal, certain = (_of_bits(text, rows) for text in (written.signal, written.certain))
    guess = LabelGuess(scores, signal, certain, written.remark, bool(written.limited))
    if not guess.covers(rows):
        raise ValueError("a score is not a number")
    return guess


def _of_bits(text: str, rows: int) -> BoolArray:
    octets = _octets(text)
    if len(octets) != -(-rows // 8):
        raise ValueError("another number of rows")
    return np.unpackbits(np.frombuffer(octets, dtype=np.uint8), count=rows).astype(np.bool_)


def _octets(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("not base64") from None


def _listed(values: object) -> list[Any]:
    if not isinstance(values, list) or len(values) > _MOST_ATTACKS:
        raise ValueError("not a list")
    return values


def _digest(values: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(values).encode()).hexdigest()


def _parsed(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise FileError("the file of guesses is too large", where=str(path))
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise FileError(
            f"the guesses cannot be read: {problem.strerror}",
            where=str(path),
            hint="Alice's side writes them when it audits its recording",
        ) from None
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise FileError(
            "this is not a file of guesses",
            where=str(path),
            hint="name the file that Alice's side wrote when it audited its recording",
        )
    if values.get("version") != VERSION:
        raise FileError(
            f"guesses of version {str(values.get('version'))[:20]}; this program reads {VERSION}",
            where=str(path),
            hint="write and read them with the same version of taciturn",
        )
    digest = values.pop("digest", None)
    try:
        fits = _digest(values) == digest
    except (ValueError, RecursionError):
        fits = False
    if not fits:
        raise FileError(
            "the file of guesses was changed after it was written: its digest does not fit",
            where=str(path),
            hint="take a whole copy of it, or let Alice's side write it again",
        )
    return values
