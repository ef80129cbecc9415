"""Release events: frozen values that describe a release, apart from its price.

**Guarantee.** None: an event is a statement.

**Assumes.** The code that makes one tells the truth about the release.

Totals of a ledger, which a party without labels reads too.

True cost of one release and the paper's claim, in closed form.

Write ``c = clip1(r)`` for a clipped residue, of size between b1 and 1, and ``s = 2 b2 / (b1 eps)``.

- ``add``: the noise has scale ``2/eps``. Residues differ by at most 2, the two possible residues of
  a row with a known score by exactly 1: ``eps`` and ``eps/2``.
- ``mult printed``: inside the clip the density is ``exp(-|z|/(s|c|)) / (2 s |c|)``, and b2 has the
  mass ``exp(-b2/(s|c|))``. The factor ``1/|c|``, which the paper's proof leaves out, counts at
  ``z = 0``: ``ln(1/b1)``. At b2 the exponents do: ``eps (1 - b1)/2``. The larger is the price.
- ``mult mean-one``: Laplace of scale ``s|c|`` about c, cut at ±b2. For ``b2 >= 1`` the worst output
  is ``z = b1`` for a residue of -1 against b1, or the atom at b2 for -b1 against 1; below that an
  upper bound stands: ``(1 + b2/|c|)/s`` and ``ln(1/|c|)`` bound the terms one by one.
- ``label-rr``: a label is kept with probability ``e^eps/(1+e^eps)`` and flipped otherwise,
  once: ``eps``, for the residue too, which is one of two numbers at any score. Gradients of the
  flipped labels are computed from what was paid for and cost nothing.
- ``sealed`` with ``reveal_epsilon``: that epsilon, at a delta of its own, for the one release of a
  model with noise.
- an accuracy told with ``metrics-epsilon``: that epsilon, for the one count.
- ``sealed``: nothing, against anyone who cannot break the encryption.
- ``mult one-sided``, a gradient in clear and ``hybrid``'s: infinite.

The label's price is the worst over all scores, except for ``add``, where it is the same at each.

**Guarantee.** Upper bounds on the privacy loss of one release; but for ``mean-one`` below b2 = 1 no
smaller number is one.

**Assumes.** Discrete noise. On the grid the constants ``tanh(1/(2 sigma))`` stand for
``1/(2 sigma)`` and the tails lose a factor; both only lower the ratios. The divisors of the sampler
round scales by a part in 2^16 or less (at the paper's parameters 2^20), and these figures by as
much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from taciturn.errors import ConfigError, PrivacyError


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


E = TypeVar("E", bound=PrivacyEvent)


@dataclass(frozen=True, slots=True)
class Price:
    """Privacy parameters of one release: claimed by the paper, and true for residue and label.

    ``delta`` is the probability with which the latter two may be exceeded, where there is one.
    """

    claimed: float
    residue: float
    label: float
    delta: float = 0.0


@dataclass(frozen=True, slots=True)
class Priced(Generic[E]):
    """A kind of event with the closed form of its price."""

    kind: type[E]
    price: Callable[[E], Price]


def price(event: PrivacyEvent) -> Price:
    """Price of one release; raises ``PrivacyError`` where none is known."""
    kind = type(event)
    if kind not in _PRICES:
        raise PrivacyError(f"no price is known for the event {kind.__name__}")
    return _PRICES[kind](event)


def admit(priced: Iterable[Priced[Any]]) -> None:
    """Register priced events of another package's mechanism; idempotent.

    Raises ``PrivacyError`` where one has no name, or the name of another event.
    """
    for entry in priced:
        name = getattr(entry.kind, "name", "")
        if not name or _KINDS.get(name, entry.kind) is not entry.kind:
            raise PrivacyError(
                f"the event {entry.kind.__name__} has the name {name!r}, which is not its own"
            )
        _KINDS[name], _PRICES[entry.kind] = entry.kind, entry.price


def printed_label_price(event: PrintedFactor, score: float) -> float:
    """Label price in ``mult printed`` for a row whose predicted probability is known."""
    likely, unlikely = max(score, 1.0 - score), min(score, 1.0 - score)
    return _printed(event, max(event.b1, likely), max(event.b1, unlikely))


def _printed(event: MultiplicativeNoise, larger: float, smaller: float) -> float:
    exponents = event.b1 * event.epsilon / 2 * (1.0 / smaller - 1.0 / larger)
    return max(math.log(larger / smaller), exponents)


def _mean_one(event: MeanOneFactor) -> float:
    b1, b2, per_scale = event.b1, event.b2, 1.0 / event.scale
    if b2 >= 1:
        at_b1 = math.log(1 / b1) + (1 + b1) * per_scale
        at_b2 = (1 - b1) * event.epsilon / 2 + b1 * event.epsilon / b2
        return max(at_b1, at_b2)
    inside = math.log(1 / b1) + (1 + b2) * per_scale
    atom = math.log(2.0) + (1 + b2 / b1) * per_scale
    return max(inside, atom)


def _one_epsilon(event: LabelResponse | NoisyAccuracy) -> Price:
    return Price(event.epsilon, event.epsilon, event.epsilon)


def _unprotected(event: OneSidedFactor | HiddenBatchGradient) -> Price:
    return Price(event.epsilon, math.inf, math.inf)


# What each of our events costs. A mechanism from another package brings its own (``admit``).
_OURS: tuple[Priced[Any], ...] = (
    Priced(NonPrivate, lambda event: Price(math.inf, math.inf, math.inf)),
    Priced(AdditiveNoise, lambda event: Price(event.epsilon, event.epsilon, event.epsilon / 2)),
    Priced(
        PrintedFactor, lambda event: Price(event.epsilon, *[_printed(event, 1.0, event.b1)] * 2)
    ),
    Priced(OneSidedFactor, _unprotected),
    Priced(MeanOneFactor, lambda event: Price(event.epsilon, *[_mean_one(event)] * 2)),
    Priced(BatchResponse, lambda event: Price(event.epsilon, 0.0, 0.0)),
    Priced(HiddenBatchGradient, _unprotected),
    Priced(LabelResponse, _one_epsilon),
    Priced(FlippedLabelGradient, lambda event: Price(0.0, 0.0, 0.0)),
    Priced(
        NoisyModel,
        lambda event: Price(event.epsilon, event.epsilon, event.epsilon, event.delta),
    ),
    Priced(NoisyAccuracy, _one_epsilon),
    Priced(CiphertextsOnly, lambda event: Price(0.0, 0.0, 0.0)),
)
_PRICES: dict[type[PrivacyEvent], Callable[[Any], Price]] = {}
_KINDS: dict[str, type[PrivacyEvent]] = {}
admit(_OURS)

EVENTS: Mapping[str, type[PrivacyEvent]] = MappingProxyType(_KINDS)
"""Every event that has a price, by its name on the wire; the codec reads no other."""
