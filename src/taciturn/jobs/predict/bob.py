"""Bob's side of a prediction, once the rows are found."""

from __future__ import annotations

from taciturn.data.tables import FeatureTable
from taciturn.party.used_model import UsedModel
from taciturn.protocol.bob import predict, predict_mutual, predict_sealed
from taciturn.protocol.bob.circle import gather_circle
from taciturn.protocol.bob.partners import Partners
from taciturn.protocol.prediction import Scored, meet
from taciturn.protocol.steps import ONLY, Program
from taciturn.protocol.together import together
from taciturn.rng import Entropy


def ask(used: UsedModel, table: FeatureTable, entropy: Entropy) -> Program[Scored]:
    """The scores of these rows, from all Alices."""
    terms, weights, name = used.terms, used.model.weights, used.name
    names = tuple(used.parties) or (ONLY,)
    hellos = yield from together({peer: meet("bob", name, table) for peer in names})
    if used.parties:
        yield from gather_circle(used.parties, name.canonical(), hellos, entropy)
    if not used.model.sealed:
        return Scored((yield from predict.predict(table, weights, names, terms.score_grid)))
    share = used.alice_share
    if terms.mechanism.shares_scores:
        return (yield from predict_mutual.predict(table, share, used.bob_share, terms, entropy))
    return (
        yield from predict_sealed.predict(
            table,
            weights,
            share.values,
            terms,
            share.scales,
            entropy,
            Partners.of(names, used.widths),
        )
    )
