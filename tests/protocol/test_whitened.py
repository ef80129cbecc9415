"""Alice's table in newton's coordinates: the same integers by blocks, in memory and in a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from taciturn.crypto.bfv.array_location import ArrayLocation
from taciturn.crypto.clear import ClearScheme
from taciturn.data.tables import FeatureTable
from taciturn.memmap import BLOCK_ROWS, Scratch
from taciturn.numerics.whitening import Whitening
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.whitened import WhitenedTable, largest_bits
from taciturn.protocol.terms import Terms
from tests.protocol.parties import ALICE, agreement

ROWS = BLOCK_ROWS + 1000


def inputs_of(values: np.ndarray, scratch: Scratch | None = None, **changes: Any) -> AliceInputs:
    newton = {"mechanism": "sealed", "solver": "newton", "learning_rate": 1.0, "l2": 1e-3}
    agreed = agreement(**{**newton, "batch_size": len(values), **changes})
    terms = Terms(agreed, ClearScheme())
    return AliceInputs(FeatureTable.from_data(values), terms, ALICE, scratch=scratch or Scratch())


def drawn(columns: int = 2) -> np.ndarray:
    return ALICE.fork("values").uniform((ROWS, columns)) - 0.5


def expected(table: WhitenedTable, values: np.ndarray) -> np.ndarray:
    """Every row alone: no block could be misplaced."""
    whitened = np.vstack([table.whitening.apply(block) for block in np.array_split(values, 7)])
    return whitened * 2.0**table.scales.feature_bits


@pytest.mark.parametrize("mapped", [False, True])
def test_the_integers_are_those_of_the_whitened_rows(tmp_path, mapped):
    values = drawn()
    scratch = Scratch(tmp_path / "scratch", least=1) if mapped else Scratch()
    inputs = inputs_of(values, scratch)
    table = WhitenedTable.from_inputs(inputs)
    assert table.whole.shape == values.shape
    assert table.whole.dtype == np.int32
    assert np.abs(table.whole - expected(table, values)).max() <= 0.5 + 1e-6
    assert largest_bits(inputs.features, inputs.terms) == table.magnitude_bits
    others = table.others(FeatureTable.from_data(100.0 * values[:50]), scratch)
    bound = 1 << (table.scales.feature_bits + table.magnitude_bits)
    assert np.abs(others).max() == bound
    place = ArrayLocation.from_array(table.whole)
    assert (place is not None) == mapped
    if place is not None:
        assert np.array_equal(place.opened(), WhitenedTable.from_inputs(inputs_of(values)).whole)


@pytest.mark.parametrize("outlier", [30.0, 2000.0])
def test_a_large_value_in_a_later_block_changes_the_digits_of_all(outlier):
    """So large that rows before it were rounded too finely, or to too short integers."""
    values = drawn(1)
    values[-1] = outlier
    table = WhitenedTable.from_inputs(inputs_of(values, l2=1.0, feature_bits=22))
    assert np.abs(table.whole - expected(table, values)).max() <= 0.5 + 1e-6
    first = Whitening.fit(values, 1.0).apply(values[:BLOCK_ROWS])
    assert 2.0**table.magnitude_bits > 8 * np.abs(first).max()


def test_a_told_models_table_is_within_its_bounds(tmp_path):
    values = drawn()
    noisy: dict[str, Any] = {
        "reveal": True,
        "reveal_epsilon": 1.0,
        "reveal_delta": 1e-6,
        "epochs": 2,
    }
    one = WhitenedTable.from_inputs(inputs_of(values, **noisy))
    two = WhitenedTable.from_inputs(
        inputs_of(values, Scratch(tmp_path / "scratch", least=1), **noisy)
    )
    assert np.array_equal(one.whole, two.whole)
    reals = one.whole * 2.0**-one.scales.feature_bits
    assert np.linalg.eigvalsh(reals.T @ reals)[-1] <= 4.0 * ROWS
