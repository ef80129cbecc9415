"""How often something may happen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Allowance:
    """A number of times per second, and twice as many at once after a pause.

    >>> now = [0.0]
    >>> allowance = Allowance(2, clock=lambda: now[0])
    >>> [allowance.spend() for _ in range(5)]
    [True, True, True, True, False]
    >>> now[0] = 0.5
    >>> [allowance.spend() for _ in range(2)]
    [True, False]
    """

    def __init__(self, per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_second
        self._most = max(1.0, 2 * per_second)
        self._left = self._most
        self._clock = clock
        self._at = clock()
        self._lock = threading.Lock()

    def spend(self) -> bool:
        """Takes one, if there is one."""
        with self._lock:
            now = self._clock()
            self._left = min(self._most, self._left + self._rate * (now - self._at))
            self._at = now
            if self._left < 1:
                return False
            self._left -= 1
            return True
