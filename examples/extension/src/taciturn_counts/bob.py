"""Bob's program: he asks for a column, and checks what he receives."""

from __future__ import annotations

import json

from taciturn.errors import RemoteProtocolError
from taciturn.protocol.handshake import shake_hands
from taciturn.protocol.messages import Hello
from taciturn.protocol.steps import Program, receive, send
from taciturn_counts.messages import ColumnAsked, ColumnCounts


def ask(hello: Hello, column: str) -> Program[dict[str, int]]:
    """Request a column; returns how often each value occurs."""
    yield from shake_hands(hello)
    yield from send(ColumnAsked(column))
    answered = yield from receive(ColumnCounts)
    return _read(answered.counts)


def _read(text: str) -> dict[str, int]:
    """The counts of a message; RemoteProtocolError where it holds something else."""
    try:
        counts = json.loads(text)
    except (ValueError, RecursionError):
        counts = None
    sound = isinstance(counts, dict) and all(
        type(count) is int and count > 0 for count in counts.values()
    )
    if not isinstance(counts, dict) or not sound:
        raise RemoteProtocolError("the peer's counts are no counts")
    return counts
