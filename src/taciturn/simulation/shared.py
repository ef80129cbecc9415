"""Weights that stay shared: a simulation has both shares at hand, and puts them together.

Neither party can. The weights that two shares make serve the comparison with centralised training
and the metrics; the parties themselves predict from their shares (``predict_sealed``), with their
features rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from taciturn.arrays import FloatArray
from taciturn.protocol.events import ShareKept
from taciturn.results.training import SharedWeights
from taciturn.settings.agreement import Agreement


@dataclass(frozen=True, slots=True)
class Shared:
    """Both shares of Alice's weights."""

    alice: ShareKept
    bob: ShareKept

    @classmethod
    def of(cls, shares: Mapping[str, ShareKept]) -> Shared | None:
        """Both shares, where the training left any."""
        return cls(shares["alice"], shares["bob"]) if shares else None

    @property
    def weights(self) -> FloatArray:
        """Alice's weights, which neither party has."""
        return self.alice.scales.weights(self.alice.share, self.bob.share)

    def describe(self, agreed: Agreement, suspected_wraps: int) -> SharedWeights:
        """The scales of the run, for its result."""
        scales = self.alice.scales
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
