"""How long a simulated training will take, and how much will cross."""

from __future__ import annotations

from taciturn.data.raw import RawData
from taciturn.engine.forecast import forecast
from taciturn.results.estimate import Estimate
from taciturn.settings.schema import Settings
from taciturn.simulation.coins import Coins
from taciturn.simulation.run import terms_of
from taciturn.simulation.source import arrange


def estimate(settings: Settings, raw: RawData) -> Estimate:
    """Runs a few iterations of the shape that the settings give.

    Args:
        settings: Resolved settings.
        raw: The rows.
    """
    coins = Coins.for_seed(settings.seed)
    data = arrange(settings, raw, coins.data)
    return forecast(
        terms_of(settings, data, coins),
        *(data.alice_train_parts.values() or [data.alice_train]),
        bob_columns=len(data.bob_train.columns),
        table_memory=settings.table_memory << 20,
    )
