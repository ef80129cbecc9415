"""The messages of scores on demand."""

from __future__ import annotations

from dataclasses import dataclass, field

from taciturn.protocol.messages import Message, PublicBytes, RowNumbers


@dataclass(frozen=True, slots=True)
class RowsAsked(Message):
    """The ids of rows that are to be scored now, as ``jobs.serve.rounds`` writes them."""

    code = 42
    senders = ("bob",)

    number: int
    ids: PublicBytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class RowsHeld(Message):
    """Alice's verdict on each requested row: a byte of ``jobs.serve.rounds.Verdict``."""

    code = 43
    senders = ("alice",)

    number: int
    verdicts: PublicBytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class RowsDue(Message):
    """The places of those rows that all of several Alices have."""

    code = 44
    senders = ("bob",)

    number: int
    places: RowNumbers = field(repr=False)
