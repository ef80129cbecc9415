"""``mult``: each residue is sent as ``clip2(clip1(r) * noise)`` [Tan22, Eq. 7-9]; three variants.

``printed`` is what the equations say. ``clip1`` turns every residue with ``|r| <= b1`` into ``+b1``
and ``clip2`` every product with ``|z| >= b2`` into ``+b2``; the noise is symmetric about 0, so the
output depends on ``|r|`` alone and no gradient can be learnt from it. Two readings that do learn
stand beside it, both with clips that keep the sign: ``one-sided`` multiplies with the noise's size,
``mean-one`` with 1 plus the noise.

**Guarantee.** ``privacy.prices`` has the closed forms: those of ``printed`` and ``mean-one``
are finite but not the claimed epsilon; ``one-sided`` tells the sign of the residue, which is the
label, and has none.

**Assumes.** The output is sampled as it is distributed, a discrete Laplace number of scale
``s |clip1(r)|`` on the residues' grid. A whole noise number *times* ``clip1(r)`` would be a
multiple of it, and divisors would tell the residue. ``b1`` and ``b2`` are rounded up to the grid,
and the scale is taken from the rounded bounds.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from taciturn.arrays import FloatArray, IntArray, WordArray
from taciturn.errors import ConfigError
from taciturn.privacy.base import (
    NOISE_DEFAULTS,
    Released,
    ResidueMechanism,
    SignPreserving,
    given,
)
from taciturn.privacy.events import (
    MeanOneFactor,
    MultiplicativeNoise,
    OneSidedFactor,
    PrintedFactor,
)
from taciturn.privacy.noise import (
    LARGEST_DIVISOR,
    ON_INTEGERS,
    ON_REALS,
    UNIT_BITS,
    LaplaceDraws,
    Law,
    Numbers,
    continuous_laplace,
    divisor,
    draw,
)
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import Variant

_ROOM_BITS = 50
_FACTOR_DEFAULTS: Mapping[str, object] = {"variant": "printed", "b1": 0.1, "b2": 10.0}


@dataclass(frozen=True, slots=True)
class Bounds:
    """The clips in steps of the grid, and the noise's scale as a multiple of the clipped residue.

    Numbers, or columns with one entry for each of many trainings that run side by side.
    """

    inner: int | IntArray
    outer: int | IntArray
    factor: float | FloatArray

    @classmethod
    def stacked(cls, several: Sequence[Bounds]) -> Bounds:
        """Columns, one row each."""
        return cls(
            np.array([[bounds.inner] for bounds in several], dtype=np.int64),
            np.array([[bounds.outer] for bounds in several], dtype=np.int64),
            np.array([[bounds.factor] for bounds in several], dtype=np.float64),
        )


class Multiplicative(ResidueMechanism[LaplaceDraws]):
    """Common part of the three variants: clips on the grid, noise proportional to the residue."""

    name = "mult"
    summary = "each residue goes to Alice times Laplace noise, between two clips"
    takes = ("epsilon", *_FACTOR_DEFAULTS, *NOISE_DEFAULTS)
    defaults = MappingProxyType({**_FACTOR_DEFAULTS, **NOISE_DEFAULTS})

    event: MultiplicativeNoise

    def __init__(self, event: MultiplicativeNoise, residue_bits: int) -> None:
        unit = 2**residue_bits
        inner, outer = math.ceil(event.b1 * unit), math.ceil(event.b2 * unit)
        # The event tells the bounds in use: its price is that of what is released.
        self.event = replace(event, b1=inner / unit, b2=outer / unit)
        if outer.bit_length() > _ROOM_BITS:
            raise ConfigError(f"b2 is {event.b2:g}", setting="b2", hint="use a smaller bound")
        factor = 2.0 * outer / (inner * event.epsilon)
        # The largest residue has the most noise: it must be within what the sampler resolves.
        divisor(factor * 2**residue_bits)
        self.bounds = Bounds(inner, outer, factor)

    @classmethod
    def from_agreement(cls, agreed: Agreement) -> Multiplicative:
        """The variant of an agreement."""
        epsilon, b1, b2 = (given(agreed, name) for name in ("epsilon", "b1", "b2"))
        return VARIANTS[given(agreed, "variant")](epsilon, b1, b2, agreed.residue_bits)

    @classmethod
    def required_settings(cls) -> tuple[str, ...]:
        """Epsilon, and the variant: with the default one, ``printed``, nothing is learnt."""
        return ("epsilon", "variant")

    def receives(self) -> str:
        """Noisy residues."""
        return "the residue of each row times Laplace noise, once an epoch"

    def draw(self, count: int, entropy: Entropy) -> LaplaceDraws:
        """Unit draws, which serve every scale."""
        return draw(count, entropy)

    def release(self, residues: IntArray, draws: LaplaceDraws) -> Released[IntArray]:
        """The product on the grid, sampled directly."""
        return Released(self.sample(self.bounds, residues, draws), self.event)

    def sample(self, bounds: Bounds, residues: IntArray, draws: LaplaceDraws) -> IntArray:
        """The integers that ``release`` releases, for any bounds of this variant."""
        clipped = _clip1(residues, bounds.inner)
        noise = draws.noise(_divisors(clipped, bounds.factor))
        return self._output(clipped, noise, bounds.outer)

    def release_real(self, residues: FloatArray, entropy: Entropy) -> Released[FloatArray]:
        """The product in floating point."""
        clipped = _clip1(residues, self.event.b1)
        noise = continuous_laplace(self.event.scale * np.abs(clipped), len(residues), entropy)
        return Released(self._output(clipped, noise, self.event.b2), self.event)

    def log_probability(self, released: IntArray, residues: IntArray) -> FloatArray:
        """Logarithm of the exact probability of each released integer, atoms included."""
        clipped = _clip1(residues, self.bounds.inner)
        sigma = 2.0**UNIT_BITS / _divisors(clipped, self.bounds.factor).astype(np.float64)
        return self._log_law(released, clipped, sigma, float(self.bounds.outer), ON_INTEGERS)

    def log_density(self, released: FloatArray, residues: FloatArray) -> FloatArray:
        """Log density of ``release_real``."""
        clipped = _clip1(residues, self.event.b1)
        sigma = self.event.scale * np.abs(clipped)
        return self._log_law(released, clipped, sigma, self.event.b2, ON_REALS)

    @abstractmethod
    def _output(self, clipped: Numbers, noise: Numbers, bound: float | IntArray) -> Numbers:
        """``clip2`` of the product; ``noise`` has the product's scale already."""

    @abstractmethod
    def _log_law(
        self, released: Numbers, clipped: Numbers, sigma: FloatArray, bound: float, law: Law
    ) -> FloatArray:
        """Log probability of each output, given the clipped residue and the noise's scale."""


