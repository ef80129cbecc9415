"""Whether a training has arrived: the rule, and what it says of real trainings."""

from __future__ import annotations

import math

import pytest

import taciturn
from taciturn.numerics import MOST_LOSS, assess_convergence, tolerance


def test_a_search_that_settles_has_converged():
    assert assess_convergence([0.36, 0.32, 0.3181, 0.3180, 0.31799]).converged
    assert not assess_convergence([0.36, 0.33, 0.32]).converged
    assert assess_convergence([0.36, 0.32, 0.3181]).last_change == pytest.approx(0.0019)


def test_a_training_that_creeps_has_not():
    """Each epoch changes next to nothing, and as much as the first did."""
    creeping = [0.69 - 5e-4 * epoch for epoch in range(10)]
    assert abs(creeping[-1] - creeping[-2]) < tolerance(creeping[-1])
    assert assess_convergence(creeping).converged is False


@pytest.mark.parametrize("last", [184_488_823.0, math.inf, math.nan, MOST_LOSS * 1.01])
def test_a_model_that_is_worse_than_none_has_diverged(last):
    ended = assess_convergence([0.5, last])
    assert ended.diverged
    assert ended.converged is False
    assert not assess_convergence([0.5, MOST_LOSS]).diverged


def test_a_known_distance_decides():
    assert assess_convergence([0.5, 0.4], gap=(1e-5, 0.4)).converged
    assert assess_convergence([0.4, 0.4], gap=(1e-2, 0.4)).converged is False


def test_one_pass_says_nothing():
    assert assess_convergence([0.5]).converged is None
    assert assess_convergence([]).diverged is None
    assert assess_convergence([], end=0.3).diverged is False
    assert assess_convergence([], end=2e8).diverged


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dataset", ["breast-cancer", "sklearn-digits"])
@pytest.mark.parametrize("alice", ["half", "all"])
def test_what_settles_by_its_last_pass_is_near_the_optimum(dataset, alice):
    """A real party has the last pass alone; a simulation knows the distance."""
    for passes in (3, 12):
        run = taciturn.train(
            dataset=dataset, alice_columns=alice, solver="newton", passes=passes,
            mechanism="none", scheme="clear", intercept=True, seed=1,
        ).runs.first  # fmt: skip
        assert run.optimum is not None
        near = run.optimum.gap <= tolerance(run.optimum.loss)
        assert run.converged == near
        losses = [run.train.loss + (run.last_change or 0.0), run.train.loss]
        assert near or not assess_convergence(losses).converged
        assert near == (passes == 12)
