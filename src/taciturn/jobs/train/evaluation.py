"""What Bob makes of a training that has ended: figures, what the partner adds, whether it arrived.

And whether all answers of the training fit one table. All of it depends on labels, or is for his
eyes only. So it is computed when the last word has been said and the way to the
peer is closed: nothing that the peer can see, not even a time, depends on it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from taciturn.arrays import FloatArray, LabelArray
from taciturn.jobs.train.result import PartyRun
from taciturn.memmap import MEMORY, Scratch, drop_pages
from taciturn.numerics.convergence import assess_convergence
from taciturn.numerics.metrics import Metrics, added_auc, evaluate
from taciturn.numerics.symmetry import OpenedPasses
from taciturn.party.tables import PartyTables
from taciturn.protocol.outcome import BobTrained
from taciturn.protocol.party import PartyResult
from taciturn.protocol.state import INLINE, ArrayStore, Load, bits_of, integers_of
from taciturn.protocol.terms import Terms
from taciturn.results.serialise import read, record_of
from taciturn.rng import Entropy


@dataclass(frozen=True, slots=True)
class FinishedTraining:
    """A training after its last message, for the journal.

    A stop must not lose what is to be assessed. Scores are there where Bob has yet to assess them;
    ``opened`` are the exact scores of all passes with what was asked. ``assessed`` says whether
    nothing is left to do.
    """

    run: PartyRun
    train_scores: FloatArray | None = field(default=None, repr=False)
    held_out_scores: FloatArray | None = field(default=None, repr=False)
    session: str = ""
    assessed: bool = True
    opened: OpenedPasses | None = field(default=None, repr=False)

    @classmethod
    def from_result(cls, run: PartyRun, result: PartyResult, session: str) -> FinishedTraining:
        """The end of a program; at Alice there is nothing to assess."""
        trained, scores = result.trained, (result.train_scores, result.held_out_scores)
        if not isinstance(trained, BobTrained):
            return cls(run, *scores, session)
        return cls(run, *scores, session, assessed=False, opened=trained.opened)

    def to_bytes(self, array_store: ArrayStore = INLINE) -> bytes:
        """The record; long arrays are kept on the shelf."""
        scores = {"train": self.train_scores, "held_out": self.held_out_scores}
        kept = {
            name: None if values is None else array_store.put(f"{name}-end", values)
            for name, values in scores.items()
        }
        rest = {"session": self.session, "assessed": self.assessed}
        opened = None if self.opened is None else _kept(self.opened, array_store)
        record = {"run": record_of(self.run), **kept, **rest, "opened": opened}
        return json.dumps(record).encode()

    @classmethod
    def from_bytes(
        cls, data: bytes, array_store: ArrayStore = INLINE, scratch: Scratch = MEMORY
    ) -> FinishedTraining:
        """Reads the record back; ``scratch`` holds the arrays of all passes."""
        values = json.loads(data)
        train, held_out = (
            None if kept is None else array_store.get(kept)()
            for kept in (values["train"], values["held_out"])
        )
        run, session = read(PartyRun, values["run"]), values.get("session", "")
        # A record of an earlier version has none.
        kept = values.get("opened")
        opened = None if kept is None else _restored(kept, array_store, scratch)
        return cls(run, train, held_out, session, values["assessed"], opened)


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


def _restored(kept: dict[str, Any], array_store: ArrayStore, scratch: Scratch) -> OpenedPasses:
    loads = [[array_store.get(one) for one in kept[kind]] for kind in ("direction", "opened")]
    directions, scores = (_filled(one, scratch) for one in loads)
    return OpenedPasses(tuple(directions), tuple(integers_of(scores)), *kept["bits"])


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
    arrived = assess_convergence(losses)
    run = replace(
        run,
        metrics=replace(run.metrics, train=_figures(finished.train_scores, labels.values, shift)),
        converged=arrived.converged,
        converged_reason=arrived.reason,
        diverged=arrived.diverged,
        last_change=arrived.last_change,
    )
    held_out, truth, scores = tables.held_out, tables.held_out_labels, finished.held_out_scores
    if held_out is None or truth is None or scores is None:
        return run
    alone = LabelPartyBaseline.fit(tables.train, labels, terms, entropy).scores(held_out)
    return replace(
        run,
        metrics=replace(run.metrics, held_out=_figures(scores, truth.values, shift)),
        bob_alone=_figures(alone, truth.values, shift),
        partner_adds=added_auc(np.nan_to_num(scores), alone, truth.values),
    )


def _figures(scores: FloatArray | None, labels: LabelArray, shift: float) -> Metrics | None:
    # What is no number becomes one: a model that diverged is worth what its figures say.
    return None if scores is None else evaluate(np.nan_to_num(scores), labels, shift)
