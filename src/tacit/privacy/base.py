"""``Released``: the only form in which something that depends on labels may leave Bob in clear."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from tacit.privacy.events import NonPrivate, PrivacyEvent
from tacit.rng import Entropy

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Released(Generic[T]):
    """A value together with the event that its release is.

    Guarantee: none by itself; the event says what the value was protected with.
    """

    value: T = field(repr=False)
    event: PrivacyEvent

    @classmethod
    def unprotected(cls, value: T) -> Released[T]:
        """Lets a value out as it is. The ledger's price for it is infinity."""
        return cls(value, NonPrivate())


class Mechanism(Protocol):
    """What Bob does to a value before it leaves him.

    ``conversation`` names the pair of programs that use it, ``claim`` is one sentence for a person.
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

    @property
    def event(self) -> PrivacyEvent:
        """What one release is."""
        ...

    def release(self, secret: T, entropy: Entropy) -> Released[T]:
        """The value as it may leave Bob."""
        ...
