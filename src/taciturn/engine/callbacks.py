"""Callbacks: observers of a running command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from taciturn.protocol.events import Event
from taciturn.results.parties import News

Announce: TypeAlias = Callable[[str], None]
"""Told in words what runs now, or what has happened."""
Observer: TypeAlias = Callable[[Event], None]
"""Told each event of a program."""
ReportProgress: TypeAlias = Callable[[int, int], None]
"""Told how much of some work is done, and of how much."""
Publish: TypeAlias = Callable[[News], None]
"""Told figures, the state of links, what it costs: now and then, from any thread."""


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
