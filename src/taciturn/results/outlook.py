"""What a training will cost, and tell: before it begins."""

from __future__ import annotations

from dataclasses import dataclass, field

from taciturn.privacy.statement import Statement
from taciturn.results.serialise import EMPTY, OMITTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """What each side receives in a training, in sentences; the same on both sides."""

    alice: str
    bob: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a side would not begin, and the line that changes it."""

    why: str
    way_out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a training will cost, and tell.

    Args:
        ledger: Bob's ledger as it will stand at the end; None at Alice.
        learns: What each side will receive.
        refused: Why this side would not begin; None where it would.
    """

    ledger: Statement | None = field(metadata=EMPTY)
    learns: Disclosure
    refused: Refusal | None = field(default=None, metadata=OMITTED)
