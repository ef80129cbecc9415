"""What a release was: frozen values that say what happened, apart from what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class PrivacyEvent:
    """Something about the labels left Bob. Its name stands on the wire and keeps its meaning."""

    name: ClassVar[str]


@dataclass(frozen=True, slots=True)
class NonPrivate(PrivacyEvent):
    """A label-dependent value left Bob unprotected: its price is infinite."""

    name = "non-private"


EVENTS: dict[str, type[PrivacyEvent]] = {NonPrivate.name: NonPrivate}
