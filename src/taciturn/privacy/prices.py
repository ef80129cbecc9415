"""Price of one release: its true cost and the paper's claim, in closed form.

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
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from taciturn.errors import PrivacyError
from taciturn.privacy.events import (
    AdditiveNoise,
    BatchResponse,
    CiphertextsOnly,
    FlippedLabelGradient,
    HiddenBatchGradient,
    LabelResponse,
    MeanOneFactor,
    MultiplicativeNoise,
    NoisyAccuracy,
    NoisyModel,
    NonPrivate,
    OneSidedFactor,
    PrintedFactor,
    PrivacyEvent,
)

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
