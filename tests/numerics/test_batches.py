"""Cutting an epoch into batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import ConfigError, ShapeError
from taciturn.numerics.sgd import batch_count, batches
from tests.expected import refused


@given(st.integers(0, 300), st.integers(1, 320), st.randoms(use_true_random=False))
def test_each_row_comes_once_in_order(rows, size, shuffler):
    order = list(range(rows))
    shuffler.shuffle(order)
    parts = list(batches(np.array(order, dtype=np.int64), size))
    assert [row for part in parts for row in part.tolist()] == order
    assert len(parts) == batch_count(rows, size)
    assert all(len(part) == size for part in parts[:-1])
    assert not parts or 1 <= len(parts[-1]) <= size


@pytest.mark.parametrize("size", [0, -3])
def test_a_bad_size_is_refused_at_the_call(size):
    with refused(ConfigError):
        batches(np.arange(3), size)
    with refused(ConfigError):
        batch_count(3, size)
    with refused(ShapeError):
        batches(np.zeros((2, 2), dtype=np.int64), 1)
