"""Reference for a simulated run: centralised training with the same solver, without noise.

Weights that stay shared: a simulation has all shares at hand, and puts them together.

No party can. The weights that two shares make serve the comparison with centralised training
and the metrics; the parties themselves predict from their shares (``protocol.alice.scoring``), with
their features rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np

from taciturn.arrays import FloatArray, IndexArray, IntArray
from taciturn.data.split import VerticalData
from taciturn.data.tables import FeatureTable
from taciturn.jobs.train.model_quality import model_metrics
from taciturn.numerics.likelihood import response_likelihood, weighted_likelihood
from taciturn.numerics.optimum import optimum, penalised_loss
from taciturn.numerics.row_changes import RowChanges
from taciturn.numerics.sgd import train_centralised
from taciturn.numerics.table_schedule import TableSchedule
from taciturn.numerics.whole_table import fit_in_clear, fit_on_schedule
from taciturn.privacy.base import given
from taciturn.privacy.model_release import ModelRelease
from taciturn.privacy.registry import mechanism
from taciturn.protocol.joint_seed import block_order
from taciturn.protocol.mutual_table import heaviest_of, usual_sigmoid
from taciturn.protocol.outcome import BobTrained, Trained, WeightShare
from taciturn.protocol.scales import Scales
from taciturn.protocol.table_shape import model_release_of
from taciturn.protocol.terms import Terms
from taciturn.results.training import (
    Comparison,
    Optimum,
    ReleasedModel,
    SharedScores,
    SharedWeights,
)

_STACK_ENTRIES = 1 << 20
# Larger tables are compared with the optimum only where that is asked for.
_COMPARED_COLUMNS, _COMPARED_VALUES = 1_000, 50_000_000


def compare(
    data: VerticalData,
    terms: Terms,
    batches: Sequence[IndexArray],
    weights: FloatArray,
    seed: bytes,
    wanted: bool | None = None,
) -> Comparison:
    """Trains centrally on the same batches with the true labels, and compares.

    ``seed`` is the parties' joint one, which blocks of rows are drawn from. ``wanted`` is whether
    whole tables are compared; None for those that are not large.
    """
    if terms.whole_table:
        rows, columns = data.labels_train.rows, len(weights) - data.bob_train.free
        small = columns <= _COMPARED_COLUMNS and rows * columns <= _COMPARED_VALUES
        if not (small if wanted is None else wanted):
            return Comparison()
        return _compare_optimum(data, terms, weights, seed)
    features = _joined(data.alice_train.values, data.bob_train.values)
    reference = train_centralised(
        features,
        data.labels_train.values,
        batches,
        terms.rate,
        terms.penalty,
        data.bob_train.free,
        terms.agreement.class_weight,
    )
    scores = _joined(data.alice_test.values, data.bob_test.values) @ reference
    method = mechanism(terms.agreement)
    contracts = (
        method.lossless
        and terms.penalty.l1 == 0
        and terms.rate.at(0) * steepest(features, batches, terms.agreement.l2) <= 2
    )
    return Comparison(
        centralised=model_metrics(scores, data.labels_test, terms),
        max_weight_difference=float(np.max(np.abs(weights - reference))),
        weight_bound=(
            fixed_point_bound(terms, data.alice_train, features, len(batches))
            if contracts
            else None
        ),
    )


def _compare_optimum(
    data: VerticalData, terms: Terms, weights: FloatArray, seed: bytes
) -> Comparison:
    """The same solver in clear, with the true labels; and how far the model is from the best."""
    agreed, free = terms.agreement, data.bob_train.free
    weighted = partial(weighted_likelihood, class_weight=agreed.class_weight)
    true = response_likelihood(data.labels_train, weighted)
    alice, bob = data.alice_train.values, data.bob_train.values
    if terms.shares_scores:
        truth = data.labels_train
        blocks = TableSchedule(truth.rows, len(weights), agreed.rounds).blocks
        order = block_order(seed, blocks) if blocks else np.arange(truth.rows)
        ordered = response_likelihood(truth.take(order), weighted)
        sides, heaviest = (alice[order], bob[order]), heaviest_of(agreed)
        fit = fit_on_schedule(*sides, ordered, agreed.l2, free, agreed.rounds, heaviest)
    else:
        family, sizes = data.labels_train.kind, (agreed.l2, free, agreed.rounds)
        fit = fit_in_clear(alice, bob, true, *sizes, data.widths, family)
    reference = np.concatenate([fit.alice, fit.own])
    joined = _joined(alice, bob)
    best = optimum(joined, true, agreed.l2, free)
    own = joined @ weights
    loss = penalised_loss(own, true, weights, agreed.l2, free)
    rows = RowChanges(agreed.family)
    rows.note(own)
    scores = _joined(data.alice_test.values, data.bob_test.values) @ reference
    return Comparison(
        centralised=model_metrics(scores, data.labels_test, terms),
        max_weight_difference=float(np.max(np.abs(weights - reference))),
        weight_bound=None,
        optimum=Optimum(best.loss, loss - best.loss, rows.note(joined @ best.weights)),
    )


def fixed_point_bound(
    terms: Terms, alice: FeatureTable, features: FloatArray, iterations: int
) -> float:
    """Bound on the difference of a weight from centralised training, by rounding.

    Rounding changes the gradient of a batch by at most ``2^-(feature_bits+1)`` per column for the
    features (residues are below 1) and ``2^-(residue_bits+1) max|x|`` for the residues, both in
    Alice's columns. Rounding her scores moves a residue by ``2^-(residue_bits+3)`` (the sigmoid's
    slope is at most 1/4), and so the gradient by that much of the longest row, in all columns;
    several Alices round theirs each for herself. A
    gradient step on the logistic loss with an L2 penalty does not expand distances as long as the
    rate is at most 2/L (``steepest``), and the rate never grows. Under that condition the changes
    add up: the sum of the rates times their Euclidean length bounds the distance, and so the
    difference of each weight. With an L1 penalty there is no such bound: its step jumps at zero.
    """
    bits = terms.agreement.residue_bits
    per_column = 2.0 ** -(terms.agreement.feature_bits + 1)
    # A hidden batch may hold more rows than the batch size by which their sum is divided.
    rows = max(1.0, terms.longest_product / terms.agreement.sgd.batch_size)
    per_column += 2.0 ** -(bits + 1) * (alice.largest + per_column) * rows
    longest = float(np.sqrt(np.square(features).sum(axis=1).max(initial=0.0)))
    by_scores = terms.agreement.alices * 2.0 ** -(bits + 3) * longest * rows
    change = per_column * float(np.sqrt(len(alice.columns))) + by_scores
    return sum(terms.rate.at(number) for number in range(iterations)) * change


def steepest(features: FloatArray, batches: Iterable[IndexArray], l2: float) -> float:
    """L: the largest eigenvalue of ``X^T X / (4 |B|)`` over the batches, plus the L2 penalty.

    >>> steepest(np.array([[2.0], [4.0]]), [np.array([0, 1])], l2=0.5)
    3.0
    """
    return max((float(curvature) for curvature in _curvatures(features, batches)), default=0.0) + l2


def _curvatures(features: FloatArray, batches: Iterable[IndexArray]) -> Iterator[float]:
    for size, same_size in groupby(filter(len, batches), key=len):
        room = max(1, _STACK_ENTRIES // (size * max(1, features.shape[1])))
        stack: list[IndexArray] = []
        for rows in same_size:
            stack.append(rows)
            if len(stack) == room:
                yield _largest_curvature(features[np.stack(stack)])
                stack = []
        if stack:
            yield _largest_curvature(features[np.stack(stack)])


def _largest_curvature(stack: FloatArray) -> float:
    rows, columns = stack.shape[1:]
    # The two Gram matrices share their non-zero eigenvalues; the smaller one is the cheaper.
    form = "kid,kjd->kij" if rows <= columns else "kid,kie->kde"
    gram = np.einsum(form, stack, stack, optimize=True)
    return float(np.linalg.eigvalsh(gram)[:, -1].max()) / (4.0 * float(rows))


def _joined(alice: FloatArray, bob: FloatArray) -> FloatArray:
    return np.hstack([alice, bob]) if bob.shape[1] else alice


@dataclass(frozen=True, slots=True)
class SharedModel:
    """Both shares of each Alice's weights, and of Bob's where those are shared too.

    ``bob`` is his share of all of their weights, one Alice's after the other's. ``of_bob`` are the
    shares of his weights: hers, and his.
    """

    alices: tuple[WeightShare, ...]
    bob: WeightShare
    suspected_wraps: int
    of_bob: tuple[WeightShare, WeightShare] | None = None

    @classmethod
    def from_trained(cls, alices: Iterable[Trained], bob: BobTrained) -> SharedModel | None:
        """Both shares, where the training left any."""
        parties = tuple(alices)
        alice_shares = tuple(alice.share for alice in parties if alice.share is not None)
        if not alice_shares or bob.share is None:
            return None
        bob_shares = None
        if parties[0].bob_share is not None and bob.bob_share is not None:
            bob_shares = parties[0].bob_share, bob.bob_share
        return cls(alice_shares, bob.share, bob.suspected_wraps, bob_shares)

    @property
    def scales(self) -> Scales:
        """Scales of the shares; all parties have the same."""
        return self.bob.scales

    @property
    def weights(self) -> FloatArray:
        """The Alices' weights, which no party has."""
        stops = np.cumsum([len(share.values) for share in self.alices])
        parts = np.split(self.bob.values, stops[:-1])
        pairs = zip(self.alices, parts, strict=True)
        return np.concatenate(
            [self._whole(alice_share, bob_share) for alice_share, bob_share in pairs]
        )

    @property
    def bob_weights(self) -> FloatArray | None:
        """Bob's weights, where neither party has them."""
        if self.of_bob is None:
            return None
        alice_share, bob_share = self.of_bob
        return self._whole(bob_share, alice_share.values)

    def _whole(self, owner: WeightShare, other: IntArray) -> FloatArray:
        """The weights of a party's columns, from both shares; the owner knows the coordinates."""
        weights = self.scales.weights(owner.values + other)
        return weights if owner.whitening is None else owner.whitening.weights(weights)

    def describe(self, terms: Terms, bob: FeatureTable) -> SharedWeights:
        """The scales of the run, for its result; ``bob`` are his training columns."""
        scales, agreed = self.scales, terms.agreement
        release = model_release_of(agreed, scales, len(self.bob.values), bob)
        return SharedWeights(
            modulus_bits=scales.modulus_bits,
            feature_bits=scales.feature_bits,
            residue_bits=scales.residue_bits,
            score_bound=scales.score_bound,
            suspected_wraps=self.suspected_wraps,
            reveal=bool(agreed.reveal),
            fresh_keys=bool(agreed.fresh_keys),
            model_release=None if release is None else _released(release),
            shared_scores=(
                None
                if self.of_bob is None or not agreed.kind.has_classes
                else self._sigmoid(terms, bob)
            ),
        )

    def _sigmoid(self, terms: Terms, bob: FeatureTable) -> SharedScores:
        agreed, columns = terms.agreement, len(self.bob.values) + len(bob.columns)
        whole = usual_sigmoid(terms, self.scales, TableSchedule(bob.rows, columns, terms.rounds))
        return SharedScores(
            score_range=given(agreed, "score_range"),
            sigmoid_error=given(agreed, "sigmoid_error"),
            waves=whole.sigmoid.waves,
            error_bound=whole.sigmoid.bound(given(agreed, "score_range")),
            rounding=whole.rounding,
            reveal_bob=bool(agreed.reveal_bob),
        )


def _released(release: ModelRelease) -> ReleasedModel:
    return ReleasedModel(
        epsilon=release.event.epsilon,
        delta=release.event.delta,
        steps=release.steps,
        row_bound=release.row_bound,
        sensitivity=release.sensitivity,
        noise=math.ldexp(release.sigma, -release.weight_bits),
    )
