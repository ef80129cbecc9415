"""Held-out accuracy and AUC of ``add`` and ``mult``: one seed of one dataset, many cells at once.

The split into training and test rows is that of ``taciturn train --seed``. What is chosen (bounds,
epochs, rates) is chosen on validation rows that are cut from the training rows, never on the test
rows.

A *cell* is a mechanism with its parameters. Evaluated on the test rows, a cell gives the figures of
``taciturn train --scheme clear`` with the same options and seed: the split, the batches and the
noise are that run's. The bounds of ``mult`` are searched for by the mean AUC on validation rows,
with entropy of the search's own; the best are then trained on all training rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from statistics import fmean
from typing import cast

import numpy as np

from taciturn.arrays import ByteLabels, FloatArray, IndexArray
from taciturn.data.prepare import RawData
from taciturn.errors import ConfigError
from taciturn.numerics.metrics import Metrics, evaluate
from taciturn.numerics.sgd import train_centralised
from taciturn.privacy.base import ResidueMechanism
from taciturn.privacy.noise import LaplaceDraws
from taciturn.privacy.registry import mechanism
from taciturn.privacy.solvers import resolved
from taciturn.privacy.unprotected import Unprotected
from taciturn.protocol.agree import agree
from taciturn.protocol.joint_seed import seed_of
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy, KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, arrange
from taciturn_paper import paper
from taciturn_paper.cleartext import train_side_by_side, train_with_gradients
from taciturn_paper.tasks import Record, load

VALIDATION_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one purpose."""

    features: FloatArray = field(repr=False)
    labels: ByteLabels = field(repr=False)

    def take(self, rows: IndexArray) -> Part:
        """Some of them."""
        return Part(self.features.take(rows, axis=0), self.labels.take(rows))

    def with_intercept(self) -> Part:
        """The rows with a column of ones."""
        ones = np.ones((len(self.labels), 1))
        return Part(np.hstack([self.features, ones]), self.labels)

    @property
    def shape(self) -> tuple[int, int]:
        """Columns and rows, as ``agree`` wants them."""
        rows, columns = self.features.shape
        return columns, rows

    @property
    def commoner_label(self) -> float:
        """The share of the commoner label."""
        ones = float(self.labels.mean())
        return max(ones, 1 - ones)


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
    def load(cls, dataset: str, seed: int, raw: RawData | None = None) -> Rows:
        """A dataset split by a seed; ``raw`` has its rows where they are loaded already."""
        chosen = {"dataset": dataset, "mechanism": "none", "solver": "sgd", "seed": seed}
        settings = resolved(Settings.from_mapping(chosen))
        data = arrange(
            settings, load(dataset) if raw is None else raw, RunEntropy.for_seed(seed).data
        )
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

    def with_intercept(self) -> Rows:
        """The same split, with a column of ones that learns like all others."""
        names = ("train", "test", "fit", "choose")
        return replace(self, **{name: getattr(self, name).with_intercept() for name in names})

    @property
    def iterations(self) -> int:
        """Number of steps of a training on all training rows."""
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


VARIANTS = ("printed", "one-sided", "mean-one")
GRID = (paper.B1_RANGE, paper.B2_RANGE)
QUICK_GRID = ((2.0**-4, 0.25, 1.0), (0.1, 1.0, 10.0))
# Tables below this many training rows vary more from draw to draw, and their trainings take less.
SMALL_ROWS = 5_000
SMALL_CHOICES, QUICK_CHOICES = 5, 2
# Trainings that run side by side; more would only fill the memory.
MOST_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Cell:
    """A mechanism with its parameters; None where it does not take one."""

    mechanism: str
    epsilon: float | None = None
    variant: str | None = None
    b1: float | None = None
    b2: float | None = None

    @property
    def options(self) -> Record:
        """The settings that it asks for."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Judged:
    """A cell's model on rows it has not seen."""

    cell: Cell
    accuracy: float
    auc: float

    def to_dict(self) -> Record:
        """JSON record."""
        return {**asdict(self.cell), "accuracy": self.accuracy, "auc": self.auc}


