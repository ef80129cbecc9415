"""Counts and labels from bin statistics: exact where they must be, and never a wrong certainty."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.arrays import IntArray
from taciturn.numerics.metrics import auc
from taciturn_audit.attacks.bin_statistics import (
    UNKNOWN,
    PublishedStatistics,
    certain_labels,
    likeliest_labels,
    majority_labels,
    recover_counts,
    total_ones,
)
from taciturn_risk.woe.weights import weights_of_evidence

COUNTED = st.lists(
    st.integers(1, 60).flatmap(lambda rows: st.tuples(st.integers(0, rows), st.just(rows))),
    min_size=2,
    max_size=8,
)


def handed(
    ones: IntArray,
    rows: IntArray,
    smoothing: float = 0.5,
    digits: int | None = None,
    rates: bool = False,
) -> PublishedStatistics:
    exact = ones / rows if rates else weights_of_evidence(ones, rows, smoothing)
    given = exact if digits is None else np.round(exact, digits)
    return PublishedStatistics(rows, given, 0.0 if rates else smoothing, digits, rates)


def both_labels(ones: IntArray, rows: IntArray) -> bool:
    return bool(0 < ones.sum() < rows.sum())


def tells_something(ones: IntArray, rows: IntArray, smoothing: float) -> bool:
    """Bins of one weight leave the total open: every total fits them."""
    weights = weights_of_evidence(ones, rows, smoothing)
    finite = np.isfinite(weights)
    return bool(np.ptp(weights[finite]) > 1e-6 or not finite.all())


@given(COUNTED, st.sampled_from([0.5, 1.0, 0.0]))
def test_weights_alone_give_every_count_exactly(pairs, smoothing):
    ones, rows = (np.array(part, dtype=np.int64) for part in zip(*pairs, strict=True))
    if not both_labels(ones, rows) or not tells_something(ones, rows, smoothing):
        return
    column = handed(ones, rows, smoothing)
    root = total_ones(column)
    if np.isfinite(weights_of_evidence(ones, rows, smoothing)).all():
        assert root == pytest.approx(ones.sum(), abs=1e-3)
    recovered = recover_counts([column])
    (counted,) = recovered.columns
    # Small tables may have two totals of the same weights; what is called exact is right.
    assert (counted.ones == ones)[counted.exact].all()
    if recovered.totals == 1:
        assert counted.exact.all()
        assert counted.ones.tolist() == ones.tolist()
    assert recovered.totals >= 1


@given(COUNTED, st.integers(0, 5), st.booleans())
def test_what_rounded_statistics_prove_is_true(pairs, digits, rates):
    ones, rows = (np.array(part, dtype=np.int64) for part in zip(*pairs, strict=True))
    if not both_labels(ones, rows):
        return
    recovered = recover_counts([handed(ones, rows, 0.5, digits, rates)])
    assert recovered.totals >= 1
    (counted,) = recovered.columns
    assert (counted.ones == ones)[counted.exact].all()


def test_columns_of_the_same_rows_narrow_each_other_down():
    """Each alone leaves several totals; together fewer."""
    first = handed(np.array([310, 90]), np.array([2000, 1500]), digits=1)
    second = handed(np.array([50, 350]), np.array([1200, 2300]), digits=1)
    alone, together = recover_counts([first]), recover_counts([first, second])
    assert together.totals < alone.totals


def test_statistics_that_fit_no_table_prove_nothing():
    wrong = PublishedStatistics(np.array([10, 10]), np.array([2.0, 1.0]), 0.5, 6)
    recovered = recover_counts([wrong])
    assert recovered.totals == 0
    assert not recovered.columns[0].exact.any()


LABELLED = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans()), min_size=2, max_size=7
)


@given(LABELLED)
def test_rows_called_certain_have_that_label_in_every_table_with_these_counts(rows):
    first, second, labels = (np.array(part, dtype=np.int64) for part in zip(*rows, strict=True))
    columns = [first, second]
    ones = [np.bincount(codes[labels == 1], minlength=3) for codes in columns]
    proven = certain_labels(columns, ones)
    possible = [
        table
        for table in itertools.product((0, 1), repeat=len(labels))
        if all(
            (np.bincount(codes, weights=table, minlength=3) == counts).all()
            for codes, counts in zip(columns, ones, strict=True)
        )
    ]
    for row, label in enumerate(proven):
        if label != UNKNOWN:
            assert {table[row] for table in possible} == {label}
    guess = likeliest_labels(columns, ones)
    assert guess.covers(len(labels))
    assert ((guess.scores > 0) == (labels == 1))[guess.certain].all()


@pytest.fixture(scope="module")
def people() -> tuple[list[IntArray], IntArray]:
    """Two thousand rows whose labels three binned columns tell in part."""
    rng = np.random.default_rng(7)
    columns = [rng.integers(0, bins, 2000) for bins in (4, 6, 3)]
    scores = 0.9 * columns[0] - 0.5 * columns[1] + 0.4 * (columns[2] == 1)
    labels = (rng.random(2000) < 1 / (1 + np.exp(-scores))).astype(np.int64)
    return columns, labels


def counts(columns: list[IntArray], labels: IntArray) -> list[IntArray]:
    return [np.bincount(codes[labels == 1], minlength=codes.max() + 1) for codes in columns]


def test_counts_alone_fit_the_logistic_regression_that_labels_would(people):
    """The likeliest labels are those of the model that both parties would have trained."""
    from sklearn.linear_model import LogisticRegression

    columns, labels = people
    guess = likeliest_labels(columns, counts(columns, labels))
    design = np.column_stack(
        [codes == place for codes in columns for place in range(codes.max() + 1)]
    ).astype(float)
    model = LogisticRegression(C=1e6, max_iter=2000).fit(design, labels)
    assert guess.scores == pytest.approx(model.decision_function(design), abs=0.02)
    assert auc(guess.scores, labels) > 0.7


def test_a_majority_is_certain_in_pure_bins_alone():
    codes, labels = np.array([0, 0, 1, 1, 1]), np.array([1, 1, 0, 0, 1])
    guess = majority_labels([codes], counts([codes], labels))
    assert guess.certain.tolist() == [True, True, False, False, False]
    assert (guess.scores > 0).tolist() == [True, True, False, False, False]
