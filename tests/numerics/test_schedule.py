"""Learning rates over the iterations."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import ConfigError
from taciturn.numerics.sgd import SCHEDULES, LearningRate
from tests.expected import refused


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [("constant", [0.8, 0.8, 0.8]), ("inverse", [0.8, 0.2, 0.1]), ("inverse-sqrt", [0.8, 0.4])],
)
def test_known_rates(schedule, expected):
    rate = LearningRate(0.8, schedule, decay=1.0)
    iterations = (0, 3, 7)[: len(expected)]
    assert [rate.at(t) for t in iterations] == pytest.approx(expected, rel=1e-15)


@given(st.sampled_from(SCHEDULES), st.floats(1e-6, 1e3), st.floats(0, 10), st.integers(0, 10**9))
def test_rates_start_at_the_initial_and_never_rise(schedule, initial, decay, iteration):
    rate = LearningRate(initial, schedule, decay)
    assert rate.at(0) == initial
    assert 0 < rate.at(iteration + 1) <= rate.at(iteration) <= initial


def test_what_is_no_rate_is_refused():
    for initial in (0.0, -1.0, math.nan, math.inf):
        with refused(ConfigError):
            LearningRate(initial)
    for decay in (-1.0, math.nan, math.inf):
        with refused(ConfigError, names="decay"):
            LearningRate(0.1, "inverse", decay)
    with refused(ConfigError, names=("invers", "inverse")):
        LearningRate(0.1, "invers")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="0"):
        LearningRate(0.1).at(-1)
