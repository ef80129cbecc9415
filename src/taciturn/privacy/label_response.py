"""``label-rr``: each label is flipped once, with probability ``1 / (1 + e^eps)`` [Warner65].

Everything afterwards uses the flipped labels: residues, gradients, Bob's own weights. Whatever is
computed from them tells no more about a true label than they do, however many epochs there are. The
training fits the probability of the *flipped* label (``taciturn.numerics.flipped_labels``), so that
the model is still one of the true ones.

It runs over any conversation that takes residues from the mechanism: ``none``, whose gradients then
hand Alice the flipped labels, or ``sealed``.

**Guarantee.** Label epsilon = ``eps`` in total, whatever the number of epochs, and against whatever
Alice does; the residue's likewise. An attack recovers the *flipped* label, so it is right about the
true one with probability ``e^eps / (1 + e^eps)``, not one half, and no attack on a label at even
odds does better.

**Assumes.** True labels are used nowhere else that she can see: not for stopping, not for choosing
settings. Labels are flipped once: flipping them again, for a second training, spends again, and the
epsilons add up (``taciturn.deploy.flip_book`` keeps the first answer). The coins are good.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray, LabelArray
from taciturn.data.tables import LabelTable
from taciturn.numerics.flipped_labels import corrected_residue
from taciturn.privacy.base import MaskedProduct, Mechanism, Released
from taciturn.privacy.events import FlippedLabelGradient, LabelResponse
from taciturn.privacy.noise import response_flips
from taciturn.rng import Entropy

_RESTS_ON = (
    "labels are flipped once and true ones are used nowhere else: "
    "what is computed from the flipped ones costs nothing more"
)


class FlippedLabels:
    """Randomised response on the labels, and a training that knows of it.

    Args:
        event: The privacy parameter.
        over: The mechanism whose conversation the flipped labels are trained in.
    """

    name = "label-rr"

    def __init__(self, event: LabelResponse, over: Mechanism) -> None:
        self.event = event
        self.gradient_event = FlippedLabelGradient(event.epsilon)
        self.conversation = over.conversation
        self.encrypts = over.encrypts
        # What ``none`` says of itself is that it protects nothing: here something else does.
        beyond = "" if over.name == "none" else f"; besides, {over.assumption}"
        self.assumption = _RESTS_ON + beyond

    @property
    def keep(self) -> float:
        """The probability that a label is told as it is: what every attack can reach.

        >>> from taciturn.privacy.unprotected import Unprotected
        >>> round(FlippedLabels(LabelResponse(1.0), Unprotected()).keep, 4)
        0.7311
        """
        return float(1.0 / (1.0 + np.exp(-self.event.epsilon)))

    def respond(self, labels: LabelTable, entropy: Entropy) -> LabelTable:
        """The labels as they may be used: each flipped or not, by fresh coins."""
        flips = response_flips(self.event.epsilon, labels.rows, entropy)
        return LabelTable(labels.ids, (labels.values ^ flips).astype(np.int8))

    def residue(self, scores: FloatArray, labels: LabelArray) -> FloatArray:
        """The slope of the flipped labels' likelihood, at most ``tanh(eps / 4)`` in size."""
        return corrected_residue(scores, labels, self.event.epsilon)

    def release(self, secret: MaskedProduct, entropy: Entropy) -> Released[MaskedProduct]:
        """The masked gradient as it is: its labels were flipped, and that is paid for."""
        return Released(secret, self.gradient_event)
