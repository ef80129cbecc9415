"""An order of rows, cut into batches: each row once, the short last batch included."""

from __future__ import annotations

from collections.abc import Iterator

from tacit.arrays import IndexArray
from tacit.errors import ConfigError, ShapeError


def batches(order: IndexArray, size: int) -> Iterator[IndexArray]:
    """Cuts an order of rows into batches.

    Args:
        order: Row numbers, each row once; the epoch's permutation.
        size: Rows in each batch; the last one takes what is left.

    Returns:
        Views of ``order``, without copies.

    Raises:
        ConfigError: If the size is below 1.
        ShapeError: If the order is not one-dimensional.

    >>> import numpy as np
    >>> [batch.tolist() for batch in batches(np.array([4, 2, 0, 1, 3]), 2)]
    [[4, 2], [0, 1], [3]]
    """
    _check_size(size)
    if order.ndim != 1:
        raise ShapeError(f"an order of rows has one dimension, not the shape {order.shape}")
    # A generator function would raise only at the first batch, far from the mistake.
    return (order[start : start + size] for start in range(0, len(order), size))


def batch_count(rows: int, size: int) -> int:
    """How many batches ``batches`` makes of so many rows.

    Args:
        rows: How many rows there are.
        size: Rows in each batch.

    Raises:
        ConfigError: If the size is below 1.

    >>> batch_count(5, 2)
    3
    """
    _check_size(size)
    return -(-rows // size)


def _check_size(size: int) -> None:
    if size < 1:
        raise ConfigError(f"the batch size is {size}", where="batch_size", hint="use 1 or more")
