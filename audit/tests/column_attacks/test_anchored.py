"""``anchored`` and ``prediction``: what they do with fewer equations than columns."""

from __future__ import annotations

import numpy as np
from audit.tests.column_attacks.runs import newton, sgd

from taciturn_audit.column_attacks.base import KnownRows
from taciturn_audit.column_attacks.motion import follow
from taciturn_audit.column_attacks.regression import PredictionAttack
from taciturn_audit.column_attacks.scores import Batches, Visits
from tests.modules import module_of


def test_fewer_rows_and_stretches_stand_for_all_where_there_are_many(monkeypatch):
    """A limit on work costs accuracy, not soundness; and it is said."""

    monkeypatch.setattr(module_of(follow), "MOST_VALUES", 200 * 8 * 8)
    monkeypatch.setattr(module_of(follow), "MOST_WORK", 60 * 151_000)
    one = sgd("none")
    known = one.known(20)
    followed = follow(Batches.from_view(one.view), len(one.hers), 4, known)
    assert followed.limited
    error = np.delete(followed.values - one.hers, known.rows, axis=0)
    assert 1 - np.mean(error**2) > 0.8


def test_visits_are_the_batches_row_by_row():
    one = sgd("none")
    batches = Batches.from_view(one.view)
    visits = Visits.from_batches(batches, len(one.hers))
    assert visits.there.sum() == batches.scored.sum()
    time, score = visits.times[7][visits.there[7]], visits.scores[7][visits.there[7]]
    event = one.view.batches[time[-1]]
    assert event.scores[event.rows == 7].tolist() == [score[-1]]


def test_nothing_known_is_no_row():
    assert KnownRows.none(3).count == 0


def test_of_several_columns_a_prediction_has_the_part_that_the_score_has():
    score = newton("none").score(PredictionAttack(), 10)
    assert score.r2 is not None
    assert 0.2 < score.r2 < 0.99
