"""The threshold of a class: the best on the rows that it was chosen on, by the stated rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import ShapeError
from taciturn.numerics.sorted_scores import SortedScores
from taciturn.numerics.threshold import chosen, even_odds, threshold_at

rows = st.lists(
    st.tuples(st.floats(-30, 30, allow_subnormal=False), st.integers(0, 1)), min_size=2, max_size=30
).filter(lambda pairs: 0 < sum(label for _, label in pairs) < len(pairs))


def counts(scores: np.ndarray, labels: np.ndarray, threshold: float) -> tuple[float, float]:
    above = scores > threshold
    return float(above[labels == 1].mean()), float((~above)[labels == 0].mean())


@given(rows)
def test_youdens_threshold_reaches_the_distance_of_the_two_classes(pairs):
    """KS, but for its sign: a score that orders rows the wrong way round gains nothing."""
    scores, labels = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
    best = chosen(scores, labels)
    assert (best.sensitivity, best.specificity) == pytest.approx(counts(scores, labels, best.score))
    candidates = [*scores, *np.nextafter(scores, -np.inf)]
    most = max(sum(counts(scores, labels, at)) - 1 for at in candidates)
    assert sum(counts(scores, labels, best.score)) - 1 == pytest.approx(max(most, 0.0))
    if most > 0 and SortedScores.from_scores(scores, labels).ks() == pytest.approx(most):
        assert best.rows == len(labels)


@given(rows, st.sampled_from([0.1, 1.0, 20.0]))
def test_the_threshold_of_a_cost_costs_least(pairs, cost):
    scores, labels = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])

    def paid(threshold: float) -> float:
        above = scores > threshold
        return float(cost * (~above)[labels == 1].sum() + above[labels == 0].sum())

    best = chosen(scores, labels, cost)
    candidates = [*scores, *np.nextafter(scores, -np.inf)]
    assert paid(best.score) == pytest.approx(min(paid(at) for at in candidates))
    assert (best.rule, best.false_negative_cost) == ("cost", cost)


def test_one_class_alone_leaves_one_half_and_other_shapes_are_refused():
    assert chosen(np.array([1.0, 2.0]), np.array([1, 1])) == even_odds()
    with pytest.raises(ShapeError):
        chosen(np.array([1.0, 2.0]), np.array([1]))


def test_the_threshold_stands_between_two_scores():
    best = chosen(np.array([-4.0, -2.0, -1.0, 3.0]), np.array([0, 0, 1, 1]))
    assert best.score == -1.5
    assert best.probability == pytest.approx(1 / (1 + np.exp(1.5)))
    assert threshold_at(best.probability).score == pytest.approx(best.score)


def test_class_weights_move_the_probability_of_a_threshold_and_not_its_score():
    scores, labels = np.array([-4.0, -2.0, -1.0, 3.0]), np.array([0, 0, 1, 1])
    best = chosen(scores, labels, shift=2.0)
    assert best.score == -1.5
    assert best.probability == pytest.approx(1 / (1 + np.exp(3.5)))
    assert threshold_at(best.probability, shift=2.0).score == pytest.approx(-1.5)
    assert even_odds(2.0).score == 0.0


def test_scores_of_a_diverged_model_leave_a_threshold():
    best = chosen(np.array([np.nan, 3.0, -1.0, np.nan]), np.array([0, 1, 0, 1]))
    assert np.isfinite([best.score, best.probability]).all()
