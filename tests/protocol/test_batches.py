"""The batches: a function of one public seed, each row once per epoch."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import ConfigError
from taciturn.protocol.batches import BatchPlan
from tests.expected import refused

seeds = st.binary(min_size=32, max_size=32)
plans = st.builds(BatchPlan, seeds, st.integers(1, 40), st.integers(1, 50), st.integers(1, 4))


def listed(plan: BatchPlan) -> list[list[int]]:
    return [batch.rows.tolist() for batch in plan]


@given(plans)
def test_every_row_comes_once_per_epoch(plan):
    for _, group in groupby(plan, key=lambda batch: batch.epoch):
        rows = np.concatenate([batch.rows for batch in group])
        assert sorted(rows.tolist()) == list(range(plan.rows))


@given(plans)
def test_all_batches_are_full_but_the_last_of_an_epoch(plan):
    whole, rest = divmod(plan.rows, plan.batch_size)
    sizes = [plan.batch_size] * whole + ([rest] if rest else [])
    assert [len(batch.rows) for batch in plan] == sizes * plan.epochs


@given(plans)
def test_iterations_count_on_through_the_epochs(plan):
    batches = list(plan)
    assert [batch.iteration for batch in batches] == list(range(plan.iterations))
    assert [batch.epoch for batch in batches] == sorted(batch.epoch for batch in batches)
    assert {batch.epoch for batch in batches} == set(range(plan.epochs))


@given(plans)
def test_the_seed_decides_the_batches_each_time_anew(plan):
    first = listed(plan)
    assert listed(plan) == first
    assert listed(BatchPlan(plan.seed, plan.rows, plan.batch_size, plan.epochs)) == first


@given(seeds, st.integers(1, 30), st.integers(1, 4))
def test_the_batch_size_only_cuts_the_same_order(seed, size, epochs):
    whole = np.concatenate([batch.rows for batch in BatchPlan(seed, 30, 30, epochs)])
    cut = np.concatenate([batch.rows for batch in BatchPlan(seed, 30, size, epochs)])
    assert cut.tolist() == whole.tolist()


def test_the_batches_of_a_seed_never_change():
    """Two versions of the program must agree on them, or they could not train together."""
    expected = [[5, 4, 2], [6, 1, 0], [3], [6, 2, 3], [0, 1, 4], [5]]
    assert listed(BatchPlan(bytes(range(32)), 7, 3, 2)) == expected


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_of_no_rows_is_refused(size):
    with refused(ConfigError):
        list(BatchPlan(bytes(32), 5, size, 1))


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_seed_of_another_length_is_refused(length):
    with refused(ConfigError):
        list(BatchPlan(bytes(length), 5, 2, 1))
