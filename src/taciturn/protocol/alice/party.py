"""Alice's whole part in a training: its conversation, the scores, and how good the model is.

The chart stands in ``taciturn.protocol.party``. A conversation has one line in ``TRAININGS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from taciturn.errors import RemoteProtocolError
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.numerics.whitening import centring_offset
from taciturn.privacy.quality_release import ToldQuality, release_event, told_quality
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.scoring import answer_rows, score_responder
from taciturn.protocol.events import HeldOutDecided
from taciturn.protocol.masks import masks_of
from taciturn.protocol.messages import HeldOutQuality, HeldOutScoring
from taciturn.protocol.observations import QualityTold
from taciturn.protocol.outcome import Trained
from taciturn.protocol.party import Conversations, PartyResult, compare_held_out
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, emit, persist, receive, send
from taciturn.protocol.table_shape import table_sizes


def hear(inputs: AliceInputs, iterations: int) -> Program[ToldQuality | None]:
    """Receives the metrics on the held-out rows, where that is agreed."""
    agreed, held_out = inputs.terms.agreement, inputs.held_out
    if agreed.share_metrics != "quality" or held_out is None:
        return None
    message = yield from receive(HeldOutQuality)
    steps, epsilon = message.quality, agreed.metrics_epsilon
    quality = told_quality(steps.value, held_out.rows, epsilon)
    if quality is None or steps.event != release_event(epsilon):
        raise RemoteProtocolError("the peer's metrics of the model are not those that were agreed")
    yield from emit(QualityTold(iterations, quality))
    return quality


Training: TypeAlias = Callable[[AliceInputs], Program[Trained]]
"""Alice's program of a training; begins, or resumes from a state."""

TRAININGS: Mapping[str, Training] = Conversations(
    "taciturn.protocol.alice",
    {
        "revealed": "train_revealed",
        "residues": "train_residues",
        "hidden-batch": "train_hidden_batch",
        "revealed-table": "train_table_revealed",
        "sealed-table": "train_table_sealed",
        "mutual-table": "train_table_mutual",
    },
)


def alice_program(inputs: AliceInputs) -> Program[PartyResult]:
    """Alice's whole training: she learns her weights, or her share, and the agreed quality."""
    terms, opened = inputs.terms, inputs.opens_held_out
    if inputs.resume is None:
        yield from compare_held_out("alice", terms, inputs.held_out)
        opened = yield from _announce_scoring(inputs)
    if not opened:
        inputs = replace(inputs, held_out=None)
    trained = yield from TRAININGS[terms.conversation](inputs)
    if terms.summed is not None:
        # Imported here: only the trainings of a study open no score at all.
        from taciturn.protocol.alice.row_sums import loss_share

        share = yield from loss_share(inputs, trained)
        return PartyResult(trained, loss_share=share, noise_key=inputs.noise_key)
    models = (trained, *trained.further)
    for number, model in enumerate(models):
        yield from _answer_scores(inputs, model, "" if number == 0 else f", model {number}")
    quality = yield from hear(inputs, trained.iterations)
    result, *further = (
        PartyResult(model, quality=quality, noise_key=inputs.noise_key) for model in models
    )
    return replace(result, further=tuple(further))


def _announce_scoring(inputs: AliceInputs) -> Program[bool]:
    """Tell Bob whether the held-out rows will be scored; a replay says the same again."""
    if inputs.held_out is None or not inputs.terms.may_withhold_scores:
        return True
    answer = yield from persist(bytes([inputs.opens_held_out]))
    opened = answer == bytes([True])
    yield from send(HeldOutScoring(int(opened)))
    yield from emit(HeldOutDecided(opened))
    return opened


def _answer_scores(inputs: AliceInputs, trained: Trained, model: str) -> Program[None]:
    """Her part of the scores of a model; ``model`` keeps entropy and masks of several apart."""
    terms, held_out = inputs.terms, inputs.held_out
    parties, key = terms.agreement.parties, inputs.noise_key
    masks = None if parties is None else masks_of(trained.pairwise_masks, parties)
    share, bobs = trained.share, trained.bob_share
    if share is not None and bobs is None:
        # The size that Bob hears here is that of the held-out rows, whatever the training's was.
        share = replace(share, magnitude_bits=0)
    entropy = inputs.entropy.fork(f"held out{model}")
    offset = centring_offset(trained.weights, trained.means) if share is None else 0.0
    responder = score_responder(trained.weights, share, bobs, key, terms, entropy, offset)
    # From shares training rows are not scored: each score costs an encrypted product.
    if share is None:
        yield from answer_rows(responder, inputs.features, masks and masks.fork("training rows"))
    if held_out is not None:
        yield from answer_rows(responder, held_out, masks and masks.fork(f"held-out rows{model}"))


def dry_run(inputs: AliceInputs) -> Program[TrainingState]:
    """The greetings of one of several Alices, without training; checks that all sides fit."""
    yield from compare_held_out("alice", inputs.terms, inputs.held_out)
    # Imported here: one Alice greets Bob by herself.
    from taciturn.protocol.alice.opening import greet

    table, terms = inputs.features, inputs.terms
    sizes = table_sizes(table.values, terms.means_of(table.values)) if terms.whole_table else ()
    return (yield from greet(inputs, *(sizes or (magnitude_bits(table.largest),))))
