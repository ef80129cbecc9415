"""Alice's whole part in a training. The chart stands in ``taciturn.protocol.party``."""

from __future__ import annotations

from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.protocol.alice import predict, predict_mutual, predict_sealed
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.opening import greet
from taciturn.protocol.alice.quality import hear
from taciturn.protocol.alice.registry import TRAININGS
from taciturn.protocol.circle import masks_of
from taciturn.protocol.party import PartyResult, compare_held_out
from taciturn.protocol.prediction import whitened_rows
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program
from taciturn.protocol.table_shape import table_sizes


def alice_program(inputs: AliceInputs) -> Program[PartyResult]:
    """Alice's whole training: she learns her weights, or her share, and the agreed quality."""
    terms, held_out = inputs.terms, inputs.held_out
    if inputs.resume is None:
        yield from compare_held_out("alice", held_out)
    trained = yield from TRAININGS[terms.conversation](inputs)
    masks, key = masks_of(trained.circle, terms.agreement.parties), inputs.noise_key
    if trained.share is None:
        grid, weights = terms.score_grid, trained.weights
        yield from predict.predict(inputs.features, weights, key, grid, masks.fork("training rows"))
        if held_out is not None:
            yield from predict.predict(held_out, weights, key, grid, masks.fork("held-out rows"))
    elif trained.bob_share is not None and held_out is not None:
        hers, his = trained.share, trained.bob_share
        coins = inputs.entropy.fork("held out")
        yield from predict_mutual.predict(held_out, hers, his, key, terms, coins)
    elif held_out is not None:
        # Training rows are not scored: each score from shares costs an encrypted product.
        share, coins = trained.share, inputs.entropy.fork("held out")
        rows = whitened_rows(held_out, share.whitening)
        yield from predict_sealed.predict(
            rows, share.values, terms, share.scales, key, coins, masks=masks.fork("held-out rows")
        )
    quality = yield from hear(inputs, trained.iterations)
    return PartyResult(trained, quality=quality, noise_key=key)


def dry_run(inputs: AliceInputs) -> Program[TrainingState]:
    """The greetings of one of several Alices, without training; checks that all sides fit."""
    yield from compare_held_out("alice", inputs.held_out)
    table = inputs.features
    sizes = table_sizes(table.values) if inputs.terms.whole_table else ()
    return (yield from greet(inputs, *(sizes or (magnitude_bits(table.largest),))))
