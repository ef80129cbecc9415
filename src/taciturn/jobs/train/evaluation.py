"""Evaluation of a finished training at Bob: metrics, what the partner adds, convergence, one table.

All of it depends on labels, or is for Bob's eyes only. It is computed when the last message has
been sent and the connection is closed: nothing that the peer can see, not even a time, depends on
it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.tables import LabelTable
from taciturn.jobs.train.result import PartyRun
from taciturn.memmap import MEMORY, Scratch, drop_pages
from taciturn.numerics.convergence import FEW_ROWS, Opened, assess_convergence
from taciturn.numerics.regression_metrics import (
    ModelMetrics,
    added_by_partner,
    evaluate_labels,
    fits_worse_than_base_rate,
    most_loss,
)
from taciturn.numerics.symmetry import OpenedPasses
from taciturn.party.tables import PartyTables
from taciturn.protocol.outcome import BobTrained
from taciturn.protocol.party import PartyResult
from taciturn.protocol.state import INLINE, ArrayStore, Load, bits_of, integers_of
from taciturn.protocol.terms import Terms
from taciturn.results.reading import read
from taciturn.results.serialise import record_of
from taciturn.rng import Entropy

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class FinishedTraining:
    """A training after its last message, for the journal.

    A stop must not lose what is to be assessed. Scores are there where Bob has yet to assess them;
    ``opened`` are the exact scores of all passes with what was asked. ``assessed`` says whether
    nothing is left to do. ``peer_columns`` counts Alice's columns whose weights are shared.
    """

    run: PartyRun
    train_scores: FloatArray | None = field(default=None, repr=False)
    held_out_scores: FloatArray | None = field(default=None, repr=False)
    session: str = ""
    assessed: bool = True
    opened: OpenedPasses | None = field(default=None, repr=False)
    peer_columns: int = 0

    @classmethod
    def from_result(cls, run: PartyRun, result: PartyResult, session: str) -> FinishedTraining:
        """The end of a program; at Alice there is nothing to assess."""
        trained, scores = result.trained, (result.train_scores, result.held_out_scores)
        if not isinstance(trained, BobTrained):
            return cls(run, *scores, session)
        columns = 0 if trained.share is None else len(trained.share.values)
        return cls(run, *scores, session, False, trained.opened, columns)

    def to_bytes(self, array_store: ArrayStore = INLINE) -> bytes:
        """The record; long arrays are kept in the array store."""
        scores = {"train": self.train_scores, "held_out": self.held_out_scores}
        arrays = {
            name: None if values is None else array_store.put(f"{name}-end", values)
            for name, values in scores.items()
        }
        rest = {
            "session": self.session,
            "assessed": self.assessed,
            "peer_columns": self.peer_columns,
        }
        opened = None if self.opened is None else _kept(self.opened, array_store)
        record = {"run": record_of(self.run), **arrays, **rest, "opened": opened}
        return json.dumps(record).encode()

    @classmethod
    def from_bytes(
        cls, data: bytes, array_store: ArrayStore = INLINE, scratch: Scratch = MEMORY
    ) -> FinishedTraining:
        """Reads the record back; ``scratch`` holds the arrays of all passes."""
        values = json.loads(data)
        train, held_out = (
            None if scores_reference is None else array_store.get(scores_reference)()
            for scores_reference in (values["train"], values["held_out"])
        )
        run, session = read(PartyRun, values["run"]), values.get("session", "")
        # A record of an earlier version has none.
        opened_record = values.get("opened")
        opened = None if opened_record is None else _restored(opened_record, array_store, scratch)
        columns = int(values.get("peer_columns", 0))
        return cls(run, train, held_out, session, values["assessed"], opened, columns)


def _kept(opened: OpenedPasses, array_store: ArrayStore) -> dict[str, Any]:
    """The passes for a record; a checkpoint has put the arrays there under the same names."""
    scores = [bits_of(values) for values in opened.scores]
    return {
        **{
            kind: [
                array_store.put(f"{kind}-{number}", values) for number, values in enumerate(arrays)
            ]
            for kind, arrays in (("direction", opened.directions), ("opened", scores))
        },
        "bits": [opened.direction_bits, opened.modulus_bits],
    }


def _restored(record: dict[str, Any], array_store: ArrayStore, scratch: Scratch) -> OpenedPasses:
    loads = [
        [array_store.get(reference) for reference in record[kind]]
        for kind in ("direction", "opened")
    ]
    directions, scores = (_filled(arrays, scratch) for arrays in loads)
    return OpenedPasses(tuple(directions), tuple(integers_of(scores)), *record["bits"])


def _filled(loads: Sequence[Load], scratch: Scratch) -> FloatArray:
    first = loads[0]()
    values: FloatArray = scratch.unnamed((len(loads), len(first)), np.float64)
    for number, load in enumerate(loads):
        values[number] = load() if number else first
        drop_pages(values)
    return values


def assess(
    finished: FinishedTraining, tables: PartyTables, terms: Terms, entropy: Entropy
) -> PartyRun:
    """Bob's complete result."""
    # Bob alone has labels, and only he loads his programs.
    from taciturn.protocol.bob.baseline import LabelPartyBaseline

    labels, run = tables.labels, finished.run
    if finished.opened is not None:
        run = replace(run, symmetry=finished.opened.symmetry())
    if labels is None:
        return run
    shift = terms.log_odds_shift
    losses = [point.train_loss for point in run.run.curve if point.train_loss is not None]
    changes = [point.row_change for point in run.run.curve if point.row_change is not None]
    objectives = [point.objective for point in run.run.curve if point.objective is not None]
    held_out, truth, scores = tables.held_out, tables.held_out_labels, finished.held_out_scores
    judged = None if truth is None else _figures(scores, truth, shift)
    shared = terms.shares_scores
    arrived = assess_convergence(
        losses,
        # Where no training loss is opened, that of held-out rows stands in for it.
        end=judged.loss if shared and judged is not None else None,
        row_changes=changes,
        most_loss=most_loss(labels),
        opened=_opened(finished, labels.rows, tables, terms) if shared else None,
        objectives=objectives,
    )
    run = replace(
        run,
        metrics=replace(run.metrics, train=_figures(finished.train_scores, labels, shift)),
        converged=arrived.converged,
        converged_reason=arrived.reason,
        diverged=arrived.diverged,
        last_change=arrived.last_change,
        last_row_change=arrived.row_change,
    )
    if held_out is None or truth is None or scores is None:
        return run
    alone = LabelPartyBaseline.fit(tables.train, labels, terms, entropy).scores(held_out)
    return replace(
        run,
        metrics=replace(run.metrics, held_out=judged),
        bob_alone=_figures(alone, truth, shift),
        partner_adds=added_by_partner(np.nan_to_num(scores), alone, truth),
    )


def _opened(finished: FinishedTraining, rows: int, tables: PartyTables, terms: Terms) -> Opened:
    """What Bob knows of the end of a training of ``rows`` rows in which nobody sees a loss."""
    truth, scores = tables.held_out_labels, finished.held_out_scores
    worse = False
    if truth is not None and scores is not None and truth.rows > 1:
        worse = fits_worse_than_base_rate(scores - terms.log_odds_shift, truth)
    run, columns = finished.run, len(tables.train.columns) + finished.peer_columns
    few_rows = rows < FEW_ROWS * columns
    return Opened(run.opened_change, run.scores_beyond_range, worse, few_rows)


def _figures(scores: FloatArray | None, labels: LabelTable, shift: float) -> ModelMetrics | None:
    # What is no number becomes one: a model that diverged is worth what its figures say.
    return None if scores is None else evaluate_labels(np.nan_to_num(scores), labels, shift)
