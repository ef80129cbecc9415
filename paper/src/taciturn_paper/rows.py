"""The rows of a dataset for one seed, each for its purpose.

The split into training and test rows is the one of ``taciturn train --seed``. What is chosen
(bounds, epochs, rates) is chosen on validation rows that are cut from the training rows, never on
the test rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from taciturn.arrays import ByteLabels, FloatArray, IndexArray
from taciturn.data.prepare import RawData
from taciturn.numerics.metrics import Metrics, evaluate
from taciturn.numerics.sgd import train_centralised
from taciturn.protocol.agree import agree
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation.coins import Coins
from taciturn.simulation.source import arrange, load_raw

VALIDATION_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one purpose."""

    features: FloatArray = field(repr=False)
    labels: ByteLabels = field(repr=False)

    def take(self, rows: IndexArray) -> Part:
        """Some of them."""
        return Part(self.features.take(rows, axis=0), self.labels.take(rows))

    @property
    def shape(self) -> tuple[int, int]:
        """Columns and rows, as ``agree`` wants them."""
        rows, columns = self.features.shape
        return columns, rows


@dataclass(frozen=True, slots=True)
class Rows:
    """A dataset, split by a seed; all columns are Alice's."""

    settings: Settings
    seed: int
    train: Part
    test: Part
    fit: Part
    choose: Part

    @classmethod
    def of(cls, dataset: str, seed: int, raw: RawData | None = None) -> Rows:
        """Loads and splits.

        Args:
            dataset: Which of the paper's.
            seed: Decides the split.
            raw: The rows, if they are loaded already.

        Raises:
            DatasetUnavailable: Its file is not here.
        """
        chosen = {"dataset": dataset, "mechanism": "none", "solver": "sgd", "seed": seed}
        settings = Settings.of(chosen).resolved()
        source = load_raw(settings) if raw is None else raw
        data = arrange(settings, source, Coins.for_seed(seed).data)
        train = Part(data.alice_train.values, data.labels_train.values)
        order = KeyedEntropy.from_seed(seed).fork("validation").permutation(len(train.labels))
        cut = round(VALIDATION_SHARE * len(order))
        return cls(
            settings,
            seed,
            train,
            Part(data.alice_test.values, data.labels_test.values),
            train.take(order[cut:]),
            train.take(order[:cut]),
        )

    @property
    def iterations(self) -> int:
        """How many steps a training on all training rows takes."""
        terms = agree(self.settings, *self.train.shape)
        return terms.plan(bytes(32), len(self.train.labels)).iterations


def noiseless(rows: Rows) -> Metrics:
    """The model without noise and without a protocol, on the test rows."""
    terms = agree(rows.settings, *rows.train.shape)
    plan = terms.plan(KeyedEntropy.from_seed(0).token(32), len(rows.train.labels))
    weights = train_centralised(
        rows.train.features,
        rows.train.labels,
        (batch.rows for batch in plan),
        terms.rate,
        terms.penalty,
    )
    return evaluate(rows.test.features @ weights, rows.test.labels)
