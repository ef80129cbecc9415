"""How long a simulated training will take, and how much will cross."""

from __future__ import annotations

from taciturn.data.raw import RawData
from taciturn.engine.forecast import forecast
from taciturn.protocol.agree import agree
from taciturn.results.estimate import Estimate
from taciturn.settings.schema import Settings
from taciturn.simulation.coins import Coins
from taciturn.simulation.source import arrange


def estimate(settings: Settings, raw: RawData) -> Estimate:
    """Runs a few iterations of the shape that the settings give.

    Args:
        settings: Resolved settings.
        raw: The rows.
    """
    data = arrange(settings, raw, Coins.for_seed(settings.seed).data)
    features = data.alice_train
    return forecast(
        agree(settings, len(features.columns), features.rows),
        features,
        bob_columns=len(data.bob_train.columns),
        table_memory=settings.table_memory << 20,
    )
