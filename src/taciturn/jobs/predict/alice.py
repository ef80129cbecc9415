"""Alice's side of a prediction, once the rows are found."""

from __future__ import annotations

from taciturn.crypto.signatures import Identity
from taciturn.data.tables import FeatureTable
from taciturn.party.used_model import UsedModel
from taciturn.protocol.alice.circle import join_circle
from taciturn.protocol.alice.scoring import answer_rows, score_responder
from taciturn.protocol.circle import NO_MASKS
from taciturn.protocol.events import ScoresDue
from taciturn.protocol.prediction import meet
from taciturn.protocol.steps import Program, emit
from taciturn.rng import Entropy


def answer(
    used: UsedModel, table: FeatureTable, entropy: Entropy, identity: Identity | None
) -> Program[None]:
    """Give Bob the scores of these rows; ``identity`` is what one of several Alices signs with."""
    name, masks = used.name, NO_MASKS
    yield from meet("alice", name, table)
    if used.parties:
        columns = len(table.columns)
        circle = yield from join_circle(
            used.parties, name.canonical(), identity, entropy, columns, 0
        )
        masks = circle.masks.fork("prediction")
    yield from emit(ScoresDue(table.ids))
    weights, key = used.model.weights, used.noise_key
    responder = score_responder(weights, *used.shares, key, used.terms, entropy)
    yield from answer_rows(responder, table, masks)
