"""Alice's program: she counts the column that Bob asks for.

::

    Alice                         Bob
      Hello                ◄──►     Hello
                           ◄──      ColumnAsked
      ColumnCounts          ──►
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from taciturn.errors import AgreementError
from taciturn.protocol.events import Event
from taciturn.protocol.handshake import shake_hands
from taciturn.protocol.messages import Hello
from taciturn.protocol.steps import Program, emit, receive, send
from taciturn_counts.messages import ColumnAsked, ColumnCounts


@dataclass(frozen=True, slots=True)
class ColumnDue(Event):
    """The counts of a column leave with the next message: the budget is charged now."""

    column: str
    values: int
    counts: Mapping[str, int] = field(repr=False)


def answer(hello: Hello, shared: Mapping[str, Mapping[str, int]]) -> Program[ColumnDue]:
    """Give the counts of the requested column; returns what was given."""
    yield from shake_hands(hello)
    asked = yield from receive(ColumnAsked)
    if asked.column not in shared:
        # The peer receives the same words, which follow from its own request.
        raise AgreementError(f"Alice shares no counts of the column {asked.column!r}")
    counts = shared[asked.column]
    due = ColumnDue(asked.column, len(counts), counts)
    yield from emit(due)
    yield from send(ColumnCounts(json.dumps(counts)))
    return due
