"""Bob tells how good the model is. The chart stands in ``taciturn.protocol.party``."""

from __future__ import annotations

from taciturn.arrays import EVERY_ROW, FloatArray
from taciturn.privacy.base import Mechanism
from taciturn.privacy.quality_release import TOLD, ToldQuality, release, told_quality
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.partners import send_all
from taciturn.protocol.messages import HeldOutQuality
from taciturn.protocol.steps import Program


def tell(inputs: BobInputs[Mechanism], scores: FloatArray | None) -> Program[ToldQuality | None]:
    """Tells what is agreed of the held-out rows, and returns what was told."""
    agreed, held_out = inputs.terms.agreement, inputs.held_out
    if agreed.share_metrics != "quality" or scores is None or held_out is None:
        return None
    epsilon, entropy = agreed.metrics_epsilon, inputs.entropy.fork("told quality")
    quality = release(scores, held_out.labels.values, epsilon, entropy)
    if epsilon is None:
        inputs.ledger.taint(TOLD)
    inputs.ledger.charge(quality.event, EVERY_ROW)
    yield from send_all(inputs.partners, HeldOutQuality(quality))
    return told_quality(quality.value, held_out.labels.rows, epsilon)
