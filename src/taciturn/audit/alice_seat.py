"""Alice's seat of an audit: her view of a simulated training, or that of one of several Alices."""

from __future__ import annotations

from taciturn.errors import TranscriptError
from taciturn.simulation.outcome import Outcome
from taciturn.view.alice_view import AliceView


def alice_view(outcome: Outcome) -> AliceView:
    """What Alice knows after a simulated training.

    Of several it is the one with most columns: of what Bob sends she has the most equations.

    Args:
        outcome: The training.

    Raises:
        TranscriptError: The run kept no transcript.
    """
    transcript, data = outcome.transcript, outcome.data
    if transcript is None:
        raise TranscriptError("the run kept no transcript")
    if not data.alices:
        return AliceView.of(transcript, data.alice_train)
    tables = [*data.alice_train_parts.items()]
    place = max(range(len(tables)), key=lambda number: len(tables[number][1].columns))
    name, features = tables[place]
    return AliceView.of(transcript.link(place), features, name=name)
