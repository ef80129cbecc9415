"""What counts tell Bob of a row's bin: against a count of guesses, row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn_audit.woe import bin_knowledge


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=2, max_size=60))
def test_guesses_and_certainties_are_those_of_a_bob_who_counts(rows):
    codes, labels = (np.array(part, dtype=np.int64) for part in zip(*rows, strict=True))
    sizes = np.bincount(codes, minlength=4)
    ones = np.bincount(codes[labels == 1], minlength=4)
    known = bin_knowledge(ones, sizes)
    best = {label: np.bincount(codes[labels == label], minlength=4) for label in (0, 1)}
    right = sum(codes[row] == best[labels[row]].argmax() for row in range(len(codes)))
    assert known.posterior == pytest.approx(right / len(codes))
    assert known.prior == pytest.approx(sizes.max() / len(codes))
    assert known.posterior >= known.prior - 1e-12
    settled = [np.count_nonzero(best[label]) == 1 for label in labels]
    assert known.located == sum(settled)
