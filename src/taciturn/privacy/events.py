"""Release events: frozen values that describe a release, apart from its price.

**Guarantee.** None: an event is a statement.

**Assumes.** The code that makes one tells the truth about the release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import ClassVar

from taciturn.errors import ConfigError


@dataclass(frozen=True, slots=True)
class PrivacyEvent:
    """A release that depends on labels.

    The name is on the wire and keeps its meaning. Fields are reals, the parameters of the release;
    a class checks them when it is made. ``price`` has its price.
    """

    name: ClassVar[str]

    def __post_init__(self) -> None:
        for parameter in fields(self):
            value = getattr(self, parameter.name)
            if not (math.isfinite(value) and value > 0):
                raise ConfigError(
                    f"{parameter.name} is {value:g}", setting=parameter.name, hint="use more than 0"
                )

    @property
    def rests_on(self) -> PrivacyEvent | None:
        """The event that the rows must have paid for before, where this one is free after it."""
        return None


@dataclass(frozen=True, slots=True)
class NonPrivate(PrivacyEvent):
    """A label-dependent value left Bob unprotected: its price is infinite."""

    name = "non-private"


@dataclass(frozen=True, slots=True)
class AdditiveNoise(PrivacyEvent):
    """Residues left with Laplace noise of scale ``2 / epsilon`` [Tan22, Eq. 5]."""

    name = "additive-noise"

    epsilon: float


@dataclass(frozen=True, slots=True)
class MultiplicativeNoise(PrivacyEvent):
    """Residues left times Laplace noise, scale ``2 b2/(b1 epsilon)``, clipped [Tan22, Eq. 7-9]."""

    epsilon: float
    b1: float
    b2: float

    def __post_init__(self) -> None:
        # Not super(): a dataclass with slots is a new class, and super() would look for the old.
        PrivacyEvent.__post_init__(self)
        if self.b1 > 1:
            raise ConfigError(
                f"b1 is {self.b1:g}", setting="b1", hint="residues are below 1: use 1 or less"
            )

    @property
    def scale(self) -> float:
        """The scale of the factor's noise, ``2 b2 / (b1 epsilon)``."""
        return 2.0 * self.b2 / (self.b1 * self.epsilon)


@dataclass(frozen=True, slots=True)
class PrintedFactor(MultiplicativeNoise):
    """The factor is centred at 0 and the clips are the printed ones, which drop signs."""

    name = "multiplicative-printed"


@dataclass(frozen=True, slots=True)
class OneSidedFactor(MultiplicativeNoise):
    """The factor is the noise's size, so that the residue keeps its sign."""

    name = "multiplicative-one-sided"


@dataclass(frozen=True, slots=True)
class MeanOneFactor(MultiplicativeNoise):
    """The factor is centred at 1; the clips keep signs."""

    name = "multiplicative-mean-one"


@dataclass(frozen=True, slots=True)
class BatchResponse(PrivacyEvent):
    """A randomised response told which rows of a subset may be in the batch: no label in it."""

    name = "batch-response"

    epsilon: float


@dataclass(frozen=True, slots=True)
class HiddenBatchGradient(PrivacyEvent):
    """The gradient of a batch hidden by a randomised response left Bob in clear.

    ``epsilon`` is the response's; the paper claims that it protects the labels too.
    """

    name = "hidden-batch-gradient"

    epsilon: float


@dataclass(frozen=True, slots=True)
class LabelResponse(PrivacyEvent):
    """Labels were flipped, each with probability ``1 / (1 + e^epsilon)``: a release of them all.

    What is computed from the flipped labels afterwards costs nothing more.
    """

    name = "label-response"

    epsilon: float


@dataclass(frozen=True, slots=True)
class FlippedLabelGradient(PrivacyEvent):
    """The gradient of a batch with flipped labels left Bob in clear.

    It costs nothing beyond the ``LabelResponse`` of the same epsilon, which must have been paid.
    """

    name = "flipped-label-gradient"

    epsilon: float

    @property
    def rests_on(self) -> LabelResponse:
        """The flips."""
        return LabelResponse(self.epsilon)


@dataclass(frozen=True, slots=True)
class NoisyModel(PrivacyEvent):
    """Alice's weights left once, at the end, with (epsilon, delta) noise (``model_release``)."""

    name = "noisy-model"

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        PrivacyEvent.__post_init__(self)
        if self.delta >= 1:
            raise ConfigError(
                f"delta is {self.delta:g}", setting="reveal_delta", hint="use less than 1"
            )


@dataclass(frozen=True, slots=True)
class NoisyAccuracy(PrivacyEvent):
    """The accuracy on held-out rows left Bob once, with Laplace noise (``told_quality``)."""

    name = "noisy-accuracy"

    epsilon: float


@dataclass(frozen=True, slots=True)
class CiphertextsOnly(PrivacyEvent):
    """Bob sent label-dependent values encrypted only, and returned nothing that he decrypted."""

    name = "ciphertexts-only"


@dataclass(frozen=True, slots=True)
class ExposedColumns:
    """Exposure of Alice's table to Bob in a training: an upper bound if it ends early.

    ``opened_values`` counts all scores, held-out rows included, and in ``mutual`` the sums over all
    training rows that are opened in their place.
    """

    scores_per_row: int
    opened_values: int


@dataclass(frozen=True, slots=True)
class Statement:
    """The ledger in figures: of one release, of all of a row's, and of all at a delta.

    ``label_delta_total`` is the delta with which ``label_epsilon_total`` holds: 0, but where a
    model was released with noise. ``columns`` is the other side's part: what Bob gets of Alice's
    table.
    """

    claimed_epsilon_per_release: float
    residue_epsilon_per_release: float
    label_epsilon_per_release: float
    releases_per_row: int
    residue_epsilon_total: float
    label_epsilon_total: float
    label_epsilon_total_delta: float
    delta: float
    assumption: str
    label_delta_total: float = 0.0
    columns: ExposedColumns | None = field(default=None, metadata={"omitted": True})
