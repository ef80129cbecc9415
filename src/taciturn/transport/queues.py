"""A queue between two threads that is bounded in bytes.

Bounding the number of entries would not do: entries are from nothing to a whole frame.
"""

from __future__ import annotations

import threading
import time
from collections import deque

# What an entry costs beside its bytes, so that empty ones are not free.
OVERHEAD = 256


class Ended(Exception):
    """Nothing more goes in, or nothing more comes out."""


class ByteQueue:
    """First in, first out; putting waits for room, taking waits for an entry.

    ``limit`` is in bytes; a single entry may exceed it, if it is alone.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: deque[bytes] = deque()
        self._size = 0
        self._open = True
        self._changed = threading.Condition()

    def put(self, entry: bytes, *, force: bool = False) -> None:
        """Adds an entry, once there is room (or at once, if forced); Ended if it takes no more."""
        cost = len(entry) + OVERHEAD
        with self._changed:
            while self._open and self._size and self._size + cost > self._limit and not force:
                self._changed.wait()
            if not self._open:
                raise Ended
            self._entries.append(entry)
            self._size += cost
            self._changed.notify_all()

    def get(self, timeout: float | None = None) -> bytes | None:
        """Takes the oldest entry, None after the timeout; Ended where none will come."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not self._entries:
                if not self._open:
                    raise Ended
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    return None
                self._changed.wait(None if left is None else min(left, threading.TIMEOUT_MAX))
            entry = self._entries.popleft()
            self._size -= len(entry) + OVERHEAD
            self._changed.notify_all()
            return entry

    def finish(self, *, drop: bool = False) -> None:
        """Takes nothing more; what waits may still be taken, unless it is dropped."""
        with self._changed:
            self._open = False
            if drop:
                self._entries.clear()
                self._size = 0
            self._changed.notify_all()
