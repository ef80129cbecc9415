"""Bob's whole part in a training. The chart stands in ``taciturn.protocol.party``."""

from __future__ import annotations

from dataclasses import replace

from taciturn.data.tables import FeatureTable
from taciturn.privacy.base import Mechanism
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.opening import open_all
from taciturn.protocol.bob.quality import tell
from taciturn.protocol.bob.registry import TRAININGS
from taciturn.protocol.bob.scoring import ask_rows, score_requester
from taciturn.protocol.concurrent import gather
from taciturn.protocol.handshake import PeerTable
from taciturn.protocol.party import PartyResult, compare_held_out
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


def bob_program(inputs: BobInputs[Mechanism]) -> Program[PartyResult]:
    """From the first word to the last; he learns his weights, and the scores."""
    held_out = None if inputs.held_out is None else inputs.held_out.features
    names, terms = inputs.partners, inputs.terms
    if inputs.resume is None:
        yield from gather({name: compare_held_out("bob", held_out) for name in names})
    trained = yield from TRAININGS[terms.conversation](inputs)
    results = []
    for number, model in enumerate((trained, *trained.further)):
        entropy = inputs.entropy.fork("held out" if number == 0 else f"held out, model {number}")
        requester = score_requester(
            model.weights,
            model.share,
            model.bob_share,
            terms,
            entropy,
            names,
            model.group_shape.widths,
        )
        scores = held_out_scores = None
        # From shares training rows are not scored: each score costs an encrypted product.
        if model.share is None:
            scores = (yield from ask_rows(requester, inputs.features)).scores
        if held_out is not None:
            held_out_scores = (yield from ask_rows(requester, held_out)).scores
        results.append(PartyResult(model, scores, held_out_scores))
    quality = yield from tell(inputs, results[0].held_out_scores)
    return replace(results[0], quality=quality, further=tuple(results[1:]))


def dry_run(
    terms: Terms,
    features: FeatureTable,
    held_out: FeatureTable | None,
    peer: PeerTable,
    names: tuple[str, ...],
    entropy: Entropy,
) -> Program[TrainingState]:
    """The greetings of several Alices, without training; checks that all sides fit."""
    yield from gather({name: compare_held_out("bob", held_out) for name in names})
    return (yield from open_all(terms, features, peer, names, entropy))
