"""Weights that stay shared: a simulation has all shares at hand, and puts them together.

No party can. The weights that two shares make serve the comparison with centralised training
and the metrics; the parties themselves predict from their shares (``protocol.alice.scoring``), with
their features rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.data.tables import FeatureTable
from taciturn.privacy.base import given
from taciturn.privacy.model_release import ModelRelease
from taciturn.protocol.model_release import model_release_of
from taciturn.protocol.mutual_table import shared_sigmoid
from taciturn.protocol.outcome import BobTrained, Trained, WeightShare
from taciturn.protocol.scales import Scales
from taciturn.protocol.terms import Terms
from taciturn.results.training import ReleasedModel, SharedScores, SharedWeights


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
        hers = tuple(alice.share for alice in parties if alice.share is not None)
        if not hers or bob.share is None:
            return None
        his = None
        if parties[0].bob_share is not None and bob.bob_share is not None:
            his = parties[0].bob_share, bob.bob_share
        return cls(hers, bob.share, bob.suspected_wraps, his)

    @property
    def scales(self) -> Scales:
        """What shares count; all parties have the same."""
        return self.bob.scales

    @property
    def weights(self) -> FloatArray:
        """The Alices' weights, which no party has."""
        stops = np.cumsum([len(share.values) for share in self.alices])
        parts = np.split(self.bob.values, stops[:-1])
        pairs = zip(self.alices, parts, strict=True)
        return np.concatenate([self._whole(hers, his) for hers, his in pairs])

    @property
    def bob_weights(self) -> FloatArray | None:
        """Bob's weights, where neither party has them."""
        if self.of_bob is None:
            return None
        hers, his = self.of_bob
        return self._whole(his, hers.values)

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
            model_release=None if release is None else _figures(release),
            shared_scores=None if self.of_bob is None else self._sigmoid(terms, bob.rows),
        )

    def _sigmoid(self, terms: Terms, rows: int) -> SharedScores:
        agreed = terms.agreement
        whole = shared_sigmoid(self.scales, agreed, rows)
        return SharedScores(
            score_range=given(agreed, "score_range"),
            sigmoid_error=given(agreed, "sigmoid_error"),
            waves=whole.sigmoid.waves,
            error_bound=whole.sigmoid.bound(given(agreed, "score_range")),
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
