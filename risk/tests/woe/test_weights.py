"""Weight of evidence and information value: by hand, and against the definition on rows."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import ConfigError
from taciturn_risk.woe.weights import information_value, mutual_bits, weights_of_evidence
from tests.expected import refused


def test_a_table_worked_out_by_hand():
    """10 of 40 ones and 40 of 60 zeros; 30 of 40 and 20 of 60: ln(3/8) and ln(9/4)."""
    ones, rows = np.array([10, 30]), np.array([50, 50])
    assert weights_of_evidence(ones, rows, 0.0) == pytest.approx([math.log(3 / 8), math.log(9 / 4)])
    by_hand = (1 / 4 - 2 / 3) * math.log(3 / 8) + (3 / 4 - 1 / 3) * math.log(9 / 4)
    assert information_value(ones, rows, 0.0) == pytest.approx(by_hand)


def test_without_smoothing_a_bin_of_one_label_has_an_infinite_weight():
    weights = weights_of_evidence(np.array([0, 3, 1]), np.array([2, 3, 4]), 0.0)
    assert weights[0] == -math.inf
    assert weights[1] == math.inf
    assert information_value(np.array([0, 3, 1]), np.array([2, 3, 4]), 0.0) == math.inf


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=8, max_size=80))
def test_it_is_what_a_direct_computation_on_rows_gives(rows):
    bins, labels = zip(*rows, strict=True)
    frame = pl.DataFrame({"bin": bins, "y": [int(label) for label in labels]})
    if frame["y"].n_unique() < 2:
        return
    s, k = 0.5, frame["bin"].n_unique()
    grouped = frame.group_by("bin").agg(pl.col("y").sum().alias("p"), pl.len().alias("n"))
    hits = sum(map(int, labels))
    total, zeros = hits + k * s, len(labels) - hits + k * s
    expected, value = {}, 0.0
    for bin_, p, n in grouped.iter_rows():
        f, g = (p + s) / total, (n - p + s) / zeros
        expected[bin_] = math.log(f / g)
        value += (f - g) * math.log(f / g)
    ordered = grouped.sort("bin")
    ones, sizes = ordered["p"].to_numpy().astype(np.int64), ordered["n"].to_numpy().astype(np.int64)
    computed = weights_of_evidence(ones, sizes, s)
    assert computed == pytest.approx([expected[bin_] for bin_ in ordered["bin"]])
    assert information_value(ones, sizes, s) == pytest.approx(value)
    assert 0 <= mutual_bits(ones, sizes) <= 1 + 1e-9


@pytest.mark.parametrize("smoothing", [-0.1, math.nan, math.inf])
def test_what_cannot_be_added_to_a_count_is_refused(smoothing):
    with refused(ConfigError, names="smoothing"):
        weights_of_evidence(np.array([1, 2]), np.array([3, 3]), smoothing)
