"""``gram``: her rows up to a linear map, from Bob's own steps; blind where scores are another's."""

from __future__ import annotations

import pytest

from taciturn.audit import controls
from taciturn.column_attacks import GramAttack
from taciturn.results import is_above
from tests.column_attacks.runs import newton, sgd


@pytest.mark.parametrize("mechanism", ["none", "sealed"])
@pytest.mark.parametrize("known", [0, 6])
def test_as_many_passes_as_columns_give_the_rows(mechanism, known):
    score = newton(mechanism).score(GramAttack(), known)
    assert score.known_rows == known
    assert score.recovered > 0.98


def test_batches_give_most_of_them():
    score = sgd().score(GramAttack(), 0)
    assert score.r2 is not None
    assert score.r2 > 0.8


@pytest.mark.parametrize("made", [sgd, newton], ids=["sgd", "newton"])
@pytest.mark.parametrize("known", [0, 10])
def test_scores_that_say_nothing_of_a_row_tell_nothing(made, known):
    one = made("none")
    score = one.score(GramAttack(), known, one.hidden)
    assert not is_above(score, controls(one.truth, one.view.features, one.view.labels))
    assert score.r2 is not None
    assert score.r2 < 0.1
