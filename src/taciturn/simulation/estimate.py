"""Duration and traffic of a simulated training."""

from __future__ import annotations

from taciturn.data.prepare import RawData
from taciturn.engine.estimate import estimate_cost
from taciturn.results.estimate import Estimate
from taciturn.settings.schema import Settings
from taciturn.simulation.coins import Coins
from taciturn.simulation.run import terms_of
from taciturn.simulation.source import arrange


def estimate(settings: Settings, raw: RawData) -> Estimate:
    """Runs the training on a sample of its rows, or its first iterations."""
    coins = Coins.for_seed(settings.seed)
    data = arrange(settings, raw, coins.data)
    return estimate_cost(
        terms_of(settings, data, coins),
        data.labels_train.rows,
        [*data.alice_train_parts.values()] or [data.alice_train],
        data.bob_train,
        table_memory=settings.table_memory << 20,
        cores=settings.cores,
    )
