"""``lattice`` and ``integer-columns``: her columns with no known row; nothing without scores."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from taciturn_audit.column_attacks.base import Ambiguity, ColumnAttack, KnownRows
from taciturn_audit.column_attacks.integer_columns import IntegerColumnsAttack
from taciturn_audit.column_attacks.lattice import LatticeAttack, hidden_table
from taciturn_audit.columns import controls, judge_columns
from taciturn_audit.results.columns import ColumnScore, is_above
from taciturn_paper.exposure import Exposed, category_table, numeric_table
from tests.seldom import seldom


@cache
def numeric(columns: int, mechanism: str = "sealed") -> Exposed:
    return Exposed.train(numeric_table(columns), mechanism)


@cache
def categories(passes: int | None = None, mechanism: str = "sealed") -> Exposed:
    return Exposed.train(category_table(), mechanism, passes)


def score(run: Exposed, attack: ColumnAttack, noise: float = 0.0) -> ColumnScore:
    nothing = KnownRows.none(run.view.columns)
    estimate = attack.estimate(run.noisy(noise) if noise else run.view, nothing)
    return judge_columns(attack.name, estimate, run.truth, nothing)


def above(run: Exposed, judged: ColumnScore) -> bool:
    return is_above(judged, controls(run.truth, run.view.features, run.view.labels))


@pytest.mark.parametrize("columns", seldom([3, 12, 20], always=[3, 12]))
def test_numeric_columns_are_reconstructed(columns):
    """Also where there are more columns than passes."""
    judged = score(numeric(columns), LatticeAttack())
    assert judged.known_rows == 0
    assert judged.recovered > 0.95
    assert judged.ambiguity == Ambiguity.SIGN.value


def test_rounded_scores_are_enough_where_passes_are_as_many_as_columns():
    assert score(numeric(10, "none"), LatticeAttack()).recovered > 0.95


@pytest.mark.parametrize(("passes", "share"), [(5, 0.7), (None, 0.85)])
def test_categories_and_counts_are_reconstructed(passes, share):
    """Five passes over 19 columns, and the default."""
    assert score(categories(passes), IntegerColumnsAttack()).recovered > share


def test_centred_indicators_are_told_by_differences_of_rows():
    assert score(categories(), LatticeAttack()).recovered > 0.75


@pytest.mark.parametrize("noise", seldom([1e-4, 1e-2], always=[1e-4]))
def test_noise_that_ends_the_one_attack_does_not_end_the_other(noise):
    assert not above(numeric(20), score(numeric(20), LatticeAttack(), noise))
    assert score(categories(), IntegerColumnsAttack(), noise).recovered > 0.85


def test_the_table_that_is_found_is_the_one_that_was_hidden():
    entropy = np.random.default_rng(2)
    table = np.rint(entropy.normal(scale=2000, size=(300, 9))).astype(np.int64)
    scores = table @ np.rint(entropy.normal(scale=2.0**27, size=(9, 5))).astype(np.int64)
    solved = hidden_table(scores, 9)
    assert solved is not None
    assert solved.solved.all()
    # Up to order and signs, entry by entry.
    assert sorted(map(tuple, np.abs(solved.values.T))) == sorted(map(tuple, np.abs(table.T)))


@pytest.mark.parametrize(("rows", "passes", "columns"), [(300, 3, 9), (12, 5, 9), (300, 60, 60)])
def test_too_few_scores_or_rows_or_too_many_columns_give_none(rows, passes, columns):
    entropy = np.random.default_rng(3)
    table = entropy.integers(-4000, 4000, (rows, columns))
    scores = table @ entropy.integers(-(2**27), 2**27, (columns, passes))
    assert hidden_table(scores, columns) is None
