"""What happens to files: bits flip, ends are lost, blocks are zero, strange bytes follow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

Damage = Callable[[bytes, np.random.Generator], bytes]


def flipped(content: bytes, draw: np.random.Generator) -> bytes:
    """One bit."""
    place, damaged = int(draw.integers(len(content))), bytearray(content)
    damaged[place] ^= 1 << int(draw.integers(8))
    return bytes(damaged)


def truncated(content: bytes, draw: np.random.Generator) -> bytes:
    """The end is lost."""
    return content[: int(draw.integers(len(content)))]


def zeroed(content: bytes, draw: np.random.Generator) -> bytes:
    """A block of zeros, as a file system leaves it where nothing had been written yet."""
    start = int(draw.integers(len(content)))
    end = min(len(content), start + int(draw.integers(1, 4096)))
    return content[:start] + bytes(end - start) + content[end:]


def lengthened(content: bytes, draw: np.random.Generator) -> bytes:
    """Other bytes follow."""
    return content + draw.bytes(int(draw.integers(1, 200)))


def emptied(content: bytes, draw: np.random.Generator) -> bytes:
    """Nothing is left."""
    return b""


DAMAGES: dict[str, Damage] = {
    "a bit flipped": flipped,
    "truncated": truncated,
    "a block of zeros": zeroed,
    "lengthened": lengthened,
    "emptied": emptied,
}


def damage(path: Path, kind: str, draw: np.random.Generator) -> None:
    """Damages a file in place."""
    path.write_bytes(DAMAGES[kind](path.read_bytes(), draw))
