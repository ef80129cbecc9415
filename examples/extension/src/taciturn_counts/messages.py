"""The messages of ``counts``."""

from __future__ import annotations

from dataclasses import dataclass, field

from taciturn.protocol.messages import Message


@dataclass(frozen=True, slots=True)
class ColumnAsked(Message):
    """The column that Bob asks for."""

    code = 128
    senders = ("bob",)

    column: str


@dataclass(frozen=True, slots=True)
class ColumnCounts(Message):
    """How often each value of the column occurs: an object in JSON."""

    code = 129
    senders = ("alice",)

    counts: str = field(repr=False)
