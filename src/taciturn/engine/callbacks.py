"""Who is told what happens while something runs."""

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


def silent(text: str) -> None:
    """Announces nothing."""


def ignore(event: Event) -> None:
    """Observes nothing."""


def quietly(done: int, total: int) -> None:
    """Reports no progress."""


def unpublished(news: News) -> None:
    """Nobody watches."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Callbacks for messages, events, progress and telemetry; by default they do nothing."""

    announce: Announce = silent
    observe: Observer = ignore
    progress: ReportProgress = quietly
    publish: Publish = unpublished


SILENT = Callbacks()
"""Nobody is told."""
