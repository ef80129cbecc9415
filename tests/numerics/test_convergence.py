"""Whether a training has arrived: the rule, and what it says of real trainings."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import polars as pl
import pytest

import taciturn
from taciturn.data.label_table import LabelTable
from taciturn.families.registry import FAMILIES
from taciturn.numerics.convergence import (
    ENOUGH_PASSES,
    MOST_LOSS,
    MOST_ROW_CHANGE,
    Opened,
    assess_convergence,
    tolerance,
)
from taciturn.numerics.likelihood import response_likelihood, weighted_likelihood
from taciturn.numerics.optimum import optimum
from taciturn.numerics.row_changes import RowChanges
from taciturn.numerics.subspace import SubspaceSolver
from taciturn.numerics.whitening import Whitening


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


@pytest.mark.parametrize(
    ("changes", "converged", "largest"),
    [
        ((), True, None),
        ((0.9, 0.9, 0.01, 0.02), True, 0.02),
        ((0.9, 0.01, MOST_ROW_CHANGE), True, MOST_ROW_CHANGE),
        ((0.06,), False, 0.06),
        # One pass may leave the rows of a rare category as they are.
        ((0.01, 0.3, 0.0), False, 0.3),
    ],
)
def test_a_row_that_still_moves_is_no_convergence(changes, converged, largest):
    ended = assess_convergence([0.36, 0.32, 0.3181, 0.3180, 0.31799], row_changes=changes)
    assert (ended.converged, ended.row_change) == (converged, largest)
    assert (
        assess_convergence([0.4, 0.4], gap=(0.0, 0.4), row_changes=changes).converged is converged
    )


def test_rows_that_rest_do_not_make_up_for_a_loss():
    assert assess_convergence([0.36, 0.33, 0.32], row_changes=(0.0, 0.0)).converged is False
    assert assess_convergence([0.5, 2e8], row_changes=(0.0,)).diverged
    assert assess_convergence([0.5], row_changes=()).converged is None


def test_the_change_of_a_row_is_that_of_its_probability():
    changes = RowChanges()
    assert changes.note(np.array([0.0, 40.0, -40.0])) is None
    assert changes.note(np.array([0.0, 80.0, -80.0])) == pytest.approx(0.0, abs=1e-6)
    assert changes.note(np.array([math.log(3), 80.0, -80.0])) == pytest.approx(0.25, abs=1e-6)
    assert (changes.note(np.array([math.log(3), math.nan, -80.0])) or 0.0) >= 1.0


def rare_categories(rows: int, rare: int, size: int) -> pl.DataFrame:
    """Cities of a few rows each, all of one label, among large ones."""
    rng = np.random.default_rng(0)
    city = rng.integers(1000, 1008, size=rows)
    city[: rare * size] = np.repeat(np.arange(rare), size)
    columns = rng.normal(size=(rows, 4))
    odds = columns @ [1.0, 0.5, -0.5, 0.2] - 1.0
    labels = (rng.random(rows) < 1 / (1 + np.exp(-odds))).astype(int)
    labels[: rare * size] = city[: rare * size] % 2
    numbers = {f"x{place}": columns[:, place] for place in range(4)}
    return pl.DataFrame({"city": [f"c{one}" for one in city], **numbers, "late": labels})


def test_rows_that_rest_far_from_the_optimum_are_no_convergence():
    known = partial(assess_convergence, [0.4, 0.4], gap=(0.0, 0.4), row_changes=[0.0])
    assert known(row_gap=0.66).converged is False
    assert known(row_gap=0.01).converged


@pytest.mark.parametrize(("passes", "converged"), [(3, False), (12, True)])
def test_a_rare_category_that_the_loss_does_not_feel_is_seen(passes, converged):
    """A handful of rows among thousands: the loss is at its optimum, and their scores are not."""
    run = taciturn.train(
        rare_categories(8000, 4, 4), label="late", alice_columns="city,x0",
        mechanism="sealed", scheme="clear", passes=passes, min_frequency=0.0, seed=1,
    ).runs.first  # fmt: skip
    assert run.comparison.optimum is not None
    assert run.comparison.optimum.gap <= tolerance(run.comparison.optimum.loss)
    assert run.convergence.row_change is not None
    assert (run.convergence.row_change <= MOST_ROW_CHANGE) is converged
    assert run.comparison.optimum.row_gap is not None
    assert (run.comparison.optimum.row_gap <= MOST_ROW_CHANGE) is converged
    assert run.convergence.converged is converged


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
        assert run.comparison.optimum is not None
        near = run.comparison.optimum.gap <= tolerance(run.comparison.optimum.loss)
        assert run.convergence.converged == near
        end = run.metrics.train.loss
        losses = [end + (run.convergence.last_change or 0.0), end]
        assert near or not assess_convergence(losses).converged
        assert near == (passes == 12)


def test_a_negative_loss_is_divergence():
    """Scores that have wrapped make a sum of losses negative."""
    assert assess_convergence([-106.4, -117.0]).diverged
    assert assess_convergence([1e-7, -1e-12]).diverged is False


@pytest.mark.parametrize(
    ("opened", "converged", "diverged"),
    [
        (Opened(), None, False),
        (Opened(1e-5, 0), True, False),
        (Opened(1e-2, 0), False, False),
        (Opened(0.2, 0), False, False),
        # The count alone may be a slow training's, and a large change alone a short one's.
        (Opened(1e-2, 100), False, True),
        (Opened(1e-5, 100), True, False),
        (Opened(worse=True), False, True),
        (Opened(1e-5, 0, few_rows=True), None, False),
        (Opened(1e-2, 0, few_rows=True), False, False),
    ],
)
def test_what_is_opened_of_a_training_whose_losses_nobody_sees(opened, converged, diverged):
    ended = assess_convergence([], end=0.3, opened=opened)
    assert (ended.converged, ended.diverged) == (converged, diverged)
    if opened.few_rows and converged is None:
        assert str(ENOUGH_PASSES) in (ended.reason or "")


def test_a_penalised_loss_is_judged_by_what_is_still_to_come():
    """The loss rests while the penalised loss still falls, by a tenth less in each pass."""
    rests = [0.3] * 12
    falling = 0.32 + 1e-3 * 0.9 ** np.arange(12.0)
    still_to_come = falling[-1] - 0.32
    assert still_to_come > 0.7 * tolerance(0.32)
    assert assess_convergence(rests).converged
    quicker = 0.32 + 0.1 * 0.3 ** np.arange(12.0)
    assert assess_convergence(rests, objectives=list(quicker)).converged
    slower = 0.32 + 3e-3 * 0.9 ** np.arange(12.0)
    assert assess_convergence(rests, objectives=list(slower)).converged is False


@pytest.mark.parametrize("shape", [(100, 200), (200, 200), (300, 100)])
@pytest.mark.parametrize("family", ["binomial", "gaussian"])
def test_a_search_of_few_rows_a_column_is_not_called_converged_too_early(family, shape):
    """By what Bob sees; here the distance to the optimum is known."""
    rows, columns = shape
    rng = np.random.default_rng(3)
    values, own = rng.normal(size=shape), np.ones((rows, 1))
    effect = values @ rng.normal(size=columns) * 3 / math.sqrt(columns)
    truth = effect + rng.logistic(size=rows)
    truth = truth > 0 if family == "binomial" else truth
    labels = LabelTable.from_data(truth.astype(float), family=family)
    likelihood = response_likelihood(labels, partial(weighted_likelihood, class_weight=None))
    best = optimum(np.hstack([values, own]), likelihood, 1 / rows, 1).loss
    whitened = Whitening.fit(values, 1 / rows, means=values.mean(axis=0)).apply(values)
    search = SubspaceSolver(likelihood, own, 1 / rows, 1, 20, family=FAMILIES[family])
    objectives: list[float] = []
    said = []
    for number in range(18):
        direction = search.direction()
        search.add(direction, whitened @ (direction @ whitened))
        objectives.append(search.objective or math.nan)
        if number >= 2:
            said.append(bool(assess_convergence([1.0, 1.0], objectives=objectives).converged))
    gaps = np.array(objectives[2:]) - best
    early = [gap > 3 * tolerance(best) for gap, yes in zip(gaps, said, strict=True) if yes]
    assert early
    assert not any(early)
    # Three passes are too few to tell.
    assert all(yes for gap, yes in zip(gaps[1:], said[1:], strict=True) if gap < 1e-8)
