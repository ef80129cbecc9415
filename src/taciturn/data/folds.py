"""Which rows are held out, and which fold judges a model that is trained without it.

The hash of a row's id alone decides: both sides come to the same without a word, the order of the
rows does not matter, and it says nothing about a label. The salt lets two trainings differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from taciturn.arrays import IndexArray
from taciturn.data.ids import RowIds
from taciturn.errors import ShapeError
from taciturn.memmap import BLOCK_ROWS


def held_out_rows(ids: RowIds, share: float | None, salt: str) -> NDArray[np.bool]:
    """A mask of the rows whose hashed id falls below the share; of none without a share.

    >>> held_out_rows(RowIds.numbered(6), 0.5, "").tolist()
    [False, False, True, False, True, False]
    """
    held = np.zeros(len(ids), dtype=np.bool)
    if share is not None:
        limit = np.uint64(int(share * 2**64))
        for place, words in _hashed(ids, f"taciturn held out\0{salt}\0", 8):
            held[place] = np.frombuffer(words, ">u8") < limit
    return held


def fold_numbers(ids: RowIds, folds: int, salt: str) -> IndexArray:
    """The fold of each row, from 0 on.

    >>> fold_numbers(RowIds.numbered(6), 3, "").tolist()
    [1, 1, 1, 2, 0, 1]
    """
    numbers = np.empty(len(ids), dtype=np.int64)
    for place, words in _hashed(ids, f"taciturn fold\0{salt}\0", 4):
        numbers[place] = np.frombuffer(words, ">u4").astype(np.int64) * folds >> 32
    return numbers


def _hashed(ids: RowIds, prefix: str, size: int) -> Iterator[tuple[slice, bytes]]:
    """The first bytes of the hash of each id, one behind the other, in blocks of rows."""
    salted = prefix.encode()
    # By blocks: ten million ids as objects would need more memory than the rest of the work.
    for start in range(0, len(ids), BLOCK_ROWS):
        texts = ids.series.slice(start, BLOCK_ROWS).to_list()
        words = b"".join([sha256(salted + text.encode()).digest()[:size] for text in texts])
        yield slice(start, start + len(texts)), words


def filled_folds(ids: RowIds, folds: int, salt: str) -> IndexArray:
    """The fold of each row, where every fold has some; all in one where there are no folds."""
    if not folds:
        return np.zeros(len(ids), dtype=np.int64)
    numbers = fold_numbers(ids, folds, salt)
    if not np.bincount(numbers, minlength=folds).min():
        raise ShapeError(
            f"{len(ids)} training rows are too few for {folds} folds: one has no rows",
            hint="use fewer folds, or 0 to judge by held-out rows",
        )
    return numbers
