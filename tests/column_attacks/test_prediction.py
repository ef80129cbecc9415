"""``prediction``: one equation a row gives one column, and nothing where it is another row's."""

from __future__ import annotations

import pytest

from taciturn.audit import controls
from taciturn.column_attacks import PredictionAttack
from taciturn.results import is_above
from tests.column_attacks.runs import newton, sgd


@pytest.mark.parametrize(
    ("made", "mechanism"),
    [(sgd, "none"), (newton, "none"), (newton, "sealed")],
    ids=["none sgd", "none newton", "sealed newton"],
)
def test_one_column_follows_from_one_known_row(made, mechanism):
    options = {"epochs": 2} if made is sgd else {"passes": 2}
    score = made(mechanism, alice_columns=1, **options).score(PredictionAttack(), 1)
    assert score.recovered == 1.0


def test_of_several_columns_it_has_the_part_that_the_score_has():
    score = newton("none").score(PredictionAttack(), 10)
    assert score.r2 is not None
    assert 0.2 < score.r2 < 0.99


@pytest.mark.parametrize("columns", [1, 4])
def test_predictions_of_other_rows_tell_nothing(columns):
    one = newton("sealed", alice_columns=columns, passes=2)
    score = one.score(PredictionAttack(), 10, one.hidden)
    assert not is_above(score, controls(one.truth, one.view.features, one.view.labels))