class Printed(Multiplicative):
    """Both clips and the noise as printed: signs are lost."""

    def _output(self, clipped: Numbers, noise: Numbers, bound: float | IntArray) -> Numbers:
        output: Numbers = np.where(np.abs(noise) >= bound, np.asarray(bound, noise.dtype), noise)
        return output

    def _log_law(
        self, released: Numbers, clipped: Numbers, sigma: FloatArray, bound: float, law: Law
    ) -> FloatArray:
        atom = math.log(2.0) + law.log_at_least(np.full_like(released, bound), sigma)
        inside = np.where(np.abs(released) < bound, law.log_point(released, sigma), -np.inf)
        return np.where(released == bound, atom, inside)


class OneSided(Multiplicative, SignPreserving[LaplaceDraws]):
    """The factor is the noise's size: the sign of the residue stays, and with it the label."""

    assumption = "no protection: the sign of every residue, which is the label, is released"

    def receives(self) -> str:
        """Noisy residues with their signs."""
        return f"{super().receives()}; its sign, which is the label, stays"

    def advice(self, attack: str) -> Hint:
        """Advice to use ``mean-one``: no epsilon helps where the sign is kept."""
        return Hint(
            "{variant}: one-sided noise keeps the sign, which is the label", variant="mean-one"
        )

    def _output(self, clipped: Numbers, noise: Numbers, bound: float | IntArray) -> Numbers:
        sizes = np.minimum(np.abs(noise), np.asarray(bound, noise.dtype))
        output: Numbers = np.where(clipped < 0, -sizes, sizes)
        return output

    def _log_law(
        self, released: Numbers, clipped: Numbers, sigma: FloatArray, bound: float, law: Law
    ) -> FloatArray:
        sizes = released * np.sign(clipped)
        both_sides = math.log(2.0)
        atom = both_sides + law.log_at_least(np.full_like(released, bound), sigma)
        # Zero has one side only; on reals it has no mass, and the doubled density is as good.
        sides = np.where((released == 0) & (law is ON_INTEGERS), 0.0, both_sides)
        inside = np.where(sizes >= 0, sides + law.log_point(released, sigma), -np.inf)
        return np.where(sizes == bound, atom, np.where(sizes > bound, -np.inf, inside))


class MeanOne(Multiplicative):
    """The factor is centred at 1, so that the output is right on average, but for the clips."""

    def _output(self, clipped: Numbers, noise: Numbers, bound: float | IntArray) -> Numbers:
        limit = np.asarray(bound, noise.dtype)
        output: Numbers = np.clip(clipped + noise, -limit, limit)
        return output

    def _log_law(
        self, released: Numbers, clipped: Numbers, sigma: FloatArray, bound: float, law: Law
    ) -> FloatArray:
        inside = np.where(
            np.abs(released) < bound, law.log_point(released - clipped, sigma), -np.inf
        )
        upper = law.log_at_least(bound - clipped, sigma)
        lower = law.log_at_least(bound + clipped, sigma)
        return np.where(released == bound, upper, np.where(released == -bound, lower, inside))


VARIANTS: Mapping[Variant, Callable[[float, float, float, int], Multiplicative]] = MappingProxyType(
    {
        "printed": lambda eps, b1, b2, bits: Printed(PrintedFactor(eps, b1, b2), bits),
        "one-sided": lambda eps, b1, b2, bits: OneSided(OneSidedFactor(eps, b1, b2), bits),
        "mean-one": lambda eps, b1, b2, bits: MeanOne(MeanOneFactor(eps, b1, b2), bits),
    }
)


def _divisors(clipped: IntArray, factor: float | FloatArray) -> WordArray:
    sigma: FloatArray = factor * np.abs(clipped)
    quotients = np.minimum(2.0**UNIT_BITS / sigma, float(LARGEST_DIVISOR))
    return np.floor(quotients).astype(np.uint64)


def _clip1(residues: Numbers, bound: float | IntArray) -> Numbers:
    """``clip1`` with the residue's sign; zero counts as positive.

    >>> _clip1(np.array([0.0, -0.05, 0.5]), 0.1).tolist()
    [0.1, -0.1, 0.5]
    """
    sizes = np.maximum(np.abs(residues), np.asarray(bound, residues.dtype))
    clipped: Numbers = np.where(residues < 0, -sizes, sizes)
    return clipped
