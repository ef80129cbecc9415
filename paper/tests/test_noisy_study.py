"""What a study's noisy sums cost and tell."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.rng import KeyedEntropy
from taciturn_paper.noisy_study import (
    PENALTIES,
    known_others,
    loss_given_up,
    row_bits,
    table_of,
)

ENTROPY = KeyedEntropy.from_seed(1)


def test_sums_far_apart_tell_the_row_and_equal_ones_nothing():
    apart = np.array([[0.0, 0.0], [1e5, 0.0]])
    assert row_bits(apart, 16.0, ENTROPY.fork("apart"), 100) == pytest.approx(1.0)
    assert row_bits(0 * apart, 16.0, ENTROPY.fork("equal"), 100) == pytest.approx(0.0)


def test_a_choice_with_noise_gives_up_little_of_the_spread_of_the_settings():
    table = table_of("synthetic", 2000)
    losses = table.losses(PENALTIES)
    lost = loss_given_up(losses, 2000, ENTROPY.fork("choice"))
    assert 0 <= lost.exact < 0.1 * np.ptp(losses.exact) / 2000
    # Capped losses order the settings as log losses do, but for near ties.
    assert abs(int(losses.exact.argmin()) - int(losses.capped.argmin())) <= 1


def test_all_sums_together_tell_little_of_a_row_to_who_knows_the_others():
    bits = {kind: told for kind, _, told in known_others(120, candidates=4)}
    assert abs(bits["honest"]) < 0.02
    assert bits["chosen column and grid"] < 0.3
