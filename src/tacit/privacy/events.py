"""What a release was: frozen values that say what happened, apart from what it costs.

**Guarantee.** None: an event is a statement.

**Assumes.** Whoever makes one tells the truth about the release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class PrivacyEvent:
    """Something about the labels left Bob.

    The name stands on the wire and keeps its meaning. Fields are reals, the parameters of the
    release; a class checks them when it is made.
    """

    name: ClassVar[str]


@dataclass(frozen=True, slots=True)
class NonPrivate(PrivacyEvent):
    """A label-dependent value left Bob unprotected: its price is infinite."""

    name = "non-private"


EVENTS: dict[str, type[PrivacyEvent]] = {NonPrivate.name: NonPrivate}
