"""``add``: each residue is sent with Laplace noise of scale ``2 / epsilon`` [Tan22, Eq. 5].

**Guarantee.** Of one release: ``epsilon`` for the residue, which lies in (-1, 1), and
``epsilon / 2`` for the label given the score, which moves the residue by exactly 1. A row is
released once per epoch, and the parameters add up.

**Assumes.** The noise is the discrete one: integers on the residues' grid. In floating point the
low bits of the sum depend on the residue and can give it away [Mironov12]. Besides, other rows'
releases depend on this label only through what was released (``taciturn.privacy.ledger``).
"""

from __future__ import annotations

from taciturn.arrays import FloatArray, IntArray
from taciturn.privacy.base import NOISE_DEFAULTS, Released, ResidueMechanism, given
from taciturn.privacy.events import AdditiveNoise
from taciturn.privacy.noise import (
    LaplaceDraws,
    continuous_laplace,
    divisor,
    draw,
    log_density,
    log_mass,
    scale,
)
from taciturn.rng import Entropy
from taciturn.settings.agreement import Agreement


class Additive(ResidueMechanism[LaplaceDraws]):
    """Laplace noise on residues: integer multiples of ``2^-residue_bits``."""

    name = "add"
    summary = "each residue goes to Alice with Laplace noise"
    takes = ("epsilon", *NOISE_DEFAULTS)
    defaults = NOISE_DEFAULTS

    event: AdditiveNoise

    def __init__(self, event: AdditiveNoise, residue_bits: int) -> None:
        self.event = event
        self.divisor = divisor(2.0 / event.epsilon * 2.0**residue_bits)

    @classmethod
    def from_agreement(cls, agreed: Agreement) -> Additive:
        """The mechanism of an agreement."""
        return cls(AdditiveNoise(given(agreed, "epsilon")), agreed.residue_bits)

    def receives(self) -> str:
        """Noisy residues."""
        return "the residue of each row with Laplace noise, once an epoch"

    @property
    def sigma(self) -> float:
        """Scale of the noise in steps of the grid."""
        return scale(self.divisor)

    def draw(self, count: int, entropy: Entropy) -> LaplaceDraws:
        """Unit draws, which serve every scale."""
        return draw(count, entropy)

    def release(self, residues: IntArray, draws: LaplaceDraws) -> Released[IntArray]:
        """``r + Lap(2/epsilon)`` on the grid."""
        return Released(residues + draws.noise(self.divisor), self.event)

    def release_real(self, residues: FloatArray, entropy: Entropy) -> Released[FloatArray]:
        """``r + Lap(2/epsilon)`` in floating point."""
        noise = continuous_laplace(2.0 / self.event.epsilon, len(residues), entropy)
        return Released(residues + noise, self.event)

    def log_probability(self, released: IntArray, residues: IntArray) -> FloatArray:
        """Log probability of the noise that must have been drawn."""
        return log_mass(released - residues, self.sigma)

    def log_density(self, released: FloatArray, residues: FloatArray) -> FloatArray:
        """Log density of ``release_real``."""
        return log_density(released - residues, 2.0 / self.event.epsilon)
