"""Capped losses as waves: their error, their bound, and both sides' numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from taciturn.data.label_table import LabelTable
from taciturn.numerics.bounded_waves import (
    CAP,
    WAVE_ERROR,
    BoundedWaves,
    RowFunctions,
    SharedWaves,
    base_loss,
    capped_loss,
    loss_waves,
)
from taciturn.numerics.periodic_sigmoid import half_range
from taciturn.rng import KeyedEntropy

BINARY = LabelTable.from_data(np.array([1, 0], dtype=np.int8))


def period(family: str, score_range: float) -> float:
    """Half of the ring of a training with the default error of its sigmoid."""
    return half_range(score_range, 3e-3) * (2 if family == "gaussian" else 1)


@pytest.mark.parametrize("score_range", [4.0, 32.0, 64.0, 128.0])
def test_waves_stay_within_the_wanted_error_of_the_capped_log_loss(score_range):
    waves = loss_waves("binomial", score_range, period("binomial", score_range))
    scores = np.linspace(-score_range, score_range, 30_001)
    labels = LabelTable.from_data(np.ones(len(scores), dtype=np.int8))
    assert np.abs(waves(scores) - capped_loss(scores, labels)).max() < 1.01 * WAVE_ERROR


def test_a_wave_less_would_miss_the_wanted_error():
    waves = loss_waves("binomial", 64.0, period("binomial", 64.0))
    fewer = BoundedWaves(waves.half_range, waves.mean, waves.cosines[:-1], waves.sines[:-1])
    scores = np.linspace(-64.0, 64.0, 30_001)
    assert np.abs(fewer(scores) - capped_loss(scores, _ones(len(scores)))).max() > WAVE_ERROR


def _ones(count: int) -> LabelTable:
    return LabelTable.from_data(np.ones(count, dtype=np.int8))


def test_a_row_is_bounded_whatever_its_score_is():
    for family in ("binomial", "gaussian"):
        waves = loss_waves(family, 64.0, period(family, 64.0))
        values = waves(np.linspace(-400.0, 400.0, 40_001))
        assert values.min() > -1.01 * WAVE_ERROR
        assert values.max() < CAP + 1.01 * WAVE_ERROR


def test_small_losses_are_nearly_the_log_loss_and_large_ones_the_cap():
    scores = np.array([8.0, 2.0, 1.0, 0.0, -30.0, -600.0])
    exact = np.logaddexp(0.0, -scores)
    capped = capped_loss(scores, _ones(6))
    assert capped[:4] == pytest.approx(exact[:4], abs=2e-3)
    assert capped[4:] == pytest.approx([CAP, CAP], abs=1e-3)


@pytest.mark.parametrize("label", [1, 0])
def test_shares_give_the_function_of_their_sum_with_the_label_s_coefficients(label):
    """Also where the sum of the shares wraps."""
    half = period("binomial", 64.0)
    waves = loss_waves("binomial", 64.0, half)
    numbers = SharedWaves(waves.waves, 59, 18, 18)
    scores = np.linspace(-60.0, 60.0, 241)
    whole = np.rint(scores / half * 2.0**58).astype(np.int64)
    alice = KeyedEntropy.from_seed(1).words(len(scores)).view(np.int64) >> np.int64(5)
    bob = ((whole - alice) << np.int64(5)) >> np.int64(5)
    labels = LabelTable.from_data(np.full(len(scores), label, dtype=np.int8))
    functions = RowFunctions.from_losses(waves, labels, 0.0)
    his = numbers.numbers(bob, *functions.coefficients(slice(0, len(scores))))
    summed = (numbers.table(alice) * his).sum(axis=1) / numbers.unit
    summed_losses = summed + functions.constant / len(scores)
    assert np.abs(his).max() < 2**31
    assert np.abs(summed_losses - waves((2 * label - 1) * scores)).max() < 2e-4
    assert np.abs(summed_losses - capped_loss(scores, labels)).max() < 1.02 * WAVE_ERROR


def test_coefficients_may_differ_from_row_to_row_in_any_way():
    """A function of Bob's own number of the row: here a multiple of one wave."""
    numbers = SharedWaves(3, 59, 20, 20)
    entropy = KeyedEntropy.from_seed(2)
    alice, bob = (
        entropy.fork(name).words(50).view(np.int64) >> np.int64(5) for name in ("alice", "bob")
    )
    angles = (alice + bob).astype(np.float64) * (2 * math.pi * 2.0**-59)
    factors = np.linspace(-3.0, 3.0, 50)
    cosines, sines = np.zeros((50, 3)), np.zeros((50, 3))
    cosines[:, 1], sines[:, 2] = factors, factors**2
    his = numbers.numbers(bob, cosines, sines)
    summed_losses = (numbers.table(alice) * his).sum(axis=1) / numbers.unit
    expected = factors * np.cos(2 * angles) + factors**2 * np.sin(3 * angles)
    assert summed_losses == pytest.approx(expected, abs=1e-4)


def test_the_base_rate_has_the_loss_of_its_own_log_odds():
    labels = LabelTable.from_data(np.array([1] * 20 + [0] * 80, dtype=np.int8))
    entropy = -(0.2 * math.log(0.2) + 0.8 * math.log(0.8)) * 100
    assert base_loss(labels) == pytest.approx(entropy, rel=5e-3)


def test_class_weights_move_the_scores_that_are_judged():
    scores = np.array([1.0, -2.0])
    assert capped_loss(scores + 0.7, BINARY, 0.7) == pytest.approx(capped_loss(scores, BINARY))
