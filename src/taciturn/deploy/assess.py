"""What Bob makes of a training that has ended: figures, what the partner adds, whether it arrived.

All of it depends on labels. So it is computed when the last word has been said and the way to the
peer is closed: nothing that the peer can see, not even a time, depends on it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import numpy as np

from taciturn.arrays import FloatArray, LabelArray
from taciturn.deploy.tables import PartyTables
from taciturn.numerics.convergence import arrival
from taciturn.numerics.metrics import Metrics, added_auc, evaluate
from taciturn.protocol.party import PartyResult
from taciturn.protocol.state import IN_TEXT, Shelf
from taciturn.protocol.terms import Terms
from taciturn.results.parties import PartyRun
from taciturn.results.serialise import read, record_of
from taciturn.rng import Entropy


@dataclass(frozen=True, slots=True)
class Ended:
    """A training after its last word, for the journal: a stop must not lose what is to be assessed.

    Args:
        run: What this side has so far.
        train_scores: Those of the training rows, where Bob has them and has yet to assess them.
        held_out_scores: Likewise of held-out rows.
        session: The name that its model's file has.
        assessed: Whether nothing is left to do.
    """

    run: PartyRun
    train_scores: FloatArray | None = field(default=None, repr=False)
    held_out_scores: FloatArray | None = field(default=None, repr=False)
    session: str = ""
    assessed: bool = True

    @classmethod
    def of(cls, run: PartyRun, result: PartyResult, session: str) -> Ended:
        """The end of a program; at Alice there is nothing to assess."""
        bobs = run.identity.role == "bob"
        return cls(run, result.train_scores, result.held_out_scores, session, assessed=not bobs)

    def to_bytes(self, shelf: Shelf = IN_TEXT) -> bytes:
        """The record.

        Args:
            shelf: Where long arrays are kept.
        """
        scores = {"train": self.train_scores, "held_out": self.held_out_scores}
        kept = {
            name: None if values is None else shelf.put(f"{name}-end", values)
            for name, values in scores.items()
        }
        rest = {"session": self.session, "assessed": self.assessed}
        return json.dumps({"run": record_of(self.run), **kept, **rest}).encode()

    @classmethod
    def of_bytes(cls, data: bytes, shelf: Shelf = IN_TEXT) -> Ended:
        """Reads the record back.

        Raises:
            StateError: A long array is not there, or not what it was.
        """
        values = json.loads(data)
        train, held_out = (
            None if kept is None else shelf.get(kept)()
            for kept in (values["train"], values["held_out"])
        )
        run, session = read(PartyRun, values["run"]), values.get("session", "")
        return cls(run, train, held_out, session, values["assessed"])


def assess(ended: Ended, tables: PartyTables, terms: Terms, coins: Entropy) -> PartyRun:
    """Bob's result, complete.

    Args:
        ended: His training.
        tables: His rows and labels.
        terms: The agreement in use.
        coins: His coins.
    """
    # Bob alone has labels, and only he loads his programs.
    from taciturn.protocol.bob.alone import AloneModel

    labels, run = tables.labels, ended.run
    if labels is None:
        return run
    shift = terms.log_odds_shift
    losses = [point.train_loss for point in run.run.curve if point.train_loss is not None]
    arrived = arrival(losses)
    run = replace(
        run,
        metrics=replace(run.metrics, train=_figures(ended.train_scores, labels.values, shift)),
        converged=arrived.converged,
        converged_reason=arrived.reason,
        diverged=arrived.diverged,
        last_change=arrived.last_change,
    )
    held_out, truth, scores = tables.held_out, tables.held_out_labels, ended.held_out_scores
    if held_out is None or truth is None or scores is None:
        return run
    alone = AloneModel.fit(tables.train, labels, terms, coins).scores(held_out)
    return replace(
        run,
        metrics=replace(run.metrics, held_out=_figures(scores, truth.values, shift)),
        bob_alone=_figures(alone, truth.values, shift),
        partner_adds=added_auc(np.nan_to_num(scores), alone, truth.values),
    )


def _figures(scores: FloatArray | None, labels: LabelArray, shift: float) -> Metrics | None:
    # What is no number becomes one: a model that diverged is worth what its figures say.
    return None if scores is None else evaluate(np.nan_to_num(scores), labels, shift)
