"""The mechanism's exact law against its price, and its draws against the law.

Run it where both Taciturn and this package are installed: ``pytest tests``.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from taciturn_one_bit.mechanism import OneBit, OneBitResidue, one_bit_price

from taciturn.errors import ConfigError
from taciturn.rng import KeyedEntropy

BITS = 20
UNIT = 1 << BITS
EPSILONS = [0.01, 0.5, 1.0, 4.0]


def made(epsilon: float) -> OneBit:
    return OneBit(OneBitResidue(epsilon), BITS)


def probabilities(method: OneBit, residues: np.ndarray) -> np.ndarray:
    """The probability of each of the two outputs (rows), given each residue (columns)."""
    outputs = np.array([[method.size], [-method.size]])
    return np.exp(method.log_probability(outputs, residues[None, :]))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_two_outputs_are_all_there_is(epsilon):
    residues = np.linspace(-UNIT, UNIT, 101).astype(np.int64)
    assert probabilities(made(epsilon), residues).sum(axis=0) == pytest.approx(1.0, abs=1e-12)
    assert made(epsilon).log_probability(np.array([0, 1]), np.array([0, 0])).tolist() == [
        -math.inf,
        -math.inf,
    ]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_two_residues_are_told_apart_by_more_than_the_price_and_the_worst_come_close(epsilon):
    residues = np.linspace(-UNIT, UNIT, 101).astype(np.int64)
    logs = np.log(probabilities(made(epsilon), residues))
    worst = float((logs.max(axis=1) - logs.min(axis=1)).max())
    price = one_bit_price(OneBitResidue(epsilon)).residue
    assert worst <= price
    assert worst == pytest.approx(price, rel=1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_two_labels_of_a_row_are_told_apart_by_no_more_than_their_price(epsilon):
    scores = np.linspace(0, UNIT, 101).astype(np.int64)
    one, zero = (np.log(probabilities(made(epsilon), label - scores)) for label in (UNIT, 0))
    worst = float(np.abs(one - zero).max())
    price = one_bit_price(OneBitResidue(epsilon)).label
    assert worst <= price * (1 + 1e-12)
    assert worst == pytest.approx(price, rel=1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_it_is_right_on_average(epsilon):
    method, residues = made(epsilon), np.array([-UNIT, -UNIT // 3, 0, 12_345, UNIT])
    mean = method.size * (probabilities(method, residues) * [[1], [-1]]).sum(axis=0)
    assert mean == pytest.approx(residues, abs=1e-6 * method.size)


def test_draws_follow_the_law_with_false_alarm_rate_1e_minus_6():
    method, count, residue = made(1.0), 100_000, UNIT // 2
    draws = method.draw(count, KeyedEntropy.from_seed(5))
    positive = np.count_nonzero(method.release(np.full(count, residue), draws).value > 0)
    chance = probabilities(method, np.array([residue]))[0, 0]
    # Five standard deviations: a binomial number lies beyond them once in 1.7 million.
    assert abs(positive - count * chance) < 5 * math.sqrt(count * chance * (1 - chance))


@pytest.mark.parametrize("epsilon", [1e-15, 60.0])
def test_what_the_grid_cannot_hold_is_refused(epsilon):
    with pytest.raises(ConfigError, match="epsilon is"):
        made(epsilon)
