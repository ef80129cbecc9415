"""Location of a memory-mapped array, by which another process opens it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import FileError


@dataclass(frozen=True, slots=True)
class ArrayLocation:
    """Location of a mapped array, for another process; ``offset`` and ``strides`` are in bytes."""

    path: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    kind: str

    @classmethod
    def from_array(cls, values: NDArray[Any]) -> ArrayLocation | None:
        """Location of a mapped array, or of a part of one; None where it is in memory."""
        whole: object = values
        while isinstance(whole, np.ndarray) and isinstance(whole.base, np.ndarray):
            whole = whole.base
        if not isinstance(whole, np.memmap) or whole.filename is None:
            return None
        ahead = values.ctypes.data - whole.ctypes.data
        path = str(Path(whole.filename).resolve())
        return cls(path, whole.offset + ahead, values.shape, values.strides, values.dtype.str)

    def opened(self) -> NDArray[Any]:
        """The array, read-only."""
        last = sum(
            (count - 1) * stride for count, stride in zip(self.shape, self.strides, strict=True)
        )
        size = last + np.dtype(self.kind).itemsize
        try:
            bytes_ = np.memmap(self.path, np.uint8, "r", self.offset, (size,))
        except (OSError, ValueError) as problem:
            raise FileError(
                f"the table's file cannot be read: {problem}", where=self.path
            ) from None
        return np.ndarray(self.shape, self.kind, bytes_, strides=self.strides)

    def to_json(self) -> str:
        """The location as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ArrayLocation:
        """Inverse of ``to_json``."""
        values = json.loads(text)
        sides = {name: tuple(values[name]) for name in ("shape", "strides")}
        return cls(**{**values, **sides})
