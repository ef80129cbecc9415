"""Weights that stay shared: a simulation has both shares at hand, and may put them together.

The weights that two shares make serve the comparison with centralised training. Metrics come from
the joint prediction of the parties, under the training's own scheme, not from those weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tacit.arrays import FloatArray
from tacit.data.tables import FeatureTable
from tacit.protocol.alice import predict_sealed as alice_predict
from tacit.protocol.bob import predict_sealed as bob_predict
from tacit.protocol.events import ShareKept
from tacit.protocol.terms import Terms
from tacit.runtime.pair import run_pair
from tacit.simulation.coins import Coins
from tacit.simulation.outcome import SharedWeights


@dataclass(frozen=True, slots=True)
class Shared:
    """Both shares of Alice's weights, and Bob's own weights."""

    alice: ShareKept
    bob: ShareKept
    bob_weights: FloatArray
    terms: Terms
    coins: Coins

    @classmethod
    def of(
        cls, shares: Mapping[str, ShareKept], bob_weights: FloatArray, terms: Terms, coins: Coins
    ) -> Shared | None:
        """Both shares, where the training left any."""
        if not shares:
            return None
        return cls(shares["alice"], shares["bob"], bob_weights, terms, coins)

    @property
    def weights(self) -> FloatArray:
        """Alice's weights, which neither party has."""
        return self.alice.scales.weights(self.alice.share, self.bob.share)

    def predict(self, alice: FeatureTable, bob: FeatureTable) -> FloatArray:
        """The scores of rows by the sealed conversation."""
        purpose = f"predict {alice.ids.digest()}"
        scales = self.alice.scales
        _, scores = run_pair(
            alice_predict.predict(
                alice, self.alice.share, self.terms, scales, self.coins.alice.fork(purpose)
            ),
            bob_predict.predict(
                bob,
                self.bob_weights,
                self.bob.share,
                self.terms,
                scales,
                self.coins.bob.fork(purpose),
            ),
        )
        return scores

    def describe(self, suspected_wraps: int) -> SharedWeights:
        """The scales of the run, for its record."""
        scales, agreed = self.alice.scales, self.terms.agreement
        return SharedWeights(
            modulus_bits=scales.modulus_bits,
            feature_bits=scales.feature_bits,
            residue_bits=scales.residue_bits,
            score_bound=scales.score_bound,
            suspected_wraps=suspected_wraps,
            reveal=bool(agreed.reveal),
            dither=agreed.dither or 0.0,
            fresh_keys=bool(agreed.fresh_keys),
        )
