"""``Released``: the only form in which something that depends on labels may leave Bob in clear.

**Guarantee.** None by itself: the event says what a value was protected with, and the ledger its
price.

**Assumes.** Programs pass values through their mechanism; the codec refuses a bare one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

from tacit.privacy.events import NonPrivate, PrivacyEvent
from tacit.rng import Entropy

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
    def assumption(self) -> str:
        """What the ledger's figures rest on."""
        ...


class GradientRelease(Mechanism, Protocol):
    """A mechanism that returns a masked gradient to Alice."""

    @property
    def event(self) -> PrivacyEvent:
        """What one release is."""
        ...

    def release(self, secret: MaskedProduct, entropy: Entropy) -> Released[MaskedProduct]:
        """The gradient as it may leave Bob."""
        ...
