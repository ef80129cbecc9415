"""What a column attack is: an estimate of Alice's columns, from Bob's view and the rows he knows.

The rows that he knows anyway are handed to it by the judge's side; it can load no other value of
hers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from taciturn.arrays import FloatArray, IndexArray
from taciturn.parallel import one_thread
from taciturn.protocol.bob.observations import BobSignal
from taciturn.view.bob_view import BobView


@dataclass(frozen=True, slots=True)
class KnownRows:
    """Rows of Alice's that Bob knows anyway: some of the people are his own staff, or bought.

    Args:
        rows: Their places in the training table.
        values: Her columns of them.
    """

    rows: IndexArray = field(repr=False)
    values: FloatArray = field(repr=False)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.rows)

    @classmethod
    def none(cls, columns: int) -> KnownRows:
        """Nothing is known."""
        return cls(np.empty(0, dtype=np.int64), np.empty((0, columns)))


class Ambiguity(Enum):
    """What an estimate leaves open, which the judge settles (``taciturn.audit.columns``)."""

    NONE = "none"
    SIGN = "order and sign of columns"
    SCALE = "order, unit and offset of columns"
    LINEAR = "a linear map"


@dataclass(frozen=True, slots=True)
class ColumnEstimate:
    """An estimate of Alice's columns.

    Args:
        values: One row for each of hers; any number of columns, unless nothing is left open.
        ambiguity: What is left open.
        remark: One sentence about how it went.
        limited: A limit on its work ended it; without one it might tell more.
    """

    values: FloatArray = field(repr=False)
    ambiguity: Ambiguity = Ambiguity.NONE
    remark: str = ""
    limited: bool = False


class ColumnAttack(ABC):
    """One way to estimate.

    Attributes:
        name: In tables and JSON.
        reference: Where it comes from.
        needs: What the view must hold for it to apply: one of these at least.
        uses_known_rows: Whether it is run with rows that Bob knows.
        works_without: Whether it is run without any.
    """

    name: str
    reference: str
    needs: frozenset[BobSignal]
    uses_known_rows: bool = True
    works_without: bool = False

    def obstacle(self, view: BobView) -> str:
        """Why it does not apply although the view has what it needs; empty where it does."""
        return ""

    def estimate(self, view: BobView, known: KnownRows) -> ColumnEstimate:
        """An estimate of every row, made on one thread of linear algebra."""
        with one_thread():
            return self._estimate(view, known)

    @abstractmethod
    def _estimate(self, view: BobView, known: KnownRows) -> ColumnEstimate:
        """The attack itself."""
