"""Alice is told how good the model is. The chart stands in ``taciturn.protocol.party``."""

from __future__ import annotations

from taciturn.errors import RemoteProtocolError
from taciturn.privacy.quality_release import ToldQuality, release_event, told_quality
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.messages import HeldOutQuality
from taciturn.protocol.observations import QualityTold
from taciturn.protocol.steps import Program, emit, receive


def hear(inputs: AliceInputs, iterations: int) -> Program[ToldQuality | None]:
    """What she is told of the held-out rows, where that is agreed."""
    agreed, held_out = inputs.terms.agreement, inputs.held_out
    if agreed.share_metrics != "quality" or held_out is None:
        return None
    message = yield from receive(HeldOutQuality)
    steps, epsilon = message.quality, agreed.metrics_epsilon
    quality = told_quality(steps.value, held_out.rows, epsilon)
    if quality is None or steps.event != release_event(epsilon):
        raise RemoteProtocolError("what the peer tells of the model is not what was agreed")
    yield from emit(QualityTold(iterations, quality))
    return quality
