"""Curves and tables by score: ROC, KS, gains, thresholds and bands, against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from risk.tests.scorecard.test_gains import arrays, drawn, rows

from taciturn.errors import ConfigError
from taciturn.families.binomial import sigmoid
from taciturn.numerics.sorted_scores import SortedScores
from taciturn_risk.scorecard.bands import Bands
from taciturn_risk.scorecard.gains import Costs, gains
from tests.expected import refused


@given(rows, st.integers(1, 12))
def test_bands_hold_every_row_once(pairs, count):
    scores, labels = arrays(pairs)
    bands = Bands.from_quantiles(scores, count)
    table = bands.rows(scores, labels)
    assert sum(row.rows for row in table) == len(scores)
    assert sum(row.ones for row in table) == labels.sum()
    assert all(row.rows for row in table)
    assert [row.rows for row in table] == bands.counts(scores)[::-1].tolist()
    for row in table:
        inside = (scores >= row.low) & (scores < row.high)
        assert (row.rows, row.ones) == (inside.sum(), labels[inside].sum())
        assert row.predicted == pytest.approx(sigmoid(scores[inside]).mean())
        assert row.rate_low <= row.rate <= row.rate_high
    assert (table[-1].rows_so_far, table[-1].ones_so_far) == pytest.approx((1.0, 1.0))


def test_bands_of_other_rows_may_be_empty():
    table = Bands((0.0, 1.0)).rows(np.array([2.0, 3.0]), np.array([0, 1]))
    assert [row.rows for row in table] == [2, 0, 0]
    assert math.isnan(table[1].rate)


def test_numbers_that_are_none_are_refused():
    for cost in (0.0, -1.0, math.nan, math.inf):
        with refused(ConfigError):
            Costs(1.0, cost)
    for edges in ((1.0, 1.0), (2.0, 1.0), (math.nan,), tuple(map(float, range(200)))):
        with refused(ConfigError):
            Bands(edges)
    with refused(ConfigError):
        Bands.from_quantiles(np.arange(5.0), 0)
    with refused(ConfigError):
        gains(SortedScores.from_scores(*drawn(10)), 0)
