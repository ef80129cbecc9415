"""Sum over rows of a bounded function of each row's shared score: both parties' part.

::

    Alice                                            Bob
      Hello (the rows)                          <->  Hello
      the joint seed (taciturn.protocol.joint_seed), of the keys' uniform halves
      for each piece of the rows, as in joint scores, and a mask of hers beside his:
      KeyOffer, SharedVector [u_B]              ->   (where he has columns)
                                                <-   SharedProduct       [X_B u_B + zeta]
                                                <-   KeyOffer, SharedVector <v_A>
      SharedProduct        <X_A v_A + eta>      ->   both have shares of the scores
                                                <-   KeyOffer            his key for the waves
      for each block of rows:
                                                <-   Segments            <numbers>, several
      CarryShares                               ->   the sums are his shares
       <sum of table * numbers + masks>
      later, for several sums at once:
      OpenedSums           her shares and noise ->   the sums

The function is a sum of waves whose coefficients are Bob's and may differ from row to row
(``numerics.bounded_waves``). Each side adds its rows' shares up, modulo the slots' prime, and sums
of several trainings (the folds of a study) are added before anything is opened. The unit follows
from the number of rows of all of them, so that both sides and all folds have the same.

**Rounding.** Numbers have 17 or 18 binary digits. Roundings of a row are independent of those of
another one, since shares are uniform: the sum over 60,000 rows is off by about a hundredth of one
row's loss.

**Noise.** Alice adds discrete Laplace noise of ``row_noise`` rows to each sum before she opens it.

**A Bob who deviates** can send other numbers than waves. After this noise a number modulo the prime
carries at most ``RowSumPlan.bits`` bits, whatever he sends.

**Data independence.** As in ``protocol.mutual``: what is decrypted is uniform, and changes nothing
that either side does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from taciturn.arrays import IntArray, WordArray
from taciturn.crypto.base import SlotScheme
from taciturn.crypto.bfv.modular import block_sums
from taciturn.errors import ConfigError, RemoteProtocolError
from taciturn.files import canonical_json
from taciturn.numerics.bounded_waves import BoundedWaves, SharedWaves, loss_waves
from taciturn.numerics.periodic_sigmoid import half_range
from taciturn.privacy.base import given
from taciturn.privacy.noise import divisor, draw
from taciturn.privacy.openings import LOSS_CAP
from taciturn.privacy.row_noise import row_noise
from taciturn.protocol.mutual import LEAST_LEAK_BITS, slots_of
from taciturn.protocol.scales import MODULI
from taciturn.protocol.slot_blocks import slot_blocks
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint

MOST_DIGITS = 36
"""Binary digits of a product: the noise on a sum is the largest that its sampler resolves."""
# Bits of the modulus beside digits, cap and rows: the sign, waves beyond the cap, and noise.
_SPARE_BITS = 2


@dataclass(frozen=True, slots=True)
class RowSumPlan:
    """Scales and sizes of a sum of capped losses, equal on both sides.

    ``rows`` counts the rows of all exchanges whose shares are added up, ``modulus`` is the slots'
    prime and ``noise_rows`` the scale of the noise.
    """

    waves: BoundedWaves
    rows: int
    slots: SlotScheme
    modulus_bits: int
    noise_rows: float

    @classmethod
    def from_terms(cls, terms: Terms, rows: int) -> RowSumPlan:
        """Plan the sum of the losses that judge a training's setting, over ``rows`` in all."""
        agreed = terms.agreement
        score_range, error = given(agreed, "score_range"), given(agreed, "sigmoid_error")
        reach = half_range(score_range, error) * (2 if agreed.kind.linear_residue else 1)
        waves = loss_waves(agreed.family, score_range, reach)
        noise = row_noise("study sum", rows).width
        plan = cls(waves, rows, slots_of(terms.scheme), MODULI[-1], noise)
        plan.require_hidden()
        return plan

    @property
    def numbers(self) -> SharedWaves:
        """Both sides' numbers."""
        room = self.slots.modulus.bit_length() - 1 - _SPARE_BITS
        room -= math.ceil(math.log2(LOSS_CAP)) + (self.rows - 1).bit_length()
        digits = min(MOST_DIGITS, room)
        return SharedWaves(self.waves.waves, self.modulus_bits, digits // 2, digits - digits // 2)

    @property
    def noise_divisor(self) -> int:
        """Divisor of the exact sampler (``privacy.noise``) for the noise of one sum."""
        return divisor(self.noise_rows * self.numbers.unit)

    @property
    def bits(self) -> float:
        """Upper bound in bits on what one opened sum reveals, whatever Bob sends."""
        # The entropy of Laplace noise of scale b is that of 2 e b values.
        return math.log2(self.slots.modulus / (2 * math.e * self.noise_rows * self.numbers.unit))

    def require_hidden(self) -> None:
        """Refuse sums whose answers reveal too much of Alice's shares."""
        blocks = slot_blocks(self.slots, self.rows, self.numbers.entries)
        leak = sum(2.0 ** -self.slots.leak_bits(block.ciphertexts) for block in blocks)
        if leak > 2.0**-LEAST_LEAK_BITS:
            raise ConfigError(
                f"a sum over {self.rows:,} rows would hide Alice's shares too little",
                setting="score_range",
                hint=Hint("lower {score_range}"),
            )

    def stated(self) -> str:
        """Text that both sides of an exchange must share, in canonical form."""
        numbers = self.numbers
        facts = {
            "purpose": "sum of losses",
            "rows": self.rows,
            "waves": numbers.waves,
            "digits": [numbers.alice_bits, numbers.bob_bits],
            "noise_rows": self.noise_rows,
        }
        return canonical_json(facts)


class OpenedLoss(NamedTuple):
    """Opened sum of capped losses over all rows, in units of one row's loss, with its noise."""

    total: float
    noise_rows: float


def modular_sum(values: WordArray, modulus: int) -> int:
    """Sum of numbers below a modulus, modulo it."""
    return int(block_sums(values[np.newaxis], modulus)[0]) if len(values) else 0


def noisy_shares(plan: RowSumPlan, shares: Sequence[int], entropy: Entropy) -> IntArray:
    """Alice's shares of several sums with the noise of each; ``entropy`` serves this once."""
    noise = draw(len(shares), entropy).noise(plan.noise_divisor).tolist()
    modulus = plan.slots.modulus
    noisy = [(share + drawn) % modulus for share, drawn in zip(shares, noise, strict=True)]
    return np.array(noisy, dtype=np.int64)


def opened_losses(plan: RowSumPlan, own: Sequence[int], hers: IntArray) -> tuple[OpenedLoss, ...]:
    """The sums that Bob reads: his shares and Alice's, put together."""
    if len(hers) != len(own):
        raise RemoteProtocolError(f"the peer opens {len(hers)} sums where {len(own)} are expected")
    modulus, unit = plan.slots.modulus, plan.numbers.unit
    totals = [(one + other) % modulus for one, other in zip(own, hers.tolist(), strict=True)]
    centred = [total - modulus if total > modulus // 2 else total for total in totals]
    return tuple(OpenedLoss(total / unit, plan.noise_rows) for total in centred)
