"""A model that is told with noise: its bounds, its claim tried on neighbours, its ledger."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from taciturn.arrays import FloatArray
from taciturn.errors import ConfigError
from taciturn.numerics.descent import BoundedTable, DescentSolver
from taciturn.numerics.likelihood import label_likelihood, weighted_likelihood
from taciturn.privacy.composition import label_epsilon
from taciturn.privacy.events import NoisyModel
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.model_release import ModelRelease, rounding_error
from taciturn.protocol.scales import Scales
from taciturn.protocol.table_scales import direction_numbers, directions
from taciturn.rng import Entropy, KeyedEntropy

EVENT = NoisyModel(1.0, 1e-6)
RELEASE = ModelRelease(EVENT, 1000, 10, 5, 1, passes=4, row_bits=24, weight_bits=36)


# --- figures --------------------------------------------------------------------------------------


def test_the_sensitivity_is_that_of_all_steps_and_of_their_roundings():
    spread = math.sqrt(2 * math.log(5 / 1e-7 * (1 + math.e)))
    rounded = 2.0**-24 * math.sqrt(1000) * (math.sqrt(10) + 2 * spread)
    label = math.sqrt(8 * 10 + 8 * 5) / (2 * 1000)
    assert RELEASE.sensitivity == pytest.approx(1.01 * 5 * (label + 2 * rounded))
    assert RELEASE.row_bound == pytest.approx(math.sqrt(120))


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        # An intercept alone is 2 in every row; without columns of Bob's the step is a whole one.
        ({"bob_columns": 1}, math.sqrt(84 / 120)),
        ({"bob_columns": 0, "bob_free": 0}, 2 * math.sqrt(80 / 120)),
        ({"passes": 9}, 2.0),
        ({"rows": 2000}, 0.5),
    ],
    ids=str,
)
def test_what_the_sensitivity_grows_with(change, factor):
    # So many digits that roundings do not count.
    fine = replace(RELEASE, row_bits=50)
    assert replace(fine, **change).sensitivity == pytest.approx(factor * fine.sensitivity, rel=1e-6)


def test_a_share_leaves_with_noise_modulo_t_and_the_same_coins_give_the_same():
    share = np.array([2**49 - 1, -(2**49), 0])
    one, again, other = (
        RELEASE.release(share, 50, KeyedEntropy.from_seed(seed)) for seed in (1, 1, 2)
    )
    assert one.event == EVENT
    assert one.value.tolist() == again.value.tolist() != other.value.tolist()
    assert np.abs(one.value).max() <= 2**49
    moved = (one.value - share + 2**49) % 2**50 - 2**49
    assert 0 < np.abs(moved).max() < 8 * RELEASE.sigma


# --- roundings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "columns"), [(50, 1), (400, 6), (100, 40)])
@pytest.mark.sampled(1)
def test_roundings_move_weights_by_less_than_their_bound(rows, columns):
    """Of 2000 roundings two are allowed beyond it; more than 14 come once in a million times."""
    stream = np.random.default_rng(rows)
    table = BoundedTable.from_table(stream.normal(size=(rows, columns)), 1e-3).values
    grid = Scales(59, 10, 20)
    entropy, lengths = KeyedEntropy.from_seed(rows), []
    for number in range(2000):
        exact = stream.normal(size=rows)
        rounded = directions(grid, exact, entropy.fork(str(number))) - exact * 2.0**20
        lengths.append(float(np.linalg.norm(rounded @ table)))
    bound = rounding_error(rows, columns, math.log(1000))
    assert sum(length > bound for length in lengths) <= 14
    assert max(lengths) > bound / 5


# --- the claim, tried -----------------------------------------------------------------------------

ROWS, PASSES, SAMPLES = 6, 1, 1500
TABLE = np.array([[30.0], [1.0], [-1.0], [0.5], [1.5], [-0.5]])
BITS, GRID = 12, Scales(59, 12, 22)


class Told:
    """What Alice is told of one column, by a row whose label differs; ``quiet`` divides sigma."""

    def __init__(self, label: int, quiet: int = 1) -> None:
        labels = np.array([label, 0, 1, 0, 1, 1], dtype=np.int8)
        bounded = BoundedTable.from_table(TABLE, 0.1).shrunk(2.0 ** -(BITS + 1))
        self._table = np.rint(bounded.values * 2.0**BITS).astype(np.int64)
        self._likelihood = label_likelihood(labels, partial(weighted_likelihood, class_weight=None))
        self._quiet = quiet
        self._release = ModelRelease(EVENT, ROWS, 1, 0, 0, PASSES, GRID.residue_bits, 34)

    def __call__(self, count: int, entropy: Entropy) -> FloatArray:
        return np.array([self._once(entropy) for _ in range(count)], dtype=np.float64)

    def _once(self, entropy: Entropy) -> float:
        solver = DescentSolver(self._likelihood, np.empty((ROWS, 0)), 0.1, 0, PASSES)
        for _ in range(PASSES):
            direction = directions(GRID, solver.direction(), entropy)
            product = self._table @ (self._table.T @ direction)
            solver.add(direction_numbers(GRID, direction), GRID.scores(product))
        last = directions(GRID, solver.conclude()[0], entropy)
        share = self._table.T @ last
        noisy = self._release.release(share, 59, entropy).value
        # A fault: less noise than there should be.
        return float(share[0] + (noisy[0] - share[0]) // self._quiet)


# --- the ledger -----------------------------------------------------------------------------------


def test_a_model_that_is_told_costs_its_epsilon_at_its_delta():
    ledger = Ledger(3, "test")
    ledger.charge(EVENT, np.arange(3))
    statement = ledger.statement()
    assert statement.label_epsilon_total == statement.label_epsilon_total_delta == 1.0
    assert statement.label_delta_total == 1e-6
    assert statement.releases_per_row == 1
    again = Ledger(3, "test")
    again.restore(ledger.to_json())
    assert again.statement() == statement


def test_at_a_smaller_delta_nothing_is_claimed():
    assert label_epsilon({EVENT: 1}, delta=1e-7) == math.inf
    assert label_epsilon({EVENT: 1}, delta=0.0) == math.inf
    assert label_epsilon({EVENT: 1}, delta=1e-6) == 1.0
    # Told twice, both deltas are needed.
    assert label_epsilon({EVENT: 2}, delta=1e-6) == math.inf
    assert 1.0 < label_epsilon({EVENT: 2}, delta=2.1e-6) <= 2.0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-6), (1.0, 0.0), (1.0, 1.0), (1.0, 2.0)])
def test_a_claim_that_is_none_is_refused(epsilon, delta):
    with pytest.raises(ConfigError):
        NoisyModel(epsilon, delta)
