"""Sums over all rows: what they prove, what they only suggest, and that they say no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from audit.tests.attacks.evidence import numbers
from audit.tests.attacks.whole_table import played

from taciturn.arrays import BoolArray, FloatArray
from taciturn.numerics.metrics import auc
from taciturn_audit.attacks.base import LabelGuess
from taciturn_audit.attacks.moments import MomentsAttack

FLIPPED: dict[str, Any] = {"mechanism": "label-rr", "epsilon": 1.0, "base_mechanism": "none"}


def columns(rows: int, width: int, seed: int = 1) -> FloatArray:
    return np.random.default_rng(seed).normal(size=(rows, width))


def entropy(rows: int, seed: int = 2) -> FloatArray:
    return np.random.default_rng(seed).integers(0, 2, rows).astype(float)


def with_category(table: FloatArray, *members: int) -> FloatArray:
    """A further column: 1 for these rows, 0 for the others."""
    column = np.zeros((len(table), 1))
    column[list(members)] = 1.0
    return np.hstack([table, column])


def right(guess: LabelGuess, labels: FloatArray) -> BoolArray:
    same: BoolArray = (guess.scores > 0) == (labels == 1)
    return same


def guess(
    table: FloatArray, labels: FloatArray, bob: FloatArray | None = None, **agreed: Any
) -> LabelGuess:
    return MomentsAttack().infer(played(table, labels, bob, **agreed))


# --- rows that stand alone ----------------------------------------------------------------------


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("bobs", [0, 1, 3])
@pytest.mark.parametrize("centred", [False, True])
def test_a_category_of_one_row_tells_its_label(label, bobs, centred):
    table, labels = with_category(columns(300, 4), 17), entropy(300)
    labels[17] = label
    bob = np.hstack([np.ones((300, 1)), columns(300, bobs - 1, seed=3)]) if bobs else None
    answer = guess(table - centred * table.mean(axis=0), labels, bob)
    assert np.flatnonzero(answer.certain).tolist() == [17]
    assert right(answer, labels)[17]
    assert numbers(answer.remark)[0] == 1


@pytest.mark.parametrize(("labels_of_two", "proven"), [((1, 1), 2), ((0, 0), 2), ((0, 1), 0)])
def test_two_rows_of_a_category_are_told_where_they_agree(labels_of_two, proven):
    labels = entropy(300)
    labels[[17, 40]] = labels_of_two
    answer = guess(with_category(columns(300, 4), 17, 40), labels)
    assert np.count_nonzero(answer.certain) == proven
    assert right(answer, labels)[answer.certain].all()


@pytest.mark.parametrize(
    ("table", "bob"),
    [
        (with_category(columns(300, 4), *range(20)), None),
        (columns(24, 1), None),
        (columns(30, 7), columns(30, 4, seed=9)),
    ],
    ids=["a category of many rows", "fewer bits than labels", "columns at Bob"],
)
def test_sums_that_leave_every_row_open_prove_nothing(table, bob):
    assert not guess(table, entropy(len(table)), bob).certain.any()


# --- all labels at once -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "width", "agreed"),
    # By a lattice, by the smallest box, with weights of the classes, and of flipped labels.
    [(30, 7, {}), (24, 20, {}), (24, 7, {"class_weight": (0.25, 1.0)}), (24, 8, FLIPPED)],
)
@pytest.mark.parametrize("intercept", [False, True])
def test_few_rows_are_told_altogether(rows, width, agreed, intercept):
    labels = entropy(rows)
    bob = np.ones((rows, 1)) if intercept else None
    answer = guess(columns(rows, width), labels, bob, **agreed)
    assert right(answer, labels).all()
    assert answer.certain.all()
    assert not answer.limited


def test_rows_that_can_be_exchanged_are_not_called_certain():
    table, labels = columns(24, 8), entropy(24)
    table[5] = table[3]
    labels[[3, 5]] = 0, 1
    answer = guess(table, labels)
    assert np.flatnonzero(~answer.certain).tolist() == [3, 5]
    assert right(answer, labels)[answer.certain].all()


def test_it_works_where_there_are_more_columns_than_rows():
    labels = entropy(20)
    answer = guess(columns(20, 50), labels, columns(20, 3, seed=9))
    # Every row stands alone, whatever Bob has.
    assert answer.certain.all()
    assert right(answer, labels).all()


# --- the guess, chance and limits ---------------------------------------------------------------


def test_what_the_columns_say_is_guessed():
    table = columns(400, 3)
    labels = (table[:, 0] + 0.5 * columns(400, 1, seed=7)[:, 0] > 0).astype(float)
    answer = guess(table, labels)
    assert auc(answer.scores, labels) > 0.9
    assert not answer.certain.any()


@pytest.mark.parametrize("bobs", [0, 1, 3])
def test_nothing_certain_is_wrong(bobs):
    for seed in range(12):
        table = with_category(columns(40, 2 + seed % 3, seed=seed), seed)
        labels = entropy(40, seed=seed)
        bob = np.hstack([np.ones((40, 1)), columns(40, bobs - 1, seed=30 + seed)]) if bobs else None
        answer = MomentsAttack().infer(played(table, labels, bob, seed=seed))
        assert right(answer, labels)[answer.certain].all()


def test_a_limit_is_said_and_counted():
    view = played(columns(40, 6), entropy(40))
    answer, again = (MomentsAttack().infer(view) for _ in range(2))
    assert answer.work == again.work
    assert (answer.scores == again.scores).all()
    # More rows than a lattice is reduced for, though the sums hold their labels.
    beyond = MomentsAttack(most_rows=30).infer(view)
    assert beyond.limited
