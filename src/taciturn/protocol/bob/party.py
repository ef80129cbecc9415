"""Bob's whole part in a training: its conversation, the scores, and how good the model is.

The chart stands in ``taciturn.protocol.party``. A conversation has one line in ``TRAININGS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from taciturn.arrays import EVERY_ROW, FloatArray
from taciturn.data.tables import FeatureTable
from taciturn.errors import RemoteProtocolError
from taciturn.privacy.base import Mechanism
from taciturn.privacy.quality_release import TOLD, ToldQuality, release, told_quality
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.scoring import ask_rows, score_requester
from taciturn.protocol.events import HeldOutDecided
from taciturn.protocol.handshake import PeerTable
from taciturn.protocol.messages import HeldOutQuality, HeldOutScoring
from taciturn.protocol.outcome import BobTrained
from taciturn.protocol.party import Conversations, PartyResult, compare_held_out
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, emit, gather, receive, send_all
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


def tell(inputs: BobInputs[Mechanism], scores: FloatArray | None) -> Program[ToldQuality | None]:
    """Sends the agreed metrics on the held-out rows, and returns them."""
    agreed, held_out = inputs.terms.agreement, inputs.held_out
    if agreed.share_metrics != "quality" or scores is None or held_out is None:
        return None
    epsilon, entropy = agreed.metrics_epsilon, inputs.entropy.fork("told quality")
    quality = release(scores, held_out.labels.values, epsilon, entropy)
    if epsilon is None:
        inputs.ledger.taint(TOLD)
    inputs.ledger.charge(quality.event, EVERY_ROW)
    yield from send_all(inputs.partners, HeldOutQuality(quality))
    return told_quality(quality.value, held_out.labels.rows, epsilon)


# Any: the mechanism's own type. Each program names the narrow one that it needs, and a mechanism
# names the conversation that suits it.
Training: TypeAlias = Callable[[BobInputs[Any]], Program[BobTrained]]
"""Bob's program of a training; begins, or resumes from a state."""

TRAININGS: Mapping[str, Training] = Conversations(
    "taciturn.protocol.bob",
    {
        "revealed": "train_revealed",
        "residues": "train_residues",
        "hidden-batch": "train_hidden_batch",
        "revealed-table": "train_table_revealed",
        "sealed-table": "train_table_sealed",
        "mutual-table": "train_table_mutual",
    },
)


def bob_program(inputs: BobInputs[Mechanism]) -> Program[PartyResult]:
    """From the first word to the last; he learns his weights, and the scores."""
    held_out = None if inputs.held_out is None else inputs.held_out.features
    names, terms, opened = inputs.partners, inputs.terms, inputs.opens_held_out
    if inputs.resume is None:
        yield from gather({name: compare_held_out("bob", terms, held_out) for name in names})
        opened = yield from _hear_scoring(inputs)
    if not opened:
        held_out, inputs = None, replace(inputs, held_out=None)
    trained = yield from TRAININGS[terms.conversation](inputs)
    if terms.summed is not None:
        # Imported here: only the trainings of a study open no score at all.
        from taciturn.protocol.bob.row_sums import loss_share

        return PartyResult(trained, loss_share=(yield from loss_share(inputs, trained)))
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


def _hear_scoring(inputs: BobInputs[Mechanism]) -> Program[bool]:
    """Whether Alice will open scores of the held-out rows."""
    if inputs.held_out is None or not inputs.terms.may_withhold_scores:
        return True
    (name,) = inputs.partners
    answers = yield from gather({name: receive(HeldOutScoring)})
    opened = answers[name].opened
    if opened not in (0, 1):
        raise RemoteProtocolError("the peer does not say whether it opens scores of held-out rows")
    yield from emit(HeldOutDecided(bool(opened)))
    return bool(opened)


def dry_run(
    terms: Terms,
    features: FeatureTable,
    held_out: FeatureTable | None,
    peer: PeerTable,
    names: tuple[str, ...],
    entropy: Entropy,
) -> Program[TrainingState]:
    """The greetings of several Alices, without training; checks that all sides fit."""
    yield from gather({name: compare_held_out("bob", terms, held_out) for name in names})
    # Imported here: Bob greets one Alice by her conversation.
    from taciturn.protocol.bob.opening import open_all

    return (yield from open_all(terms, features, peer, names, entropy))
