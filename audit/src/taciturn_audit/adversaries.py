"""The adversary of an audit: Alice, Bob or both; and which of several Alices pool what they have.

With several Alices ``alice`` is all of them together, the strongest that there is; names joined by
``+`` are a coalition of fewer, and one name is one Alice alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from taciturn.data.split import VerticalData
from taciturn.engine.transcript import Transcript
from taciturn.errors import ConfigError, TranscriptError, nearest
from taciturn.jobs.train.simulation import Outcome
from taciturn_audit.results.audit import SEATS
from taciturn_audit.views.alice_view import AliceView
from taciturn_audit.views.coalition import pooled

_TOGETHER = "+"


def members(seat: str, names: Sequence[str]) -> tuple[str, ...]:
    """The Alices whose views a seat pools, in the agreement's order; empty with one Alice.

    Raises ``ConfigError`` where a party is unknown or named twice.

    >>> members("alice-3+alice-1", ["alice-1", "alice-2", "alice-3"])
    ('alice-1', 'alice-3')
    >>> members("both", ["alice-1", "alice-2"])
    ('alice-1', 'alice-2')
    """
    if seat in SEATS:
        return tuple(names)
    asked = seat.split(_TOGETHER)
    for name in asked:
        if name not in names:
            raise ConfigError(
                f"unknown adversary {name}", setting="seat", hint=nearest(name, [*SEATS, *names])
            )
    if len(set(asked)) < len(asked):
        raise ConfigError(
            f"a party is named twice in {seat}", setting="seat", hint="name each of them once"
        )
    return tuple(name for name in names if name in asked)


def alice_view(
    transcript: Transcript, data: VerticalData, names: Sequence[str] | None = None
) -> AliceView:
    """The view of the named Alices together, or of all, of a recorded simulation."""
    train, test = data.alice_train_parts, data.alice_test_parts
    if not train:
        return AliceView.from_transcript(
            transcript, data.alice_train, data.alice_test if data.held_out else None
        )
    return pooled(
        [
            AliceView.from_transcript(
                transcript.link(number), table, test[name] if data.held_out else None, name
            )
            for number, (name, table) in enumerate(train.items())
            if names is None or name in names
        ]
    )


def outcome_view(outcome: Outcome, names: Sequence[str] | None = None) -> AliceView:
    """The view of the named Alices together, or of all, of a run that was kept."""
    if outcome.transcript is None:
        raise TranscriptError("the run kept no transcript")
    return alice_view(outcome.transcript, outcome.data, names)
