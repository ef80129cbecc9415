"""Curves and tables by score: ROC, KS, gains and costs of thresholds, against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as oracle

from taciturn.families.binomial import sigmoid
from taciturn.numerics.sorted_scores import SortedScores
from taciturn.numerics.threshold import chosen
from taciturn_risk.scorecard.gains import (
    Costs,
    cheapest,
    cutoff,
    cutoffs,
    gains,
    ks_point,
    roc_points,
)

# Few distinct scores, so that there are ties.
rows = st.lists(
    st.tuples(st.integers(-6, 6).map(float), st.integers(0, 1)), min_size=2, max_size=60
).filter(lambda pairs: 0 < sum(label for _, label in pairs) < len(pairs))


def arrays(pairs: list[tuple[float, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])


def drawn(count: int = 3000, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    entropy = np.random.default_rng(seed)
    scores = entropy.normal(-1, 1.5, count).round(2)
    return scores, (entropy.uniform(size=count) < sigmoid(scores)).astype(np.int64)


@given(rows)
def test_the_curve_is_scikit_learns(pairs):
    scores, labels = arrays(pairs)
    zeros, ones, levels = oracle.roc_curve(labels, scores, drop_intermediate=False)
    points = roc_points(SortedScores.from_scores(scores, labels))
    assert [p.zeros for p in points] == pytest.approx(zeros.tolist())
    assert [p.ones for p in points] == pytest.approx(ones.tolist())
    assert [p.score for p in points] == levels.tolist()


def test_a_long_curve_is_thinned_and_keeps_its_ends_and_the_point_of_ks():
    scores, labels = drawn(20_000)
    scores = scores + np.linspace(0, 0.001, len(scores))
    ranked = SortedScores.from_scores(scores, labels)
    points, furthest = roc_points(ranked), ks_point(ranked)
    assert furthest is not None
    assert 100 < len(points) < 210
    assert (points[0].ones, points[-1].zeros) == (0.0, 1.0)
    assert max(p.ones - p.zeros for p in points) == pytest.approx(furthest.distance)
    area = np.trapezoid([p.ones for p in points], [p.zeros for p in points])
    assert area == pytest.approx(oracle.roc_auc_score(labels, scores), abs=1e-3)


@given(rows)
def test_ks_is_reached_where_it_is_said_to_be(pairs):
    scores, labels = arrays(pairs)
    point = ks_point(SortedScores.from_scores(scores, labels))
    assert point is not None
    above = scores >= point.score
    gap = above[labels == 1].mean() - above[labels == 0].mean()
    assert (
        abs(gap)
        == pytest.approx(SortedScores.from_scores(scores, labels).ks())
        == pytest.approx(point.distance)
    )
    assert (point.ones, point.zeros) == pytest.approx(
        (above[labels == 1].mean(), above[labels == 0].mean())
    )


def test_one_class_has_no_curve():
    ranked = SortedScores.from_scores(np.array([1.0, 2.0]), np.array([1, 1]))
    assert roc_points(ranked) == ()
    assert ks_point(ranked) is None


def test_deciles_of_distinct_scores_are_counted():
    scores, labels = drawn()
    scores = scores + np.linspace(0, 1e-6, len(scores))
    table = gains(SortedScores.from_scores(scores, labels))
    order = np.argsort(-scores)
    for row in table:
        chosen_rows = order[300 * (row.part - 1) : 300 * row.part]
        assert (row.rows, row.ones) == (300, labels[chosen_rows].sum())
        assert row.lift == pytest.approx(labels[chosen_rows].mean() / labels.mean())
        assert row.lowest == scores[chosen_rows].min()
        first = order[: 300 * row.part]
        assert row.ones_so_far == pytest.approx(labels[first].sum() / labels.sum())
    assert table[-1].lift_so_far == pytest.approx(1.0)


@given(rows, st.integers(1, 12))
def test_gains_add_up_and_do_not_depend_on_the_order_of_equal_rows(pairs, parts):
    scores, labels = arrays(pairs)
    table = gains(SortedScores.from_scores(scores, labels), parts)
    assert table == gains(SortedScores.from_scores(scores[::-1], labels[::-1]), parts)
    assert sum(row.rows for row in table) == len(scores)
    assert sum(row.ones for row in table) == pytest.approx(labels.sum())
    assert table[-1].ones_so_far == pytest.approx(1.0)


@given(rows, st.floats(-7, 7))
def test_the_counts_at_a_threshold_are_scikit_learns(pairs, score):
    scores, labels = arrays(pairs)
    at = cutoff(SortedScores.from_scores(scores, labels), score, costs=Costs(2.0, 5.0))
    table = oracle.confusion_matrix(labels, scores > score, labels=[0, 1])
    counts = [[at.true_zeros, at.false_ones], [at.missed_ones, at.true_ones]]
    assert counts == table.tolist()
    assert at.cost == pytest.approx((2 * table[0, 1] + 5 * table[1, 0]) / len(scores))
    if at.called:
        assert at.precision == pytest.approx(oracle.precision_score(labels, scores > score))
    else:
        assert math.isnan(at.precision)


@given(rows, st.sampled_from([0.2, 1.0, 7.0]))
def test_the_cheapest_threshold_costs_least_and_is_that_of_the_model_file(pairs, miss):
    scores, labels = arrays(pairs)
    ranked, costs = SortedScores.from_scores(scores, labels), Costs(1.0, miss)
    best = cheapest(ranked, costs)
    assert best.cost is not None
    for level in (*scores, scores.min() - 1):
        other = cutoff(ranked, level, costs=costs).cost
        assert other is not None
        assert best.cost <= other + 1e-12
    assert best.score == chosen(scores, labels, miss).score


def test_thresholds_call_about_the_fraction_that_was_asked_for():
    scores, labels = drawn()
    scores = scores + np.linspace(0, 1e-6, len(scores))
    table = cutoffs(SortedScores.from_scores(scores, labels), (0.0, 0.1, 0.5, 1.0), shift=0.7)
    assert [at.called for at in table] == pytest.approx([0.0, 0.1, 0.5, 1.0], abs=0.001)
    assert table[1].probability == pytest.approx(1 / (1 + math.exp(0.7 - table[1].score)))
    assert (
        len(cutoffs(SortedScores.from_scores(np.zeros(9), np.arange(9) % 2), (0.1, 0.5, 0.9))) == 1
    )
