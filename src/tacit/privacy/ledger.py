"""The ledger: every release is charged to the rows it speaks of, before it is sent.

Composition is basic (epsilons add up): a row pays for each release that depends on its label. An
event whose price is unknown is refused, never guessed.

**Guarantee.** ``label_epsilon_total`` bounds the label privacy loss of the row that paid most.

**Assumes.** Every label-dependent value in clear left through ``charge``. The types of the messages
keep arrays from leaving otherwise; a number, a text or public bytes they cannot judge, and under
the scheme ``clear`` an encrypted vector is in clear. And a row's label reaches the releases of
other rows only through values that were already released: where Bob updates his own weights with
true residues, finite prices would be wrong. With ``none`` every price is infinite.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np

from tacit.arrays import IndexArray
from tacit.errors import PrivacyError
from tacit.privacy.events import NonPrivate, PrivacyEvent


@dataclass(frozen=True, slots=True)
class Price:
    """The privacy parameter of one release: as claimed, and what it truly is."""

    claimed: float
    residue: float
    label: float


@dataclass(frozen=True, slots=True)
class Statement:
    """The ledger in figures; infinity is written as the text ``inf`` in JSON."""

    claimed_epsilon_per_release: float
    residue_epsilon_per_release: float
    label_epsilon_per_release: float
    releases_per_row: int
    residue_epsilon_total: float
    label_epsilon_total: float
    label_epsilon_total_delta: float
    delta: float
    assumption: str

    def to_dict(self) -> dict[str, float | int | str]:
        """The statement for JSON."""
        return {
            key: "inf" if isinstance(value, float) and math.isinf(value) else value
            for key, value in asdict(self).items()
        }


def price(event: PrivacyEvent) -> Price:
    """What one release of this kind costs.

    >>> price(NonPrivate()).label
    inf

    Raises:
        PrivacyError: The event is of a kind without a known price.
    """
    if isinstance(event, NonPrivate):
        return Price(math.inf, math.inf, math.inf)
    raise PrivacyError(f"no price is known for the event {type(event).__name__}")


class Ledger:
    """Counts the releases of each row of the training table.

    Args:
        rows: How many rows there are.
        assumption: What the figures rest on, for the statement.
    """

    def __init__(self, rows: int, assumption: str) -> None:
        self._counts = np.zeros(rows, dtype=np.int32)
        self._price = Price(0.0, 0.0, 0.0)
        self._assumption = assumption

    def charge(self, event: PrivacyEvent, rows: IndexArray) -> None:
        """Charges one release that depends on the labels of ``rows``; call it before sending."""
        cost = price(event)
        self._price = Price(
            max(self._price.claimed, cost.claimed),
            max(self._price.residue, cost.residue),
            max(self._price.label, cost.label),
        )
        self._counts[rows] += 1

    def statement(self) -> Statement:
        """The figures for the row that was released most often."""
        releases = int(self._counts.max(initial=0))
        residue, label = (
            0.0 if releases == 0 else releases * each
            for each in (self._price.residue, self._price.label)
        )
        return Statement(
            claimed_epsilon_per_release=self._price.claimed,
            residue_epsilon_per_release=self._price.residue,
            label_epsilon_per_release=self._price.label,
            releases_per_row=releases,
            residue_epsilon_total=residue,
            label_epsilon_total=label,
            label_epsilon_total_delta=label,
            delta=0.0,
            assumption=self._assumption,
        )
