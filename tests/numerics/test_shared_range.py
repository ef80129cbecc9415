"""How many shared scores lie beyond their range: what is surely counted, and what never is."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.numerics.periodic_sigmoid import half_range
from taciturn.numerics.shared_range import RangeCount
from taciturn.rng import KeyedEntropy

BITS = 18


@pytest.mark.parametrize(
    ("reach", "error"), [(64.0, 3e-3), (4.0, 1e-6), (8.0, 1e-3), (32.0, 1e-3), (256.0, 1e-2)]
)
def test_every_score_beyond_the_range_is_counted_and_none_well_within_it(reach, error):
    """Each number of a ring, shared at random."""
    half, size = half_range(reach, error), 1 << BITS
    count = RangeCount(BITS, half, reach)
    whole = np.arange(-size // 2, size // 2)
    alice = KeyedEntropy.from_seed(1).words(size).view(np.int64) & (size - 1)
    bob = (whole - alice - size // 2) & (size - 1)
    counted = (count.marks(bob) & count.table(alice)).sum(axis=1)
    scores = np.abs(whole) * 2 * half / size
    assert counted[scores > reach].min() == counted.max() == 1
    assert not counted[scores < count.counted_from].any()
    assert 0.75 * reach <= count.counted_from < reach
    # Half way between the two it depends on the shares.
    between = counted[(scores > count.counted_from) & (scores < reach)]
    assert 0.1 < between.mean() < 0.95
