"""A party's share of a trained model, in a file: weights, preparation, provenance.

The file is JSON, versioned, and holds no labels and nothing of the other side but what both know.
Weights are written so that reading gives the same bits. A share alone predicts nothing: scores need
both sides.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tacit.arrays import FloatArray
from tacit.data.prepare import Preparation
from tacit.errors import ConfigError, FileError, OutputError

FORMAT = "tacit-model"
VERSION = 1


@dataclass(frozen=True, slots=True)
class ModelShare:
    """One side of a model.

    Args:
        role: Whose side it is.
        columns: The prepared columns, in the order of the weights.
        weights: One per column; where Alice's are shared she has none, and Bob has his own.
        preparation: What turns this side's raw columns into the prepared ones.
        agreement: What both sides had agreed on.
        session: The name of the session that trained it, the same on both sides.
        rows: How many rows it was trained on.
        data_digest: Of this side's prepared training table.
        metrics: How good the model is, where this side knows it.
        ledger: What the labels paid, where this side knows it.
        notes: What is worth knowing.
        share: This side's share of Alice's weights, where they are shared.
        scales: The public scales of the shares.
    """

    role: str
    columns: tuple[str, ...]
    weights: FloatArray = field(repr=False)
    preparation: Preparation = field(repr=False)
    agreement: dict[str, Any]
    session: str
    rows: int
    data_digest: str
    metrics: dict[str, Any] = field(default_factory=dict)
    ledger: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    share: tuple[int, ...] = field(default=(), repr=False)
    scales: dict[str, Any] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Writes the file, whole or not at all, for its owner's eyes only.

        Raises:
            OutputError: It cannot be written.
        """
        values = {
            "format": FORMAT,
            "version": VERSION,
            **asdict(self),
            "weights": self.weights.tolist(),
            "preparation": self.preparation.to_json(),
        }
        write_private(path, json.dumps(_finite(values), indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> ModelShare:
        """Reads a file.

        Raises:
            FileError: It is absent, cut, of another kind or of a newer version.
        """
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except OSError as problem:
            raise FileError(
                f"the model cannot be read: {problem.strerror}", where=str(path)
            ) from None
        except (ValueError, RecursionError):
            raise FileError("this is not a whole model file", where=str(path)) from None
        if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
            raise FileError("this is not a model of tacit", where=str(path))
        version = found.pop("version", None)
        if version != VERSION:
            raise FileError(
                f"the model is of version {version}; this program reads {VERSION}",
                where=str(path),
                hint="read it with the version of tacit that wrote it",
            )
        try:
            weights = np.array(found.pop("weights"), dtype=np.float64)
            share = cls(
                weights=weights,
                columns=tuple(found.pop("columns")),
                preparation=Preparation.from_json(found.pop("preparation")),
                notes=tuple(found.pop("notes")),
                share=tuple(int(each) for each in found.pop("share")),
                **found,
            )
        except (KeyError, TypeError, ValueError, ConfigError):
            raise FileError(
                "the model file lacks a part, or has one too many", where=str(path)
            ) from None
        sealed_away = bool(share.share) and share.role == "alice" and not len(weights)
        if weights.shape != (len(share.columns),) and not sealed_away:
            raise FileError("the model's weights do not fit its columns", where=str(path))
        return share


def write_private(path: Path, content: str | bytes) -> None:
    """Writes a file, whole or not at all, that only its owner may read.

    Raises:
        OutputError: It cannot be written.
    """
    fresh = path.with_name(path.name + ".new")
    try:
        # A left-over would keep its mode, and a link would lead elsewhere.
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)
    except OSError as problem:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise OutputError(
            f"the file cannot be written: {problem.strerror}",
            where=str(path),
            hint="name a file in a folder that exists, may be written and has room",
        ) from None


def _finite(value: Any) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """Infinity as text, and null for what is not a number."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
