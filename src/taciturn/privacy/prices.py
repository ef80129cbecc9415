"""What one release truly costs, beside what the paper claims: closed forms.

Write ``c = clip1(r)`` for a clipped residue, of size between b1 and 1, and ``s = 2 b2 / (b1 eps)``.

- ``add``: the noise has scale ``2/eps``. Residues differ by at most 2, the two possible residues of
  a row with a known score by exactly 1: ``eps`` and ``eps/2``.
- ``mult printed``: inside the clip the density is ``exp(-|z|/(s|c|)) / (2 s |c|)``, and b2 has the
  mass ``exp(-b2/(s|c|))``. The factor ``1/|c|``, which the paper's proof leaves out, counts at
  ``z = 0``: ``ln(1/b1)``. At b2 the exponents do: ``eps (1 - b1)/2``. The larger is the price.
- ``mult mean-one``: Laplace of scale ``s|c|`` about c, cut at ±b2. For ``b2 >= 1`` the worst output
  is ``z = b1`` for a residue of -1 against b1, or the atom at b2 for -b1 against 1; below that an
  upper bound stands: ``(1 + b2/|c|)/s`` and ``ln(1/|c|)`` bound the terms one by one.
- ``label-rr``: a label is told as it is with probability ``e^eps/(1+e^eps)`` and flipped otherwise,
  once: ``eps``, for the residue too, which is one of two numbers at any score. Gradients of the
  flipped labels are computed from what was paid for and cost nothing.
- ``sealed``: nothing, against whoever cannot break the encryption.
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
from dataclasses import dataclass

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
    NonPrivate,
    OneSidedFactor,
    PrintedFactor,
    PrivacyEvent,
)


@dataclass(frozen=True, slots=True)
class Price:
    """The privacy parameter of one release: as claimed, and what it truly is."""

    claimed: float
    residue: float
    label: float


def price(event: PrivacyEvent) -> Price:
    """What one release of this kind costs.

    >>> price(NonPrivate()).label
    inf
    >>> price(AdditiveNoise(epsilon=10.0))
    Price(claimed=10.0, residue=10.0, label=5.0)
    >>> round(price(PrintedFactor(epsilon=0.01, b1=0.1, b2=10.0)).label, 3)
    2.303

    Raises:
        PrivacyError: The event is of a kind without a known price.
    """
    match event:
        case CiphertextsOnly():
            return Price(0.0, 0.0, 0.0)
        case NonPrivate():
            return Price(math.inf, math.inf, math.inf)
        case AdditiveNoise(epsilon):
            return Price(epsilon, epsilon, epsilon / 2)
        case PrintedFactor():
            true = _printed(event, 1.0, event.b1)
        case MeanOneFactor():
            true = _mean_one(event)
        case OneSidedFactor() | HiddenBatchGradient():
            true = math.inf
        case BatchResponse(epsilon):
            return Price(epsilon, 0.0, 0.0)
        case LabelResponse(epsilon):
            return Price(epsilon, epsilon, epsilon)
        case FlippedLabelGradient():
            return Price(0.0, 0.0, 0.0)
        case _:
            raise PrivacyError(f"no price is known for the event {type(event).__name__}")
    return Price(event.epsilon, true, true)


def printed_label_price(event: PrintedFactor, score: float) -> float:
    """The label's price in ``mult printed`` for a row whose predicted probability is known.

    >>> printed_label_price(PrintedFactor(epsilon=1.0, b1=0.1, b2=1.0), score=0.5)
    0.0
    """
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
