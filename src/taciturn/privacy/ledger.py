"""The ledger: every release is charged to the rows whose labels it depends on, before it is sent.

A row pays for each release that depends on its label. An event whose price is unknown is refused,
never guessed. A budget stops the charge that would exceed it.

**Guarantee.** ``label_epsilon_total``, with ``label_delta_total``, bounds the label privacy loss of
the row that paid most, and with a budget it never exceeds it.

**Assumes.** Every label-dependent value in clear left through ``charge``. The types of the messages
keep arrays from leaving otherwise; a number, a text or public bytes they cannot judge, and under
the scheme ``clear`` an encrypted vector is in clear. And a row's label reaches the releases of
other rows only through values that were already released: where Bob updates his own weights with
true residues, that fails, and ``taint`` makes every total infinite. Besides, what the
prices and the composition assume.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np

from taciturn.arrays import EVERY_ROW, FloatArray, IndexArray, IntArray
from taciturn.errors import BudgetExceeded, ConfigError, PrivacyError
from taciturn.privacy.composition import ROUNDING, composition_notes, label_epsilon
from taciturn.privacy.events import PrivacyEvent, Statement
from taciturn.privacy.prices import EVENTS, Price, price

Rows: TypeAlias = IndexArray | slice
"""Some rows by their places, or all of them (``EVERY_ROW``)."""

DEFAULT_DELTA = 1e-6

# Why a ledger is tainted: assumptions that do not hold any more.
STOPS_BY_LABELS = (
    "no protection: when Bob ends the training depends on labels, and Alice sees when he does"
)
TRUE_UPDATES = (
    "no protection: Bob updates his own weights with true residues, "
    "so that every later release of every row depends on each label"
)


class Ledger:
    """Counts of the releases of each row of the training table.

    ``assumption`` is what the figures rest on. ``budget`` is the largest label epsilon by basic
    composition; ``delta`` the probability at which the tighter total is stated.
    """

    def __init__(
        self,
        rows: int,
        assumption: str,
        budget: float | None = None,
        delta: float = DEFAULT_DELTA,
    ) -> None:
        if budget is not None and not budget > 0:
            raise ConfigError(f"the budget is {budget:g}", setting="budget", hint="use more than 0")
        if not 0 <= delta < 1:
            raise ConfigError(f"delta is {delta:g}", setting="delta", hint="use 0 to below 1")
        self.rows = rows
        # One number where all rows were charged the same: a table may have many millions of them.
        self._counts: dict[PrivacyEvent, IntArray] = {}
        self._assumption = assumption
        self._budget = budget
        self._delta = delta
        self._tainted = False

    def affords(self, event: PrivacyEvent, rows: Rows, times: int = 1) -> bool:
        """Whether each of the rows can still pay for ``times`` releases of the kind."""
        if self._budget is None:
            return True
        cost = times * price(event).label
        if not cost or _none(rows):
            return True
        if self._tainted:
            return False
        return bool(self._label_totals(rows).max() + cost <= self._budget * (1 + ROUNDING))

    def charge(self, event: PrivacyEvent, rows: Rows, times: int = 1) -> None:
        """Charge a release that depends on the labels of ``rows``; call it before sending.

        Raises ``BudgetExceeded``, and charges nothing, where a row would pay more than the budget,
        and ``PrivacyError`` where the event has no known price, or rests on one that the rows have
        not paid for. ``times`` is more than one in a forecast only.
        """
        price(event)
        self._require_paid(event, rows)
        if not self.affords(event, rows, times):
            raise BudgetExceeded(
                f"a release would take a label's epsilon above the budget of {self._budget:g}",
                setting="budget",
                hint="stop here, or raise the budget",
            )
        counts = self._counts.get(event, np.zeros(1, np.int64))
        if not isinstance(rows, slice) and len(counts) < self.rows:
            counts = np.repeat(counts, self.rows)
        counts[rows] += times
        self._counts[event] = counts

    def _require_paid(self, event: PrivacyEvent, rows: Rows) -> None:
        if event.rests_on is None or _none(rows):
            return
        paid = self._counts.get(event.rests_on)
        if paid is None or not _of(paid, rows).all():
            raise PrivacyError(
                f"a {event.name} was to leave, and the {event.rests_on.name} that it rests on was "
                "not charged"
            )

    @property
    def tainted(self) -> bool:
        """Whether labels reach other rows' releases unprotected."""
        return self._tainted

    def history(self, row: int) -> dict[PrivacyEvent, int]:
        """Number of charges to a row, by event."""
        rows = np.array([row])
        return {event: int(_of(counts, rows)[0]) for event, counts in self._counts.items()}

    def taint(self, reason: str) -> None:
        """Record that labels reach other rows' releases unprotected: every total is infinite."""
        self._tainted = True
        self._assumption = reason

    def to_json(self) -> dict[str, Any]:
        """The charges so far, for a file of Bob's."""
        counts = [
            [
                event.name,
                [getattr(event, part.name) for part in fields(event)],
                counted.astype("<i8").tobytes().hex(),
            ]
            for event, counted in self._counts.items()
        ]
        return {"counts": counts, "tainted": self._tainted, "assumption": self._assumption}

    def restore(self, record: dict[str, Any]) -> None:
        """Restore the charges that ``to_json`` gave."""
        self._counts = {
            EVENTS[name](*values): np.frombuffer(bytes.fromhex(counted), "<i8").copy()
            for name, values, counted in record["counts"]
        }
        self._tainted, self._assumption = bool(record["tainted"]), str(record["assumption"])

    def statement(self) -> Statement:
        """Figures of the row that paid most."""
        prices = [price(event) for event in self._counts]
        most = Price(
            max((cost.claimed for cost in prices), default=0.0),
            max((cost.residue for cost in prices), default=0.0),
            max((cost.label for cost in prices), default=0.0),
        )
        residue = self._totals([cost.residue for cost in prices], EVERY_ROW)
        label = self._label_totals(EVERY_ROW)
        delta = self._totals([cost.delta for cost in prices], EVERY_ROW)
        releases = self._totals([float(cost.label > 0) for cost in prices], EVERY_ROW)
        tighter = (label_epsilon(counts, self._delta) for counts in self._histories())
        tainted = self._tainted and bool(prices)
        return Statement(
            claimed_epsilon_per_release=most.claimed,
            residue_epsilon_per_release=most.residue,
            label_epsilon_per_release=most.label,
            releases_per_row=int(releases.max(initial=0.0)),
            residue_epsilon_total=math.inf if tainted else float(residue.max(initial=0.0)),
            label_epsilon_total=math.inf if tainted else float(label.max(initial=0.0)),
            label_epsilon_total_delta=math.inf if tainted else max(tighter, default=0.0),
            delta=self._delta,
            assumption=self._assumption,
            label_delta_total=float(delta.max(initial=0.0)),
        )

    def notes(self) -> tuple[str, ...]:
        """Remarks for a reader of the statement."""
        if self._tainted:
            return ()
        remarks = (composition_notes(counts, self._delta) for counts in self._histories())
        return next(filter(None, remarks), ())

    def _histories(self) -> Iterator[dict[PrivacyEvent, int]]:
        """Distinct histories of rows: how often each event was charged."""
        if not self._counts or not self.rows:
            return
        for counts in np.unique(np.stack(np.broadcast_arrays(*self._counts.values())), axis=1).T:
            yield dict(zip(self._counts, counts.tolist(), strict=True))

    def _label_totals(self, rows: Rows) -> FloatArray:
        return self._totals([price(event).label for event in self._counts], rows)

    def _totals(self, prices: list[float], rows: Rows) -> FloatArray:
        """One number where all rows have paid the same."""
        total = np.zeros(1)
        for cost, counts in zip(prices, self._counts.values(), strict=True):
            releases = _of(counts, rows)
            # Infinity times no release is nothing, not NaN.
            total = total + np.where(releases > 0, cost, 0.0) * np.maximum(releases, 1)
        return total


def _none(rows: Rows) -> bool:
    return not isinstance(rows, slice) and not len(rows)


def _of(counts: IntArray, rows: Rows) -> IntArray:
    """One number where all rows have the same."""
    return counts if len(counts) == 1 else counts[rows]
