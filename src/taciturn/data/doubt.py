"""Doubt: why a text column that looks like numbers or dates is not read as such."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Doubt:
    """What a column's values look like, and the settings that decide how they are read.

    ``choices`` are pairs of a setting and its value for the column.
    """

    look: str
    example: str
    reason: str
    choices: tuple[tuple[str, object], ...]
