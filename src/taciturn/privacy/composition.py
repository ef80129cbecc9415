"""Composition of the releases of a label: basic, and tighter at a delta.

Basic composition adds the parameters up. With a small probability ``delta`` of
exceeding it a smaller epsilon holds: it is computed from the distribution of the privacy loss
[KoskelaJH20, DoroshenkoGKKM22] by Google's dp-accounting.

``add``'s loss is that of the Laplace mechanism. The curve of the discrete one equals the continuous
one's at the losses which the grid allows and is straight (in exp(epsilon)) between them. Those are
multiples of ``epsilon / 2^residue_bits``; an interval of ``epsilon / 256`` is a multiple of them
for every grid of 8 bits or more, and connecting *those* dots bounds both curves. For the other
mechanisms the price alone is used: any epsilon-private release is a randomised response of that
epsilon at worst [KairouzOV15, Thm. 3.4]. A release that has a delta of its own is infinite at any
smaller one.

**Guarantee.** The total at delta is an upper bound, never above basic composition.

**Assumes.** What the prices assume, and that dp-accounting's estimates are pessimistic, as it says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from taciturn.extras import install_hint, is_installed
from taciturn.privacy.events import AdditiveNoise, PrivacyEvent
from taciturn.privacy.prices import price

# Ten prices of 0.5 are 5, also where the last bit of their sum is not; so for deltas.
ROUNDING = 1e-9
_COMPOSER = "dp-accounting"
_DOTS = 256
# Beyond this a label is disclosed, and no delta changes that.
_HOPELESS = 1e4


def label_epsilon(counts: Mapping[PrivacyEvent, int], delta: float) -> float:
    """Epsilon of a label after ``counts`` releases of each event, at ``delta``."""
    costly, basic = _summed(counts)
    if sum(count * price(event).delta for event, count in costly.items()) > delta * (1 + ROUNDING):
        return math.inf
    # dp-accounting is of the extra audit, which a party may lack; the sum is a bound as well.
    if not _shrinks(basic, delta) or not is_installed(_COMPOSER):
        return basic
    return min(basic, _composed(costly, delta))


def composition_notes(counts: Mapping[PrivacyEvent, int], delta: float) -> tuple[str, ...]:
    """A remark where ``label_epsilon`` is larger than it need be."""
    _, basic = _summed(counts)
    if not _shrinks(basic, delta) or is_installed(_COMPOSER):
        return ()
    return (
        f"{_COMPOSER} is not installed, so the total at delta {delta:g} is the plain sum of the "
        f"releases' epsilons; for the smaller figure, {install_hint('audit')}",
    )


def _summed(counts: Mapping[PrivacyEvent, int]) -> tuple[dict[PrivacyEvent, int], float]:
    costly = {event: count for event, count in counts.items() if count and price(event).label}
    return costly, float(sum(count * price(event).label for event, count in costly.items()))


def _shrinks(basic: float, delta: float) -> bool:
    """Whether a smaller total than the sum may hold at delta."""
    return delta > 0 and 0 < basic <= _HOPELESS


def _composed(counts: Mapping[PrivacyEvent, int], delta: float) -> float:
    # Imported here: it takes a second, and most runs end without it.
    from dp_accounting.pld import common, privacy_loss_distribution

    # One interval for all: distributions compose only on the same dots.
    interval = min(price(event).label for event in counts) * 2 / _DOTS
    total = privacy_loss_distribution.identity(value_discretization_interval=interval)
    for event, count in counts.items():
        label = price(event).label
        composed = (
            privacy_loss_distribution.from_laplace_mechanism(
                1.0 / label, value_discretization_interval=interval
            )
            if isinstance(event, AdditiveNoise)
            else privacy_loss_distribution.from_privacy_parameters(
                common.DifferentialPrivacyParameters(label, price(event).delta),
                value_discretization_interval=interval,
            )
        )
        total = total.compose(composed.self_compose(count))
    return float(total.get_epsilon_for_delta(delta))
