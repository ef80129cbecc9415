"""Alice's side of a prediction: she gives scores, and learns none."""

from __future__ import annotations

from dataclasses import dataclass, replace

from taciturn.crypto.signatures import SigningIdentity
from taciturn.data.tables import FeatureTable
from taciturn.engine.callbacks import Callbacks
from taciturn.jobs.base import Consent, SessionFacts
from taciturn.jobs.predict.side import Answer, Predicted, PredictionSide
from taciturn.party.consent.budget import Charge
from taciturn.party.consent.score_budget import ScoreBudget
from taciturn.party.consent.scored_rows import RowOpening
from taciturn.party.log import Log
from taciturn.protocol.alice.group import join_group
from taciturn.protocol.alice.scoring import answer_rows, score_responder
from taciturn.protocol.events import ScoresDue
from taciturn.protocol.masks import NO_MASKS
from taciturn.protocol.model_name import meet
from taciturn.protocol.steps import Program, emit
from taciturn.rng import Entropy

LEARNT = (
    "no score, no label and nothing about the peer's columns; only which of these rows it asked "
    "for, how many rows it has in total, and when"
)


@dataclass(slots=True)
class FeatureSide(PredictionSide):
    """Alice's side; ``identity`` is what one of several Alices signs with."""

    identity: SigningIdentity | None = None
    budget: ScoreBudget | None = None

    @property
    def consent(self) -> Consent[ScoresDue]:
        """Charge for the scored rows, before her scores are sent."""
        return Consent(ScoresDue, self._charge)

    def begin(self, log: Log, callbacks: Callbacks) -> None:
        """Let the budget log that it waits for another program."""
        if self.budget is not None:
            store = replace(self.budget.store, announce=log)
            self.budget = replace(self.budget, store=store)

    def _charge(self, event: ScoresDue) -> None:
        if self.budget is not None:
            # Those alone that are scored: of the others the peer learns no number.
            opening = RowOpening(models=(self.used.name.session,))
            self.budget.charge(Charge(((event.ids, opening),)))

    def score(self, table: FeatureTable, entropy: Entropy) -> Program[None]:
        """Give Bob the scores of these rows."""
        used, masks = self.used, NO_MASKS
        yield from meet("alice", used.name, table)
        if used.parties:
            name, columns = used.name.canonical(), len(table.columns)
            pairwise_masks = yield from join_group(
                used.parties, name, self.identity, entropy, columns, 0
            )
            masks = pairwise_masks.masks.fork("prediction")
        yield from emit(ScoresDue(table.ids))
        weights, key = used.model.weights, used.noise_key
        offset = used.model.offset
        responder = score_responder(weights, *used.shares, key, used.terms, entropy, offset)
        yield from answer_rows(responder, table, masks)

    def conclude(self, outcome: Predicted, session: SessionFacts) -> Answer:
        """The result, without scores."""
        return Answer(replace(self.result(outcome, session), learnt=LEARNT))
