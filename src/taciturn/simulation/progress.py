"""How far some work is, as a bar in the cell of a notebook that waits for it.

The bar is HTML which the cell's output replaces as the work goes on, so that it needs no package
beside the kernel and a saved notebook keeps its last state. Work that ends at once shows none.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from taciturn.engine.callbacks import SILENT, Callbacks
from taciturn.engine.pulse import Pulse
from taciturn.protocol.events import Advance, Event

_FIRST_SECONDS, _EVERY_SECONDS = 0.5, 0.2


@contextmanager
def in_cell(callbacks: Callbacks) -> Iterator[Callbacks]:
    """The given callbacks; in a notebook, where they are silent, a progress bar in the cell.

    >>> with in_cell(SILENT) as watching:  # no notebook
    ...     watching is SILENT
    True
    """
    if callbacks != SILENT or not _has_kernel():
        yield callbacks
        return
    bar = _CellBar()
    try:
        yield Callbacks(bar.announce, bar.observe, bar.progress)
    finally:
        bar.close()


def _has_kernel() -> bool:
    """Whether a notebook's kernel runs this: IPython in a terminal has none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class _CellBar:
    def __init__(self) -> None:
        self._pulse = Pulse()
        self._due = time.monotonic() + _FIRST_SECONDS
        self._handle: Any = None

    def announce(self, activity: str) -> None:
        self._pulse.begin(activity)
        self._show()

    def observe(self, event: Event) -> None:
        if isinstance(event, Advance) and self._pulse.observe(event):
            self._show()

    def progress(self, done: int, total: int) -> None:
        self._pulse.advance(self._pulse.activity, done, total)
        self._show()

    def close(self) -> None:
        if self._handle is not None:
            self._handle.update(self._html(), raw=True)

    def _show(self) -> None:
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _EVERY_SECONDS
        if self._handle is None:
            # Loaded here: only a kernel has it.
            from IPython.display import display

            # Any: it has no types.
            show: Any = display
            self._handle = show(self._html(), raw=True, display_id=True)
        else:
            self._handle.update(self._html(), raw=True)

    def _html(self) -> dict[str, str]:
        done, total = self._pulse.reach
        value = f' value="{done}" max="{total}"' if total else ""
        line = self._pulse.line()
        return {
            "text/html": f"<progress{value}></progress> <span>{escape(line)}</span>",
            "text/plain": line,
        }
