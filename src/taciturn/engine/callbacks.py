"""Callbacks by which a running command reports messages, events, progress and figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from taciturn.protocol.events import Event
from taciturn.results.parties import News

Announce: TypeAlias = Callable[[str], None]
"""Called with a sentence about what runs now, or what has happened."""
Observer: TypeAlias = Callable[[Event], None]
"""Called with each event of a program."""
ReportProgress: TypeAlias = Callable[[int, int], None]
"""Called with the completed amount and the total."""
Publish: TypeAlias = Callable[[News], None]
"""Called with figures, link states and costs, from any thread."""


def noop(*arguments: object) -> None:
    """Do nothing, as a callback that nobody asked for."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Callbacks for messages, events, progress and telemetry; by default they do nothing."""

    announce: Announce = noop
    observe: Observer = noop
    progress: ReportProgress = noop
    publish: Publish = noop


SILENT = Callbacks()
"""Callbacks that do nothing."""
