"""Bob's whole part in a training. The chart stands in ``taciturn.protocol.party``."""

from __future__ import annotations

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable
from taciturn.privacy.base import Mechanism
from taciturn.protocol.bob import predict, predict_mutual, predict_sealed
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.opening import open_all
from taciturn.protocol.bob.partners import Partners
from taciturn.protocol.bob.quality import tell
from taciturn.protocol.bob.registry import TRAININGS
from taciturn.protocol.handshake import PeerTable
from taciturn.protocol.outcome import BobTrained, WeightShare
from taciturn.protocol.party import PartyResult, compare_held_out
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms
from taciturn.protocol.together import together
from taciturn.rng import Entropy


def bob_program(inputs: BobInputs[Mechanism]) -> Program[PartyResult]:
    """From the first word to the last; he learns his weights, and the scores."""
    held_out = None if inputs.held_out is None else inputs.held_out.features
    names, terms = inputs.partners, inputs.terms
    if inputs.resume is None:
        yield from together({name: compare_held_out("bob", held_out) for name in names})
    trained = yield from TRAININGS[terms.conversation](inputs)
    if trained.share is not None:
        scores = yield from _from_shares(inputs, trained, trained.share)
        return PartyResult(trained, None, scores, (yield from tell(inputs, scores)))
    grid = terms.score_grid
    scores = yield from predict.predict(inputs.features, trained.weights, names, grid)
    if held_out is None:
        return PartyResult(trained, scores)
    held_out_scores = yield from predict.predict(held_out, trained.weights, names, grid)
    quality = yield from tell(inputs, held_out_scores)
    return PartyResult(trained, scores, held_out_scores, quality)


def dry_run(
    terms: Terms,
    features: FeatureTable,
    held_out: FeatureTable | None,
    peer: PeerTable,
    names: tuple[str, ...],
    entropy: Entropy,
) -> Program[TrainingState]:
    """The greetings of several Alices, without training; checks that all sides fit."""
    yield from together({name: compare_held_out("bob", held_out) for name in names})
    return (yield from open_all(terms, features, peer, names, entropy))


def _from_shares(
    inputs: BobInputs[Mechanism], trained: BobTrained, share: WeightShare
) -> Program[FloatArray | None]:
    """Scores of held-out rows alone: each costs an encrypted product."""
    if inputs.held_out is None:
        return None
    coins = inputs.entropy.fork("held out")
    if trained.bob_share is not None:
        rows, own = inputs.held_out.features, trained.bob_share
        return (yield from predict_mutual.predict(rows, share, own, inputs.terms, coins)).scores
    scored = yield from predict_sealed.predict(
        inputs.held_out.features,
        trained.weights,
        share.values,
        inputs.terms,
        share.scales,
        coins,
        Partners.of(inputs.partners, trained.company.widths or (len(share.values),)),
    )
    return scored.scores
