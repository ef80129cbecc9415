"""What was not run, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Skipped:
    """An attack, or a control, that did not apply."""

    name: str
    reason: str
