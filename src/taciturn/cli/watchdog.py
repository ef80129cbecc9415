"""``Watchdog``: tells systemd that this process works, for ``WatchdogSec`` in a unit.

https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

ALIVE = b"WATCHDOG=1"


def main_thread_seconds() -> float:
    """Processor time that the main thread has used; the clock's where that is not known."""
    thread = threading.main_thread().ident
    if sys.platform == "win32" or thread is None:
        return time.monotonic()
    return time.clock_gettime(time.pthread_getcpuclockid(thread))


class Watchdog:
    """Tells the service manager that the main thread still runs.

    A thread of its own says so, and therefore only where the main thread has used processor time
    since the last look: after an error that leaves it waiting for good, such as one for lack of
    memory, nothing is said any more, and the service manager starts the program again.

    ``seconds`` grows while the main thread runs.
    """

    def __init__(
        self, address: str | None = None, seconds: Callable[[], float] = main_thread_seconds
    ) -> None:
        given = os.environ.get("NOTIFY_SOCKET", "") if address is None else address
        # An abstract socket is written with an at sign.
        self._address = f"\0{given[1:]}" if given.startswith("@") else given
        self._seconds, self._last = seconds, -1.0

    def look(self) -> None:
        """Tells it, if that is so."""
        used = self._seconds()
        if self._address and used > self._last:
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
                link.sendto(ALIVE, self._address)
        self._last = used
