"""The arithmetic of guesses at hidden batches, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.attacks import MembershipGuess
from taciturn.audit import judge_membership
from taciturn.errors import ShapeError
from tests.expected import refused


def guess(iteration: int, members: list[int], size: int, certified: bool = False):
    return MembershipGuess(iteration, np.arange(10), np.array(members), size, certified)


def test_counts_over_all_iterations_together():
    guesses = [guess(0, [0, 1, 2], 3), guess(4, [7], 2, certified=True)]
    score = judge_membership(guesses, {0: np.array([1, 2, 3]), 4: np.array([7, 8])})
    assert score.precision == 3 / 4
    assert score.recall == 3 / 5
    assert score.k_exact == 1.0
    assert score.iterations == 2
    assert score.base_rate == 5 / 20
    assert score.certified == 0.5


def test_calling_every_row_a_member_has_the_base_rate_as_precision():
    score = judge_membership([guess(0, list(range(10)), 10)], {0: np.array([4, 5, 6])})
    assert score.precision == score.base_rate == 0.3
    assert score.recall == 1.0
    assert score.k_exact == 0.0


def test_shares_of_nothing_are_absent():
    score = judge_membership([], {})
    assert score.iterations == 0
    assert (score.precision, score.recall, score.k_exact, score.base_rate) == (None,) * 4
    nobody = judge_membership([guess(0, [], 0)], {0: np.array([], dtype=np.int64)})
    assert (nobody.precision, nobody.recall, nobody.k_exact) == (None, None, 1.0)


@pytest.mark.parametrize("batches", [{}, {0: np.array([12])}], ids=["absent", "not asked"])
def test_refuses_the_batches_of_another_run(batches):
    with refused(ShapeError, names=0):
        judge_membership([guess(0, [1], 1)], batches)
