"""Weights that stay shared: a simulation has both shares at hand, and puts them together.

Neither party can. The weights that two shares make serve the comparison with centralised training
and the metrics; the parties themselves predict from their shares (``predict_sealed``), with their
features rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable
from taciturn.privacy.base import given
from taciturn.privacy.model_release import ModelRelease
from taciturn.protocol.model_release import model_release_of
from taciturn.protocol.mutual import Sigmoids
from taciturn.protocol.mutual_table import shared_sigmoid
from taciturn.protocol.outcome import BobTrained, Trained, WeightShare
from taciturn.protocol.terms import Terms
from taciturn.results.training import ReleasedModel, SharedScores, SharedWeights


@dataclass(frozen=True, slots=True)
class Shared:
    """Both shares of Alice's weights, and of Bob's where those are shared too."""

    alice: WeightShare
    bob: WeightShare
    suspected_wraps: int
    of_bob: tuple[WeightShare, WeightShare] | None = None

    @classmethod
    def of(cls, alice: Trained, bob: BobTrained) -> Shared | None:
        """Both shares, where the training left any."""
        if alice.share is None or bob.share is None:
            return None
        his = None
        if alice.bob_share is not None and bob.bob_share is not None:
            his = alice.bob_share, bob.bob_share
        return cls(alice.share, bob.share, bob.suspected_wraps, his)

    @property
    def weights(self) -> FloatArray:
        """Alice's weights, which neither party has."""
        weights = self.alice.scales.weights(self.alice.values + self.bob.values)
        return weights if self.alice.whitening is None else self.alice.whitening.weights(weights)

    @property
    def bob_weights(self) -> FloatArray | None:
        """Bob's weights, where neither party has them."""
        if self.of_bob is None:
            return None
        hers, his = self.of_bob
        weights = self.alice.scales.weights(hers.values + his.values)
        return weights if his.whitening is None else his.whitening.weights(weights)

    def describe(self, terms: Terms, bob: FeatureTable) -> SharedWeights:
        """The scales of the run, for its result; ``bob`` are his training columns."""
        scales, agreed = self.alice.scales, terms.agreement
        release = model_release_of(agreed, scales, len(self.alice.values), bob)
        return SharedWeights(
            modulus_bits=scales.modulus_bits,
            feature_bits=scales.feature_bits,
            residue_bits=scales.residue_bits,
            score_bound=scales.score_bound,
            suspected_wraps=self.suspected_wraps,
            reveal=bool(agreed.reveal),
            dither=agreed.dither or 0.0,
            fresh_keys=bool(agreed.fresh_keys),
            model_release=None if release is None else _figures(release),
            shared_scores=None if self.of_bob is None else self._sigmoid(terms, bob.rows),
        )

    def _sigmoid(self, terms: Terms, rows: int) -> SharedScores:
        agreed = terms.agreement
        if terms.whole_table:
            whole = shared_sigmoid(self.alice.scales, agreed, rows)
            bound = whole.sigmoid.bound(given(agreed, "score_range"))
        else:
            sigmoids = Sigmoids.of(terms, rows)
            whole, bound = sigmoids.at(0, min(agreed.batch_size, rows)), sigmoids.error_bound
        return SharedScores(
            score_range=given(agreed, "score_range"),
            sigmoid_error=given(agreed, "sigmoid_error"),
            waves=whole.sigmoid.waves,
            error_bound=bound,
            rounding=whole.rounding,
            reveal_bob=bool(agreed.reveal_bob),
        )


def _figures(release: ModelRelease) -> ReleasedModel:
    return ReleasedModel(
        epsilon=release.event.epsilon,
        delta=release.event.delta,
        steps=release.steps,
        row_bound=release.row_bound,
        sensitivity=release.sensitivity,
        noise=math.ldexp(release.sigma, -release.weight_bits),
    )
