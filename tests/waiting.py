"""Waiting for what happens, never for a time.

A busy machine is slow, and nothing else: no test may fail for it. So tests wait until something is
so, and the only limit is the one beyond which a test hangs for good.
"""

from __future__ import annotations

import time
from collections.abc import Callable

# Seconds until a test that hangs is given up: far more than a busy machine needs for anything.
HANG = 900.0


def wait_until(condition: Callable[[], object], failure: str = "it never came true") -> None:
    """Returns once the condition is true; fails where it never becomes so."""
    until = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < until, failure
        time.sleep(0.01)
