"""Alice's side of ``hybrid``: the batch hides in a subset, behind a randomised response.

::

    Alice                                            Bob
                                                <-   KeyOffer
      each iteration:
                                                <-   HiddenBatchOffer    S, RR(m)
      PartialScores        X_A w_A, RR(m) = 1   ->
                                                <-   EncryptedResidues   <r'>, zero off the batch
      MaskedGradient       <X_A^T r' + xi>      ->
                                                <-   RevealedGradient    X_A^T r' + xi
      takes xi off, updates w_A

[Tan22, Table I]. ``r' = (batch_size / k) r`` on the k rows of the true batch: Alice divides by the
agreed batch size, gets the mean over the true batch, and is not told k.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import BoolArray, IndexArray
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.protocol.alice.held_out import report
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.opening import greet, with_key
from taciturn.protocol.alice.train_revealed import unmasked_product
from taciturn.protocol.events import Boundary
from taciturn.protocol.messages import HiddenBatchOffer, PartialScores
from taciturn.protocol.observations import GradientSeen, HiddenBatchSeen
from taciturn.protocol.outcome import StopReason, Trained
from taciturn.protocol.scores import at_scale, require_finite
from taciturn.protocol.steps import Program, emit, receive_at, send
from taciturn.protocol.terms import Terms


def train(inputs: AliceInputs) -> Program[Trained]:
    """Trains Alice's weights, one per column."""
    features, terms = inputs.features, inputs.terms
    state = inputs.resume or (yield from greet(inputs, magnitude_bits(features.largest)))
    state, key = yield from with_key(inputs, state)

    rate, penalty, grid = terms.rate, terms.penalty, terms.feature_grid
    batch_size, per_epoch = terms.agreement.sgd.batch_size, terms.per_epoch(features.rows)
    iterations = terms.iterations(features.rows)
    weights = state.weights
    for iteration in range(state.iteration, iterations):
        yield from emit(Boundary(state.at(iteration, weights)))
        subset, response = yield from _offer(iteration, features.rows, terms)
        yield from emit(HiddenBatchSeen(iteration, subset, response))
        asked = subset[response]
        rows = features.values.take(asked, axis=0)
        scores = require_finite(at_scale(rows @ weights, terms.score_grid))
        yield from send(PartialScores(iteration, scores))
        matrix = key.prepare(grid.nearest(rows).T)
        total = yield from unmasked_product(key, matrix, iteration, inputs.entropy)
        epoch, ends_epoch = iteration // per_epoch, (iteration + 1) % per_epoch == 0
        yield from emit(GradientSeen(iteration, epoch, asked, weights, total, float(batch_size)))
        step = terms.product_grid.decode(total) / -batch_size + penalty.gradient(weights)
        weights = weights - rate.at(iteration) * step
        if ends_epoch and (yield from report(inputs, weights, iteration)):
            return Trained(weights, iteration + 1, StopReason.PEER)
    return Trained(weights, iterations)


def _offer(iteration: int, rows: int, terms: Terms) -> Program[tuple[IndexArray, BoolArray]]:
    offer = yield from receive_at(HiddenBatchOffer, iteration)
    subset, bits = offer.subset, offer.response.value
    if len(subset) != terms.agreement.subset_size or len(bits) != len(subset):
        raise RemoteProtocolError(
            f"the peer's subset has {len(subset)} rows and its response {len(bits)}, "
            f"where {terms.agreement.subset_size} are agreed"
        )
    if subset.max(initial=0) >= rows:
        raise RemoteProtocolError(f"the peer's subset names a row beyond the {rows} there are")
    if not np.isin(bits, (0, 1)).all() or not bits.any():
        raise RemoteProtocolError("the peer's response is not of zeros and ones, or has no one")
    if bits.sum() < terms.agreement.sgd.minimum_batch:
        raise RemoteProtocolError(
            f"the peer asks for the scores of {bits.sum()} rows, below the agreed minimum of "
            f"{terms.agreement.sgd.minimum_batch}"
        )
    return subset, bits.astype(bool)
