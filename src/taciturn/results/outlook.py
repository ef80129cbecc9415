"""What a training will cost, and tell: before it begins."""

from __future__ import annotations

from dataclasses import dataclass, field

from taciturn.privacy.statement import Statement
from taciturn.results.serialise import EMPTY, OMITTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """What each side receives in a training, in sentences; the same on both sides.

    Args:
        alice: What Alice receives.
        bob: What Bob receives.
        columns: What Bob can do to Alice's columns with it; None where no training score is opened.
    """

    alice: str
    bob: str
    columns: str | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a side would not begin, and the line that changes it."""

    why: str
    way_out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSum:
    """What the labels of a training have cost with this partner, over time.

    Args:
        trainings: How many trainings were charged before.
        so_far: What they came to, for these rows.
        then: What it will come to with this one.
        limit: The most that it may come to; None for no limit.
    """

    trainings: int
    so_far: Statement
    then: Statement
    limit: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a training will cost, and tell.

    Args:
        ledger: Bob's ledger as it will stand at the end; None at Alice.
        learns: What each side will receive.
        ledger_book: The same with the trainings before; None at Alice.
        refused: Why this side would not begin; None where it would.
    """

    ledger: Statement | None = field(metadata=EMPTY)
    learns: Disclosure
    ledger_book: LedgerSum | None = field(default=None, metadata=OMITTED)
    refused: Refusal | None = field(default=None, metadata=OMITTED)
