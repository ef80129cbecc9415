"""Bob's side of a prediction: he learns the scores."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from taciturn.data.tables import FeatureTable
from taciturn.jobs.base import SessionFacts
from taciturn.jobs.predict.side import Answer, Predicted, PredictionSide
from taciturn.numerics.threshold import Threshold, even_odds
from taciturn.protocol.bob.group import form_group
from taciturn.protocol.bob.scoring import ask_rows, score_requester
from taciturn.protocol.model_name import meet
from taciturn.protocol.prediction import Scored
from taciturn.protocol.steps import ONLY, Program, gather
from taciturn.rng import Entropy


@dataclass(slots=True)
class LabelSide(PredictionSide):
    """Bob's side; above ``threshold`` the class is 1."""

    threshold: Threshold = field(default_factory=even_odds)

    def score(self, table: FeatureTable, entropy: Entropy) -> Program[Scored]:
        """The scores of these rows, from all Alices."""
        used, names = self.used, tuple(self.used.parties) or (ONLY,)
        hellos = yield from gather({peer: meet("bob", used.name, table) for peer in names})
        if used.parties:
            yield from form_group(used.parties, used.name.canonical(), hellos, entropy)
        weights, widths = used.model.weights, used.widths
        requester = score_requester(weights, *used.shares, used.terms, entropy, names, widths)
        return (yield from ask_rows(requester, table))

    def conclude(self, outcome: Predicted, session: SessionFacts) -> Answer:
        """The result, and the scores in the order of Bob's file."""
        result, scored = self.result(outcome, session), outcome.scored
        if scored is None:
            return Answer(result)
        result = replace(
            result,
            suspected_wraps=scored.suspected_wraps,
            meaning=self.used.meaning_with(self.rows.exposure is not None),
            threshold=self.threshold if self.used.has_classes else None,
        )
        order = np.argsort(outcome.rows)
        places = outcome.rows[order]
        ids = tuple(self.rows.own_ids.take(places).series.to_list())
        exposure = None if self.rows.exposure is None else self.rows.exposure[places]
        return Answer(result, ids, scored.scores[order], self.used, exposure)
