"""The release of a model with noise, from what both parties know of a training."""

from __future__ import annotations

from taciturn.data.tables import FeatureTable
from taciturn.privacy.model_release import ModelRelease
from taciturn.privacy.sealed import noisy_release
from taciturn.protocol.scales import Scales
from taciturn.settings.agreement import Agreement


def model_release_of(
    agreed: Agreement, scales: Scales, alice_columns: int, bob: FeatureTable
) -> ModelRelease | None:
    """What is to be told at the end; None where nothing is told with noise."""
    event = noisy_release(agreed)
    if event is None:
        return None
    return ModelRelease(
        event,
        rows=bob.rows,
        alice_columns=alice_columns,
        bob_columns=len(bob.columns),
        bob_free=bob.free,
        passes=agreed.rounds,
        row_bits=scales.residue_bits,
        weight_bits=scales.weight_bits,
    )
