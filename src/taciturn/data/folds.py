"""Folds: which rows judge a model that is trained without them."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from taciturn.arrays import IndexArray
from taciturn.data.ids import RowIds
from taciturn.errors import ShapeError
from taciturn.mapped import BLOCK_ROWS


def fold_numbers(ids: RowIds, folds: int, salt: str) -> IndexArray:
    """The fold of each row, from 0 on.

    The hash of its id alone decides: both sides come to the same without a word, the order of the
    rows does not matter, and it says nothing about a label.

    >>> fold_numbers(RowIds.numbered(6), 3, "").tolist()
    [1, 1, 1, 2, 0, 1]
    """
    prefix, numbers = f"taciturn fold\0{salt}\0".encode(), np.empty(len(ids), dtype=np.int64)
    # By blocks: ten million ids as objects would need more memory than the rest of the work.
    for start in range(0, len(ids), BLOCK_ROWS):
        texts = ids.series.slice(start, BLOCK_ROWS).to_list()
        words = b"".join([sha256(prefix + text.encode()).digest()[:4] for text in texts])
        hashed = np.frombuffer(words, ">u4").astype(np.int64)
        numbers[start : start + len(texts)] = hashed * folds >> 32
    return numbers


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
