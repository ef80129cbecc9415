"""What a training will cost, and tell: before it begins."""

from __future__ import annotations

from dataclasses import dataclass, field

from taciturn.privacy.statement import Statement
from taciturn.results.serialise import EMPTY, OMITTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """What each side receives in a training, in sentences; the same on both sides.

    ``columns`` is what Bob can do to Alice's columns; None where no training score is opened.
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

    ``so_far`` is for these rows, ``then`` includes this training.
    """

    trainings: int
    so_far: Statement
    then: Statement
    limit: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a training will cost, and tell.

    ``ledger`` is Bob's at the end of the training, ``ledger_book`` with the trainings before it;
    both are None at Alice.
    """

    ledger: Statement | None = field(metadata=EMPTY)
    learns: Disclosure
    ledger_book: LedgerSum | None = field(default=None, metadata=OMITTED)
    refused: Refusal | None = field(default=None, metadata=OMITTED)
