"""``anchored``: exact where it has the equations, better than controls before, blind on noise."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.audit import controls
from taciturn.column_attacks import AnchoredAttack, Batches, KnownRows, Visits, follow
from taciturn.results import is_above
from tests.column_attacks.runs import newton, sgd
from tests.modules import module_of


@pytest.mark.parametrize("mechanism", ["none", "sealed"])
def test_as_many_passes_and_known_rows_as_columns_give_every_value(mechanism):
    score = newton(mechanism).score(AnchoredAttack(), 4)
    assert score.recovered > 0.99
    assert score.r2 is not None
    assert score.r2 > 0.999


@pytest.mark.slow  # some seconds
def test_batches_give_the_columns_though_the_weights_move():
    score = sgd().score(AnchoredAttack(), 10)
    assert score.r2 is not None
    assert score.r2 > 0.95
    assert score.recovered > 0.7


@pytest.mark.parametrize("made", [sgd, newton], ids=["sgd", "newton"])
def test_scores_that_say_nothing_of_a_row_tell_nothing(made):
    """The second proof: with scores of other rows it is no better than the controls."""
    one = made("none")
    score = one.score(AnchoredAttack(), 10, one.hidden)
    known = controls(one.truth, one.view.features, one.view.labels)
    assert not is_above(score, known)
    assert score.r2 is not None
    assert score.r2 < 0.05


def test_known_rows_keep_their_values():
    one = sgd()
    known = one.known(10)
    estimate = AnchoredAttack().estimate(one.view, known)
    assert np.array_equal(estimate.values[known.rows], known.values)


def test_the_same_view_gives_the_same_estimate():
    one = sgd()
    first, second = (AnchoredAttack().estimate(one.view, one.known(10)) for _ in range(2))
    assert np.array_equal(first.values, second.values)


def test_fewer_rows_and_stretches_stand_for_all_where_there_are_many(monkeypatch):
    """A limit on work costs accuracy, not soundness; and it is said."""

    monkeypatch.setattr(module_of(follow), "MOST_VALUES", 200 * 8 * 8)
    monkeypatch.setattr(module_of(follow), "MOST_WORK", 60 * 151_000)
    one = sgd()
    known = one.known(20)
    followed = follow(Batches.of(one.view), len(one.hers), 4, known)
    assert followed.limited
    error = np.delete(followed.values - one.hers, known.rows, axis=0)
    assert 1 - np.mean(error**2) > 0.8


def test_visits_are_the_batches_row_by_row():
    one = sgd()
    batches = Batches.of(one.view)
    visits = Visits.of(batches, len(one.hers))
    assert visits.there.sum() == batches.scored.sum()
    time, score = visits.times[7][visits.there[7]], visits.scores[7][visits.there[7]]
    event = one.view.batches[time[-1]]
    assert event.scores[event.rows == 7].tolist() == [score[-1]]


def test_nothing_known_is_no_row():
    assert KnownRows.none(3).count == 0
