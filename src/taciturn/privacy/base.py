"""``Released``: the only form in which something that depends on labels may leave Bob in clear.

**Guarantee.** None by itself: the event says what a value was protected with, and the ledger its
price.

**Assumes.** Programs pass values through their mechanism; the codec refuses a bare one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

from taciturn.arrays import FloatArray, IntArray, LabelArray
from taciturn.privacy.events import NonPrivate, PrivacyEvent
from taciturn.privacy.noise import LaplaceDraws
from taciturn.rng import Entropy

T = TypeVar("T")

MaskedProduct: TypeAlias = tuple[int, ...]
"""A masked product as its key's owner decrypts it: non-negative integers."""


@dataclass(frozen=True, slots=True)
class Released(Generic[T]):
    """A value together with the event that its release is."""

    value: T = field(repr=False)
    event: PrivacyEvent

    @classmethod
    def unprotected(cls, value: T) -> Released[T]:
        """Lets a value out as it is. The ledger's price for it is infinity."""
        return cls(value, NonPrivate())


class Mechanism(Protocol):
    """A way to protect labels: what it is called, who talks how, and what its figures rest on.

    What a mechanism does to a value is the business of its conversation, which asks for a narrower
    protocol such as ``GradientRelease``.
    """

    @property
    def name(self) -> str:
        """The name used in settings."""
        ...

    @property
    def conversation(self) -> str:
        """Which pair of programs trains with it."""
        ...

    @property
    def encrypts(self) -> bool:
        """Whether its conversation uses the scheme; otherwise none is made."""
        ...

    @property
    def event(self) -> PrivacyEvent:
        """What one release is."""
        ...

    @property
    def assumption(self) -> str:
        """What the ledger's figures rest on."""
        ...


class GradientRelease(Mechanism, Protocol):
    """A mechanism that returns a masked gradient to Alice."""

    def residue(self, scores: FloatArray, labels: LabelArray) -> FloatArray:
        """What enters the gradient: the slope of the likelihood at each row's score."""
        ...

    def release(self, secret: MaskedProduct, entropy: Entropy) -> Released[MaskedProduct]:
        """The gradient as it may leave Bob."""
        ...


class SealedTraining(Mechanism, Protocol):
    """A mechanism whose residues leave Bob under his key only."""

    def residue(self, scores: FloatArray, labels: LabelArray) -> FloatArray:
        """What is encrypted of each row: the slope of its log likelihood in the score."""
        ...


class ResidueRelease(Mechanism, Protocol):
    """A mechanism that tells Alice each residue of a batch, with noise.

    Residues and what is released are integers on the residues' grid. ``release_real`` is the same
    formula in floating point, which is not fit for two real parties.
    """

    def release(self, residues: IntArray, draws: LaplaceDraws) -> Released[IntArray]:
        """The residues as they may leave Bob: a function of the draws, so it has known answers."""
        ...

    def release_real(self, residues: FloatArray, entropy: Entropy) -> Released[FloatArray]:
        """The formula as printed, in floating point."""
        ...

    def log_probability(self, released: IntArray, residues: IntArray) -> FloatArray:
        """The logarithm of the exact probability of each released integer, given its residue."""
        ...

    def log_density(self, released: FloatArray, residues: FloatArray) -> FloatArray:
        """The same for ``release_real``: a density, and a probability at an atom."""
        ...
