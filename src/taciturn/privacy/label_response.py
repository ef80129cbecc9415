"""``label-rr``: each label is flipped once, with probability ``1 / (1 + e^eps)`` [Warner65].

Everything afterwards uses the flipped labels: residues, gradients, Bob's own weights. Whatever is
computed from them tells no more about a true label than they do, however many epochs there are. The
training fits the probability of the *flipped* label (``taciturn.numerics.likelihood``), so that
the model is still one of the true ones.

It runs over any conversation that takes residues from the mechanism: ``none``, whose gradients then
hand Alice the flipped labels, or ``sealed``.

**Guarantee.** Label epsilon = ``eps`` in total, whatever the number of epochs, and against whatever
Alice does; the residue's likewise. An attack recovers the *flipped* label, so it is right about the
true one with probability ``e^eps / (1 + e^eps)``, not one half, and no attack on a label at even
odds does better.

**Assumes.** True labels are used nowhere else that she can see: not for stopping, not for choosing
settings. Labels are flipped once: flipping them again, for a second training, spends again, and the
epsilons add up (``taciturn.party.consent`` keeps the first answer). The entropy is uniform.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from taciturn.arrays import FloatArray, LabelArray
from taciturn.data.label_table import LabelTable
from taciturn.errors import ConfigError
from taciturn.families.base import RowLikelihood
from taciturn.numerics.label_noise import corrected_likelihood, corrected_residue
from taciturn.privacy import registry
from taciturn.privacy.base import (
    GradientMechanism,
    MaskedProduct,
    Mechanism,
    PaidModel,
    Released,
    given,
)
from taciturn.privacy.events import FlippedLabelGradient, LabelResponse
from taciturn.privacy.noise import response_flips
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import SolverName

_RESTS_ON = (
    "labels are flipped once and true ones are used nowhere else: "
    "what is computed from the flipped ones costs nothing more"
)


class FlippedLabels(GradientMechanism, PaidModel):
    """Randomised response on labels, which then train in the conversation of ``base_mechanism``."""

    name = "label-rr"
    summary = "each label is flipped once, at random, before anything else is done with it"
    takes = ("epsilon", "base_mechanism")
    defaults = MappingProxyType({"base_mechanism": "none"})
    meaning = (
        "of a TRUE label 1, for rows like the training rows: the training used flipped labels "
        "and corrected for the flips, so nothing is to be corrected again"
    )

    # Its own, of whichever mechanism it runs over.
    solvers: tuple[SolverName, ...] = ("sgd", "newton")

    event: LabelResponse

    def __init__(self, event: LabelResponse, over: Mechanism) -> None:
        self.event = event
        self._over = over
        self.conversation = over.conversation
        self.sharing = over.sharing
        self.solvers = over.solvers
        self.label_flips = self
        # What an unprotected one says of itself does not hold here: the flips protect.
        beyond = "" if "bob" in over.unprotected else f"; besides, {over.assumption}"
        self.assumption = _RESTS_ON + beyond

    @classmethod
    def from_agreement(cls, agreed: Agreement) -> FlippedLabels:
        """The mechanism of an agreement, over the one that it names."""
        epsilon, over = given(agreed, "epsilon"), given(agreed, "base_mechanism")
        if over not in registry.MECHANISMS:
            raise ConfigError(
                f"label-rr cannot run over {over}: there is no such mechanism",
                setting="base_mechanism",
                hint=Hint("use {base_mechanism}", base_mechanism="none"),
            )
        if agreed.reveal_epsilon is not None:
            raise ConfigError(
                "label-rr has no reveal-epsilon: the loss of flipped labels is not convex, so that "
                "no bound on what a label can move in the weights is known",
                setting="reveal_epsilon",
                hint=Hint(
                    "leave {reveal_epsilon} out, or use {mechanism} with {reveal}",
                    mechanism="sealed",
                    reveal=True,
                ),
            )
        return cls(LabelResponse(epsilon), registry.MECHANISMS[over].from_agreement(agreed))

    @classmethod
    def underlying(cls, base_mechanism: str | None) -> type[Mechanism] | None:
        """The mechanism it runs over, whose settings it takes too."""
        return registry.MECHANISMS.get(base_mechanism or "")

    @property
    def epsilon(self) -> float:
        """Epsilon of the flips."""
        return self.event.epsilon

    @property
    def keep(self) -> float:
        """Probability that a label is kept: the limit of every attack."""
        return float(1.0 / (1.0 + np.exp(-self.event.epsilon)))

    @property
    def gradient_event(self) -> FlippedLabelGradient:
        """Event of a gradient of the flipped labels: paid for with the flips."""
        return FlippedLabelGradient(self.event.epsilon)

    def receives(self) -> str:
        """Values of the underlying mechanism, computed from flipped labels."""
        return (
            f"{self._over.receives()}; all of it of labels that were flipped before, each with "
            f"probability {100 * (1 - self.keep):.2f} %"
        )

    def notes(self) -> tuple[str, ...]:
        """Remark on how often a flipped label is the true one, where Alice can recover it."""
        if self.sharing:
            return ()
        return (
            "what Alice can recover are flipped labels: each is the true one with probability "
            f"{100 * self.keep:.2f} %, so that attacks reach that and not chance",
        )

    def respond(self, labels: LabelTable, entropy: Entropy) -> LabelTable:
        """The labels, each flipped or not, by fresh draws."""
        flips = response_flips(self.event.epsilon, labels.rows, entropy)
        return LabelTable(labels.ids, (labels.values ^ flips).astype(np.int8))

    def residue(self, scores: FloatArray, labels: LabelArray) -> FloatArray:
        """Slope of the flipped labels' likelihood, at most ``tanh(eps / 4)`` in size."""
        return corrected_residue(scores, labels, self.event.epsilon)

    def likelihood(self, scores: FloatArray, labels: LabelArray) -> RowLikelihood:
        """Likelihood of the flipped labels, as a function of the true ones' score."""
        return corrected_likelihood(scores, labels, self.event.epsilon)

    def release(self, secret: MaskedProduct, entropy: Entropy) -> Released[MaskedProduct]:
        """The masked gradient unchanged: its labels were flipped, and that is paid for."""
        return Released(secret, self.gradient_event)