def judge(rows: Rows, cells: Sequence[Cell]) -> list[Judged]:
    """Trains each cell on all training rows and judges it on the test rows."""
    entropy = RunEntropy.for_seed(rows.seed)
    seed = seed_of(entropy.alice, entropy.bob)
    return [
        score
        for some in _bundles(cells)
        for score in _judge(rows, some, rows.train, rows.test, seed, entropy.bob)
    ]


@dataclass(frozen=True, slots=True)
class Choice:
    """The bounds that a search chose for a variant at an epsilon, and among how many."""

    cell: Cell
    validation_auc: float
    candidates: int
    left_out: int

    def to_dict(self) -> Record:
        """JSON record."""
        return {
            **asdict(self.cell),
            "validation_auc": self.validation_auc,
            "candidates": self.candidates,
            "left_out": self.left_out,
        }


def search(rows: Rows, *, quick: bool = False, variants: Sequence[str] = VARIANTS) -> list[Choice]:
    """The best (b1, b2) of each variant at each of Table II's epsilons.

    Candidates whose noise is more than the sampler resolves are left out, and counted.
    """
    grid = QUICK_GRID if quick else GRID
    wanted = list(product(variants, paper.EPSILONS))
    groups = {
        (variant, epsilon): [Cell("mult", epsilon, variant, b1, b2) for b1, b2 in product(*grid)]
        for variant, epsilon in wanted
    }
    possible = {key: [c for c in cells if _possible(rows, c)] for key, cells in groups.items()}
    areas = _validation(rows, [cell for cells in possible.values() for cell in cells], quick)
    choices = []
    for key in wanted:
        best = max(possible[key], key=lambda cell: areas[cell])
        left_out = len(groups[key]) - len(possible[key])
        choices.append(Choice(best, areas[best], len(possible[key]), left_out))
    return choices


def _validation(rows: Rows, cells: Sequence[Cell], quick: bool) -> dict[Cell, float]:
    """The mean AUC of each cell on the validation rows."""
    small = len(rows.train.labels) < SMALL_ROWS
    choices = (QUICK_CHOICES if quick else SMALL_CHOICES) if small else 1
    areas: dict[Cell, list[float]] = {cell: [] for cell in cells}
    for number in range(choices):
        entropy = RunEntropy.for_seed(rows.seed).bob.fork(f"search {number}")
        seed = entropy.fork("batches").token(32)
        for some in _bundles(cells):
            for score in _judge(rows, some, rows.fit, rows.choose, seed, entropy):
                areas[score.cell].append(score.auc)
    return {cell: fmean(values) for cell, values in areas.items()}


def _judge(
    rows: Rows, cells: Sequence[Cell], fit: Part, on: Part, seed: bytes, bob: Entropy
) -> list[Judged]:
    scores = []
    for cell, weights in zip(cells, _weights(rows, cells, fit, seed, bob), strict=True):
        metrics = evaluate(on.features @ weights, on.labels)
        scores.append(Judged(cell, metrics.accuracy, metrics.auc))
    return scores


def _weights(
    rows: Rows, cells: Sequence[Cell], fit: Part, seed: bytes, bob: Entropy
) -> list[FloatArray]:
    terms = [_terms(rows, cell, fit) for cell in cells]
    plan = terms[0].plan(seed, len(fit.labels))
    if cells[0].mechanism == "none":
        return [train_with_gradients(fit.features, fit.labels, plan, terms[0], Unprotected())]
    methods = [cast(ResidueMechanism[LaplaceDraws], mechanism(term.agreement)) for term in terms]
    return list(train_side_by_side(fit.features, fit.labels, plan, terms[0], methods, bob))


def _bundles(cells: Sequence[Cell]) -> Iterable[Sequence[Cell]]:
    """The baseline alone, and the others in groups that train side by side."""
    noisy = [cell for cell in cells if cell.mechanism != "none"]
    yield from ([cell] for cell in cells if cell.mechanism == "none")
    for start in range(0, len(noisy), MOST_AT_ONCE):
        yield noisy[start : start + MOST_AT_ONCE]


def _possible(rows: Rows, cell: Cell) -> bool:
    try:
        mechanism(_terms(rows, cell, rows.fit).agreement)
    except ConfigError:
        return False
    return True


def _terms(rows: Rows, cell: Cell, fit: Part) -> Terms:
    return agree(rows.settings.model_copy(update={**cell.options, "scheme": "clear"}), *fit.shape)
