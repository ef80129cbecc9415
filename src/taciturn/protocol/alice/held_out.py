"""Alice's scores of held-out rows. The chart stands in ``taciturn.protocol.held_out``."""

from __future__ import annotations

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable
from taciturn.errors import RemoteProtocolError
from taciturn.protocol.messages import EpochScores, EpochVerdict
from taciturn.protocol.scores import require_finite
from taciturn.protocol.steps import Program, receive, require_turn, send
from taciturn.protocol.terms import Terms


def report(
    held_out: FeatureTable, weights: FloatArray, iteration: int, terms: Terms
) -> Program[bool]:
    """Sends her scores; True where Bob ends the training.

    Raises:
        RemoteProtocolError: The verdict is not one.
    """
    scores = require_finite(held_out.values @ weights)
    yield from send(EpochScores(iteration, scores))
    if terms.agreement.patience is None:
        return False
    verdict = yield from receive(EpochVerdict)
    require_turn("EpochVerdict", verdict.iteration, iteration)
    if verdict.stop.value.tolist() not in ([0], [1]):
        raise RemoteProtocolError("the peer's verdict is neither to stop nor to go on")
    return bool(verdict.stop.value[0])
