"""Learning rates over the iterations."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import ConfigError
from taciturn.numerics import SCHEDULES, LearningRate
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


@pytest.mark.parametrize("initial", [0.0, -1.0, math.nan, math.inf])
def test_refuses_bad_initial_rates(initial):
    with refused(ConfigError):
        LearningRate(initial)


@pytest.mark.parametrize("decay", [-1.0, math.nan, math.inf])
def test_refuses_bad_decay(decay):
    with pytest.raises(ConfigError, match="decay"):
        LearningRate(0.1, "inverse", decay)


def test_refuses_an_unknown_schedule_and_names_the_nearest():
    with refused(ConfigError):
        LearningRate(0.1, "invers")  # type: ignore[arg-type]


def test_refuses_a_negative_iteration():
    with pytest.raises(ValueError, match="from 0"):
        LearningRate(0.1).at(-1)
