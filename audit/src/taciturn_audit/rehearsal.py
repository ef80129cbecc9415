"""Rehearsal: a small training on random labels by the real programs, for a pre-flight check.

Bob may rehearse with labels of his own: as many of either class, so that a guess at one is at even
odds, as random labels have.

**Guarantee.** No label of the table is looked at, unless Bob asks for it: random labels replace all
of them.

**Assumes.** A sample of the rows is like the whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray, IndexArray
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import RawData
from taciturn.data.split import training_rows
from taciturn.data.user_table import DEFAULTS
from taciturn.errors import ShapeError
from taciturn.jobs.train.simulation import Outcome, simulate_training
from taciturn.privacy.base import Mechanism
from taciturn.privacy.registry import mechanism, mechanism_class
from taciturn.protocol.agree import agree, with_row_defaults
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy
from taciturn_audit.adversaries import outcome_view
from taciturn_audit.views.alice_view import AliceView

MOST_EPOCHS = 30
_LEAST_ROWS, _BATCHES, _MOST_ROWS = 300, 12, 4000
# Sums over all rows tell the more the fewer rows there are, so that few would say too much.
_WHOLE_TABLE_ROWS = 20_000
_SEED = 20
# The fewest random labels of which guessing all right is rarer than preflight's FALSE_ALARM.
FEWEST_ROWS = 14


def random_table(rows: int, columns: int) -> RawData:
    """Standard normal columns, in place of Alice's where only their number is known.

    >>> random_table(10, 3).frame.shape
    (10, 3)
    """
    entropy = KeyedEntropy.from_seed(_SEED).fork("random table")
    uniform = entropy.uniform((2, rows, columns))
    normal = np.sqrt(-2 * np.log1p(-uniform[0])) * np.cos(2 * np.pi * uniform[1])
    frame = pl.from_numpy(normal, schema=[f"x{number}" for number in range(columns)])
    labels = LabelTable.from_data(np.arange(rows) % 2)
    return RawData("random columns", frame, RowIds.from_values(np.arange(rows)), labels, DEFAULTS)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A small training on random labels, as seen by one Alice or several, and real sizes."""

    settings: Settings
    terms: Terms
    method: Mechanism
    rows: int
    columns: int
    bob_columns: int
    view: AliceView = field(repr=False)
    labels: LabelTable = field(repr=False)
    outcome: Outcome = field(repr=False)
    own_labels: bool = False

    @classmethod
    def run(cls, settings: Settings, raw: RawData, *, own_labels: bool = False) -> Rehearsal:
        """Train on a sample, with its own labels balanced by class, or with random labels.

        Raises ``ShapeError`` where the table has too few rows for a rehearsal to show anything.
        """
        rows = raw.rows if raw.whole else training_rows(raw.rows, settings.test_fraction)
        _require_rows(rows, settings, raw)
        entropy = KeyedEntropy.from_seed(_SEED)
        order = entropy.fork("sample").permutation(raw.rows)
        if own_labels:
            order = _even(order, raw.labels)
        order = np.sort(order[: _sample_size(settings)])
        labels = raw.labels.take(order)
        sample = replace(
            raw,
            frame=raw.frame[order.tolist()],
            ids=raw.ids.take(order),
            labels=labels
            if own_labels
            else labels.with_random_labels(entropy.fork("labels"), settings.family),
        )
        small = settings.model_copy(
            update={
                "scheme": "clear",
                "key_bits": None,
                "seed": _SEED,
                "seeds": 1,
                "permute_labels": False,
                "permute_rows": False,
                **_fewer(settings, rows),
            }
        )
        outcome = simulate_training(small, sample, keep=True)
        columns = len(outcome.data.alice_train.columns)
        # Whether the real table is large enough is said here, before anything else is.
        terms = agree(settings, columns, rows, parties=outcome.terms.agreement.parties)
        return cls(
            settings=settings,
            terms=terms,
            method=mechanism(terms.agreement),
            rows=rows,
            columns=columns,
            bob_columns=len(outcome.data.bob_train.columns),
            view=outcome_view(outcome),
            labels=outcome.data.labels_train,
            outcome=outcome,
            own_labels=own_labels,
        )

    @property
    def entropy(self) -> RunEntropy:
        """Randomness of the small training."""
        return RunEntropy.for_seed(_SEED)

    @property
    def own_columns(self) -> int:
        """The number of columns in the audited view."""
        return len(self.view.features.columns)

    @property
    def batch(self) -> int:
        """The rows of a whole batch, at most all rows."""
        return self.terms.agreement.solver.batch(self.rows)

    @property
    def table(self) -> FloatArray:
        """Alice's rehearsed rows."""
        return self.view.features.values


def _even(order: IndexArray, labels: LabelTable) -> IndexArray:
    ones = labels.upper[order]
    fewer = min(np.count_nonzero(ones), np.count_nonzero(~ones))
    return np.column_stack([order[ones][:fewer], order[~ones][:fewer]]).ravel()


def _require_rows(left: int, settings: Settings, raw: RawData) -> None:
    if left < FEWEST_ROWS:
        needed = math.ceil(FEWEST_ROWS / (1 - settings.test_fraction))
        raise ShapeError(
            f"too few rows to rehearse with: {left} of {raw.rows} would be trained on, and "
            f"{FEWEST_ROWS} are needed",
            where=settings.data or raw.name,
            hint=f"use {needed} rows or more; what so few rows show, chance may show too",
        )


def _fewer(settings: Settings, rows: int) -> dict[str, object]:
    """Settings of the small training: fewer passes or epochs than a training on ``rows`` has."""
    if settings.solver == "newton":
        real = with_row_defaults(settings, rows)
        return {"passes": min(real.passes or 1, MOST_EPOCHS), "score_range": real.score_range}
    return {"epochs": min(settings.epochs or 1, MOST_EPOCHS)}


def _sample_size(settings: Settings) -> int:
    if settings.solver == "newton":
        return _WHOLE_TABLE_ROWS
    batch = settings.batch_size or 1
    asked = max(
        _LEAST_ROWS,
        _BATCHES * batch,
        3 * (settings.subset_size or 0),
        mechanism_class(settings.mechanism).rehearsal_rows(settings),
    )
    return min(_MOST_ROWS, math.ceil(asked / (1 - settings.test_fraction)))
