"""Release of the model: Alice's weights with noise, at a price that is known beforehand.

With ``reveal_epsilon`` Bob descends on a public schedule (``taciturn.numerics.descent``). One label
moves one slope by 1 at most, and no step takes two weights further apart, so that K steps of 1/P
take them ``K (R / P n)`` apart, R the length of a row of both tables. The rows' numbers are rounded
at random in each step. That moves weights by ``B`` at most, but for a probability of ``failure``::

    B = 2^-g sqrt(n) (sqrt(d) + min(sqrt(d), 2) sqrt(2 ln(1 / failure)))
    sensitivity = K (R / P n + 2 B)                        g the digits of the rows' numbers

Discrete Gaussian noise for that much stands on Bob's share before he sends it. ``docs/sealed.md``
has the proof.

**Guarantee.** What Alice receives is (epsilon, delta)-differentially private in each label; a tenth
of delta is for the roundings. All figures follow from what is agreed on and from the tables' sizes,
and from nothing that depends on a label.

**Assumes.** Alice keeps to the protocol: her table is within its bounds, which Bob cannot see, and
her answers are the products that they should be. Floating point, with which Bob computes, errs by
less than a hundredth of the sensitivity, which is added for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import IntArray
from taciturn.numerics.descent import parties_with_columns, row_bound
from taciturn.privacy.base import Released
from taciturn.privacy.events import NoisyModel
from taciturn.privacy.gaussian import deviation, draw
from taciturn.rng import Entropy

_ROUNDINGS_PART = 0.1
_FLOATING_POINT = 1.01


@dataclass(frozen=True, slots=True)
class ModelRelease:
    """The release of Alice's weights at the end of a training.

    ``rows`` is n and ``columns``, which are Alice's, d. Bob's columns include an intercept;
    ``bob_free`` of them carry no penalty. Scores are exchanged in ``passes``; there is one step
    more. ``row_bits`` is g, the digits of the rows' numbers, and ``weight_bits`` the digits of a
    weight.
    """

    event: NoisyModel
    rows: int
    columns: int
    bob_columns: int
    bob_free: int
    passes: int
    row_bits: int
    weight_bits: int

    @property
    def steps(self) -> int:
        """K: the first is from zero, where scores need no exchange."""
        return self.passes + 1

    @property
    def log_inverse_failure(self) -> float:
        """``ln(1 / failure)`` of one step's rounding."""
        return log_inverse_failure(self.event, self.passes)

    @property
    def row_bound(self) -> float:
        """R: largest length of a row of both tables."""
        return math.hypot(row_bound(self.columns), row_bound(self.bob_columns, self.bob_free))

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity of the whitened weights to one label."""
        moved = self.row_bound / (parties_with_columns(self.bob_columns) * self.rows)
        rounded = rounding_error(self.rows, self.columns, self.log_inverse_failure)
        both_runs = 2.0 * math.ldexp(rounded, -self.row_bits)
        return _FLOATING_POINT * self.steps * (moved + both_runs)

    @property
    def sigma(self) -> int:
        """Parameter of the noise, in units of a weight's last digit."""
        sensitivity = math.ldexp(self.sensitivity, self.weight_bits)
        delta = (1.0 - _ROUNDINGS_PART) * self.event.delta
        return deviation(sensitivity, self.event.epsilon, delta)

    def release(self, share: IntArray, modulus_bits: int, entropy: Entropy) -> Released[IntArray]:
        """Bob's share, integers modulo ``2^modulus_bits``, with noise.

        What is beyond the modulus wraps, which costs nothing. ``entropy`` is a stream for this
        purpose alone.
        """
        sigma, half = self.sigma, 1 << (modulus_bits - 1)
        noisy = [entry + draw(sigma, entropy) for entry in share.tolist()]
        wrapped = [(entry + half) % (2 * half) - half for entry in noisy]
        return Released(np.array(wrapped, dtype=np.int64), self.event)


def log_inverse_failure(event: NoisyModel, passes: int) -> float:
    """``ln(1 / failure)`` of one step's rounding, such that all of them take a tenth of delta.

    Roundings that fail with probability p, summed over all steps, cost ``p (1 + e^epsilon)`` of
    delta.
    """
    both = float(np.logaddexp(0.0, event.epsilon))
    return math.log((passes + 1) / (_ROUNDINGS_PART * event.delta)) + both


def rounding_error(rows: int, columns: int, log_inverse_failure: float) -> float:
    """Bound on how far one step's rounding moves weights, in units of the rows' last digit."""
    spread = min(math.sqrt(columns), 2.0) * math.sqrt(2.0 * log_inverse_failure)
    return math.sqrt(rows) * (math.sqrt(columns) + spread)
