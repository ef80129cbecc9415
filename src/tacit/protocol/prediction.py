"""What both sides of a joint prediction must know alike."""

from __future__ import annotations

from collections.abc import Iterator

PREDICTION_TERMS = '{"purpose":"predict"}'
CHUNK_ROWS = 1 << 16


def chunks(rows: int) -> Iterator[tuple[int, slice]]:
    """Numbered slices that cover the rows, small enough for one frame each.

    >>> list(chunks(70_000))
    [(0, slice(0, 65536, None)), (1, slice(65536, 70000, None))]
    """
    for number, start in enumerate(range(0, rows, CHUNK_ROWS)):
        yield number, slice(start, min(start + CHUNK_ROWS, rows))
