"""Arrays in private files, for tables that are larger than memory.

A memory-mapped array is a NumPy array whose numbers lie in a file: pages are loaded when they are
read, and can be dropped again. Code that walks over all rows of a table uses ``row_blocks``, which
drops each block afterwards: memory use then depends on the block, and not on the table.

**Guarantee.** Disk space is reserved when the file is made: a full disk is an error then, with the
file's name, and never a fault in the middle of a sum. Only the owner may read a
file.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from taciturn.errors import FileError
from taciturn.files import private_folder, reporting_write_errors
from taciturn.parallel import on_all_cores, threads

BLOCK_ROWS = 1 << 16
"""Rows that are at work at a time; sums over blocks of this size are the same on every machine."""
LEAST_MAPPED_BYTES = 64 << 20
"""A smaller array is faster in memory."""

A = TypeVar("A", bound="NDArray[Any]")
R = TypeVar("R")


def create(path: Path, shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """A new memory-mapped array of zeros; an existing file of that name is replaced."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize
    hint = "make room on that disk, or name another folder; nothing was lost"
    with reporting_write_errors(path, "table's file", hint):
        # A left-over would keep its mode, and a link would lead elsewhere.
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            if size:
                _reserve(descriptor, size)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
    if not size:
        return np.empty(shape, kind)
    return np.memmap(path, kind, "r+", shape=shape)


def opened(path: Path, shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """The memory-mapped array in a file, read-only."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize
    try:
        present = path.stat().st_size
    except OSError as problem:
        raise FileError(
            f"the table's file cannot be read: {problem.strerror}", where=str(path)
        ) from None
    if present != size:
        raise FileError(
            f"the table's file has {present:,} bytes and should have {size:,}", where=str(path)
        )
    return np.memmap(path, kind, "r", shape=shape) if size else np.empty(shape, kind)


def drop_pages(values: NDArray[Any]) -> None:
    """Release the memory of a mapped array; its file keeps the numbers."""
    base: object = values
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def row_blocks(values: A, rows: int = BLOCK_ROWS) -> Iterator[tuple[slice, A]]:
    """The rows of an array in blocks, each with its place; pages of a mapped array are dropped."""
    for start in range(0, len(values), rows):
        place = slice(start, min(start + rows, len(values)))
        yield place, values[place]  # type: ignore[misc]
        drop_pages(values)


def over_blocks(work: Callable[[slice], R], rows: int, *walked: NDArray[Any]) -> Iterator[R]:
    """Results of a function on each block of rows, in their order.

    All cores work on the blocks, a few at a time; a sum over them is the same whatever the cores.
    ``work`` is given the place of a block, and may write to it. Pages of mapped arrays among
    ``walked`` are dropped after it.
    """
    places = [slice(at, min(at + BLOCK_ROWS, rows)) for at in range(0, rows, BLOCK_ROWS)]
    # Threads of a pool have settings of their own.
    errors = np.geterr()

    def settled(place: slice) -> R:
        with np.errstate(**errors):
            return work(place)

    at_a_time = 2 * threads()
    for start in range(0, len(places), at_a_time):
        yield from on_all_cores(settled, places[start : start + at_a_time])
        for values in walked:
            drop_pages(values)


@dataclass(frozen=True, slots=True)
class Scratch:
    """Storage for the large arrays of one run: memory, or the files of a folder.

    The folder is made when it is needed; None is memory alone. Arrays of fewer than ``least`` bytes
    are in memory.
    """

    folder: Path | None = None
    least: int = LEAST_MAPPED_BYTES

    def empty(self, name: str, shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
        """An uninitialised array under a unique name."""
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize
        if self.folder is None or size < self.least:
            return np.empty(shape, kind)
        with reporting_write_errors(self.folder, "folder for tables"):
            private_folder(self.folder)
        return create(self.folder / name, shape, kind)

    def unnamed(self, shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
        """An uninitialised array in a file that nobody can open again.

        Its disk space is free as soon as it is no longer used, also where the process is killed:
        for what depends on a secret.
        """
        name = f"unnamed-{os.getpid()}-{threading.get_ident()}"
        values = self.empty(name, shape, kind)
        if isinstance(values, np.memmap) and self.folder is not None:
            (self.folder / name).unlink()
            # No other process is sent to where it was.
            values.filename = None
        return values

    def clear(self) -> None:
        """Remove the files; arrays that are still in use keep their numbers."""
        if self.folder is not None:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(self.folder)


MEMORY = Scratch()


def _reserve(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.ftruncate(descriptor, size)
