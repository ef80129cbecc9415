"""What Bob can tell of Alice's columns: the second seat of an audit.

Where several runs are averaged, the same types hold means.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from taciturn.results.serialise import INLINE, OMITTED
from taciturn.results.skipped import Skipped


@dataclass(frozen=True, slots=True)
class ColumnControl:
    """What is known of her columns without any score; ``r2`` is None where none is numeric."""

    name: str
    r2: float | None
    recovered: float


@dataclass(frozen=True, slots=True)
class ColumnScore:
    """How right an estimate of her columns was, over rows that were not known.

    ``r2`` is the mean over her numeric columns, None where she has none. ``recovered`` is the share
    of her values within a tenth of their column's standard deviation, or of the right category; its
    ends are those of a 95 % interval. ``limited`` says that a limit on its work ended the attack,
    and is absent otherwise.
    """

    name: str
    known_rows: float
    r2: float | None
    recovered: float
    recovered_low: float
    recovered_high: float
    seconds: float
    values: float
    remark: str = ""
    limited: bool | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class ColumnFindings:
    """What the column attacks found in a run, beside what is known without them."""

    controls: tuple[ColumnControl, ...]
    attacks: tuple[ColumnScore, ...]
    skipped: tuple[Skipped, ...]
    leaks: bool
    verdict: str


@dataclass(frozen=True, slots=True)
class BobSeat:
    """Bob's seat; ``canary`` is of the same training with her rows permuted against his."""

    findings: ColumnFindings = field(metadata=INLINE)
    canary: ColumnFindings | None
