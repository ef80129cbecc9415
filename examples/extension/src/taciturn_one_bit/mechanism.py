"""``one-bit``: Alice is told one random bit of each residue, and nothing else.

A residue ``r`` lies in [-1, 1]. What leaves is ``+c`` with probability ``(1 + t r) / 2`` and ``-c``
otherwise, where ``t = tanh(epsilon / 2)`` and ``c = 1 / t``: right on average, so that the model
can learn from it. This is the mechanism of Duchi, Jordan and Wainwright ("Minimax optimal
procedures for locally private estimation", 2018) in one dimension.

**Guarantee.** Of one release: ``epsilon`` for the residue, whose extremes 1 and -1 are told apart
with odds of ``(1 + t) / (1 - t) = exp(epsilon)``. For the label at a predicted probability ``f``
the residue is ``1 - f`` or ``-f``; the odds are worst where ``f`` is 0 or 1:
``ln((1 + exp(epsilon)) / 2)``. A row is released once per epoch, and the figures add up.

**Assumes.** The coins are good. Probabilities are exact: they are multiples of ``2^-62``, and ``t``
is rounded down to fewer digits, which makes the odds smaller, never larger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, IntArray, WordArray
from taciturn.errors import ConfigError
from taciturn.privacy.base import Released, ResidueMechanism, given
from taciturn.privacy.events import PrivacyEvent
from taciturn.privacy.prices import Price, Priced
from taciturn.rng import Entropy
from taciturn.settings.agreement import Agreement

# Probabilities are whole multiples of 2^-62: a threshold fits in a signed 64-bit integer.
_PROBABILITY_BITS = 62
_HALF = 1 << (_PROBABILITY_BITS - 1)


@dataclass(frozen=True, slots=True)
class OneBitResidue(PrivacyEvent):
    """One random bit of a residue was told."""

    name = "one-bit-residue"

    epsilon: float


def one_bit_price(event: OneBitResidue) -> Price:
    """What one bit costs: as claimed, for the residue, and for the label.

    >>> round(one_bit_price(OneBitResidue(1.0)).label, 4)
    0.6201
    """
    label = np.logaddexp(0.0, event.epsilon) - math.log(2.0)
    return Price(claimed=event.epsilon, residue=event.epsilon, label=float(label))


class OneBit(ResidueMechanism[WordArray]):
    """Tells one random bit of each residue.

    Args:
        event: Its parameter.
        residue_bits: The residues' grid: integers are multiples of ``2^-residue_bits``.

    Raises:
        ConfigError: Epsilon is too small or too large for the grid.
    """

    name = "one-bit"
    summary = "one random bit of each residue goes to Alice"
    takes = ("epsilon",)
    prices = (Priced(OneBitResidue, one_bit_price),)

    event: OneBitResidue

    def __init__(self, event: OneBitResidue, residue_bits: int) -> None:
        self.event = event
        unit = 1 << (_PROBABILITY_BITS - 1 - residue_bits)
        # t in units of the threshold; rounded down, so that the odds are at most exp(epsilon).
        self._slope = math.floor(math.tanh(event.epsilon / 2.0) * unit)
        if not 0 < self._slope < unit:
            raise ConfigError(
                f"epsilon is {event.epsilon:g}", setting="epsilon", hint="use 0.001 to 15"
            )
        self.size = round(2**residue_bits * unit / self._slope)

    @classmethod
    def from_agreement(cls, agreed: Agreement) -> OneBit:
        """The mechanism of an agreement."""
        return cls(OneBitResidue(given(agreed, "epsilon")), agreed.residue_bits)

    def draw(self, count: int, entropy: Entropy) -> WordArray:
        """Uniform integers below ``2^62``."""
        return entropy.words(count) >> np.uint64(64 - _PROBABILITY_BITS)

    def release(self, residues: IntArray, draws: WordArray) -> Released[IntArray]:
        """``+size`` where the draw is below the residue's threshold, ``-size`` elsewhere.

        >>> at_half = np.full(2, _HALF, dtype=np.uint64)
        >>> one = OneBit(OneBitResidue(1.0), residue_bits=20)
        >>> np.sign(one.release(np.array([5, -5]), at_half).value).tolist()
        [1, -1]
        """
        bits = draws.astype(np.int64) < self._thresholds(residues)
        return Released(np.where(bits, self.size, -self.size), self.event)

    def log_probability(self, released: IntArray, residues: IntArray) -> FloatArray:
        """The logarithm of the exact probability of what was released."""
        upper = self._thresholds(residues)
        ways = np.where(released > 0, upper, (1 << _PROBABILITY_BITS) - upper)
        possible = np.abs(released) == self.size
        logs: FloatArray = np.log(ways) - _PROBABILITY_BITS * math.log(2.0)
        return np.where(possible, logs, -np.inf)

    def _thresholds(self, residues: IntArray) -> IntArray:
        """Of 2^62 equally likely draws, how many give a positive bit."""
        return _HALF + self._slope * residues
