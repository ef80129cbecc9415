"""Steps of whole tables: which rows each uses, and coordinates in which every block is safe."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.numerics.likelihood import label_likelihood, weighted_likelihood
from taciturn.numerics.optimum import optimum, penalised_loss
from taciturn.numerics.table_schedule import TableSchedule
from taciturn.numerics.whitening import Whitening, training_means
from taciturn.numerics.whole_table import fit_on_schedule


@given(st.integers(1, 3_000_000), st.integers(0, 200), st.integers(1, 60))
def test_blocks_are_many_rows_or_there_are_none(rows, columns, passes):
    schedule = TableSchedule(rows, columns, passes)
    sizes = [place.stop - place.start for place in schedule.blocks]
    if not sizes:
        assert schedule.steps == passes
        assert {schedule.block(number) for number in range(passes)} == {None}
        assert schedule.row_passes == pytest.approx(passes - 1)
        return
    assert 8 <= len(sizes) <= 32
    assert min(sizes) >= max(768, 48 * columns)
    assert schedule.blocks[0].start == 0
    assert schedule.blocks[-1].stop == rows
    assert all(one.stop == two.start for one, two in pairwise(schedule.blocks))
    assert schedule.row_passes < passes - 1 or passes < 20


def test_a_round_starts_over_all_rows_and_the_training_ends_there():
    schedule = TableSchedule(39_073, 44, 28)
    every = [number for number in range(schedule.steps) if schedule.block(number) is None]
    assert (len(schedule.blocks), schedule.steps) == (18, 70)
    assert every == [0, 17, 34, 51, 68, 69]
    used = [schedule.block(number) for number in range(70) if number not in every]
    # In turn, on and on from round to round.
    assert used == [at % 18 for at in range(64)]
    assert schedule.row_passes == pytest.approx(5 + 64 / 18, abs=0.01)
    resumed = {number: schedule.resumes_after(number) for number in range(70)}
    assert {at: done for at, done in resumed.items() if done is not None} == {
        0: 0,
        17: 7,
        34: 14,
        51: 21,
    }
    assert [schedule.first_step(done) for done in (0, 7, 14, 21)] == [0, 17, 34, 51]
    assert [schedule.passes_done(steps) for steps in (0, 1, 17, 69, 70)] == [0, 0, 6, 27, 28]
    momenta = [schedule.momentum(number) for number in range(70)]
    assert [one.by_step for one in momenta] == sorted(one.by_step for one in momenta)
    assert {one.by_point for one in momenta} == {0}


@given(st.integers(0, 10_000), st.integers(1, 6), st.booleans(), st.integers(2, 6), st.floats(1, 5))
def test_no_block_curves_the_loss_by_more_than_one(seed, columns, intercept, count, heaviest):
    rng = np.random.default_rng(seed)
    rows, l2, free = 60, 0.01, int(intercept)
    values = rng.normal(size=(rows, columns))
    # A column that is zero but for three rows, which may be those of one block.
    values[:, 0] = 0.0
    values[rng.integers(0, rows, 3), 0] = 1.0
    if intercept:
        values = np.hstack([values, np.ones((rows, 1))])
    means = training_means(values, free) if intercept else None
    whitening = Whitening.fit(values, l2, free, heaviest, means)
    parts = np.array_split(rng.permutation(rows), count)
    bounding = whitening.bounding((values[part] for part in parts), heaviest * count / rows, l2)
    penalty = np.eye(columns + free) - bounding.kept(l2, free)
    whitened = bounding.apply(values)
    # With the intercept, which is orthogonal to the columns in all rows together only.
    own = slice(0, columns)
    for part in [*parts, np.arange(rows)]:
        weight = heaviest / rows * (count if len(part) < rows else 1)
        square = weight / 4 * whitened[part].T @ whitened[part] + penalty
        assert np.linalg.eigvalsh(square[own, own]).max() <= 1 + 1e-9
    np.testing.assert_allclose(
        bounding.weights(bounding.whitened(np.arange(columns + free, dtype=float))),
        np.arange(columns + free),
        rtol=1e-6,
        atol=1e-6,
    )


def test_values_stay_within_a_bound_by_a_shorter_step():
    values = np.random.default_rng(1).normal(size=(50, 3))
    whitening = Whitening.fit(values, 0.1)
    largest = np.abs(whitening.apply(values)).max()
    assert whitening.within(2 * largest, [values]).factor == pytest.approx(whitening.factor)
    cut = whitening.within(largest / 3, [values[:20], values[20:]])
    assert np.abs(cut.apply(values)).max() == pytest.approx(largest / 3)


@pytest.mark.parametrize("kind", ["usual", "rare level", "1 % positives"])
def test_blocks_end_nearer_to_the_optimum_than_passes_with_a_third_of_the_rows(kind):
    rng = np.random.default_rng(3)
    rows, hers, his = 12_000, 6, 5
    values = rng.normal(size=(rows, hers + his))
    if kind == "rare level":
        values[:, 0] = rng.permutation(rows) < 8
    scores = values @ rng.normal(size=hers + his) - (6.0 if kind == "1 % positives" else 0.0)
    labels = (rng.random(rows) < 1 / (1 + np.exp(-scores))).astype(np.int8)
    own = np.hstack([values[:, hers:], np.ones((rows, 1))])
    likelihood = label_likelihood(labels, partial(weighted_likelihood, class_weight=None))
    schedule, l2 = TableSchedule(rows, 12, 28), 1 / rows
    assert schedule.row_passes < 9.5
    best = optimum(np.hstack([values, own[:, -1:]]), likelihood, l2, 1)
    fit = fit_on_schedule(values[:, :hers], own, likelihood, l2, 1, 28)
    weights = np.concatenate([fit.alice, fit.own])
    assert penalised_loss(fit.scores, likelihood, weights, l2, 1) - best.loss < 1e-4
