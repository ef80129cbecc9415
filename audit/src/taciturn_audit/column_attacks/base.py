"""Interface of a column attack: an estimate of Alice's columns from Bob's view and known rows.

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
from taciturn_audit.views.bob_view import BobView


@dataclass(frozen=True, slots=True)
class KnownRows:
    """Alice's columns of some training rows, which Bob knows from elsewhere."""

    rows: IndexArray = field(repr=False)
    values: FloatArray = field(repr=False)

    @property
    def count(self) -> int:
        """The number of known rows."""
        return len(self.rows)

    @classmethod
    def none(cls, columns: int) -> KnownRows:
        """No known rows."""
        return cls(np.empty(0, dtype=np.int64), np.empty((0, columns)))


class Ambiguity(Enum):
    """Ambiguity of an estimate that the judge resolves (``taciturn_audit.columns``)."""

    NONE = "none"
    SIGN = "order and sign of columns"
    SCALE = "order, unit and offset of columns"
    LINEAR = "a linear map"


@dataclass(frozen=True, slots=True)
class ColumnEstimate:
    """Estimate of Alice's columns, one row per row of hers.

    It may have any number of columns, unless ``ambiguity`` is ``NONE``. ``limited``: a limit on
    work ended the attack.
    """

    values: FloatArray = field(repr=False)
    ambiguity: Ambiguity = Ambiguity.NONE
    remark: str = ""
    limited: bool = False


class ColumnAttack(ABC):
    """Base class of column attacks.

    A view needs at least one signal of ``needs``. ``uses_known_rows`` and ``works_without`` say
    whether an audit runs it with rows that Bob knows, and without any.
    """

    name: str
    reference: str
    needs: frozenset[BobSignal]
    uses_known_rows: bool = True
    works_without: bool = False

    def obstacle(self, view: BobView) -> str:
        """Reason why the attack does not apply to a view with its inputs; empty if it does."""
        return ""

    def lacks(self, view: BobView) -> str:
        """Reason why the attack does not apply to Bob's view; empty if it does."""
        if not self.needs & view.signals:
            wanted = " or ".join(sorted(signal.value for signal in self.needs))
            return f"Bob does not have {wanted}"
        return self.obstacle(view)

    def estimate(self, view: BobView, known: KnownRows) -> ColumnEstimate:
        """An estimate of every row, made on one thread of linear algebra."""
        with one_thread():
            return self._estimate(view, known)

    @abstractmethod
    def _estimate(self, view: BobView, known: KnownRows) -> ColumnEstimate:
        """The attack itself."""
