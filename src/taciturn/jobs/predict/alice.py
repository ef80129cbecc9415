"""Alice's side of a prediction, once the rows are found."""

from __future__ import annotations

from taciturn.crypto.signatures import Identity
from taciturn.data.tables import FeatureTable
from taciturn.party.used_model import UsedModel
from taciturn.protocol.alice import predict, predict_mutual, predict_sealed
from taciturn.protocol.alice.circle import join_circle
from taciturn.protocol.circle import NO_MASKS
from taciturn.protocol.events import ScoresDue
from taciturn.protocol.prediction import meet, whitened_rows
from taciturn.protocol.steps import Program, emit
from taciturn.rng import Entropy


def answer(
    used: UsedModel, table: FeatureTable, entropy: Entropy, identity: Identity | None
) -> Program[None]:
    """Give Bob the scores of these rows; ``identity`` is what one of several Alices signs with."""
    terms, name, masks = used.terms, used.name, NO_MASKS
    yield from meet("alice", name, table)
    if used.parties:
        columns = len(table.columns)
        circle = yield from join_circle(
            used.parties, name.canonical(), identity, entropy, columns, 0
        )
        masks = circle.masks.fork("prediction")
    yield from emit(ScoresDue(table.ids))
    if not used.model.sealed:
        yield from predict.predict(
            table, used.model.weights, used.noise_key, terms.score_grid, masks
        )
        return
    share = used.alice_share
    if terms.mechanism.shares_scores:
        theirs = used.bob_share
        yield from predict_mutual.predict(table, share, theirs, used.noise_key, terms, entropy)
        return
    yield from predict_sealed.predict(
        whitened_rows(table, share.whitening),
        share.values,
        terms,
        share.scales,
        used.noise_key,
        entropy,
        share.magnitude_bits,
        masks,
    )
