"""An order of rows, cut into batches: each row once, the short last batch included."""

from __future__ import annotations

from collections.abc import Iterator

from taciturn.arrays import IndexArray
from taciturn.errors import ConfigError, ShapeError


def batches(order: IndexArray, size: int, minimum: int = 1) -> Iterator[IndexArray]:
    """Cut an order of rows into batches: views of ``order``, without copies.

    A last batch of fewer than ``minimum`` rows joins the one before it.

    >>> import numpy as np
    >>> [batch.tolist() for batch in batches(np.array([4, 2, 0, 1, 3]), 2)]
    [[4, 2], [0, 1], [3]]
    >>> [batch.tolist() for batch in batches(np.array([4, 2, 0, 1, 3]), 2, minimum=2)]
    [[4, 2], [0, 1, 3]]
    """
    if order.ndim != 1:
        raise ShapeError(f"an order of rows has one dimension, not the shape {order.shape}")
    count = batch_count(len(order), size, minimum)
    # A generator function would raise only at the first batch, far from the mistake.
    return (
        order[number * size : (number + 1) * size if number < count - 1 else len(order)]
        for number in range(count)
    )


def batch_count(rows: int, size: int, minimum: int = 1) -> int:
    """How many batches ``batches`` makes of so many rows.

    >>> batch_count(5, 2), batch_count(5, 2, minimum=2)
    (3, 2)
    """
    if size < 1:
        raise ConfigError(f"the batch size is {size}", setting="batch_size", hint="use 1 or more")
    if minimum > min(size, max(rows, 1)):
        raise ConfigError(
            f"batches of {min(size, rows)} rows are below the agreed minimum of {minimum}",
            setting="minimum_batch",
            hint="use larger batches, or agree on a lower minimum",
        )
    whole, rest = divmod(rows, size)
    return whole + int(rest >= max(minimum, 1))
