from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import ColumnError, LabelValueError
from taciturn_paper.datasets import Layout, canonical, digest, written
from tests.expected import refused

Row = tuple[Decimal | float | None, str | None, bool]

LAYOUT = Layout(
    numeric=frozenset({"n"}),
    features=("n", "t"),
    label="y",
    label_aliases=("class",),
    classes=("no", "yes"),
)
DECIMALS = st.decimals(-1000, 1000, places=9)
ROWS = st.lists(
    st.tuples(st.none() | DECIMALS, st.none() | st.sampled_from("abc"), st.booleans()),
    min_size=1,
    max_size=8,
)


def _frame(rows: Sequence[Row], *, missing: str | None = None) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "y": ["yes" if y else "no" for _, _, y in rows],
            "t": [missing if t is None else t for _, t, _ in rows],
            "n": [None if n is None else float(n) for n, _, _ in rows],
        },
        schema={"y": pl.String, "t": pl.String, "n": pl.Float64},
    )


@given(ROWS, st.randoms(use_true_random=False))
def test_order_of_rows_and_marks_for_missing_do_not_matter(rows, shuffler):
    table = canonical(_frame(rows), LAYOUT)
    mixed = list(rows)
    shuffler.shuffle(mixed)
    again = canonical(_frame(mixed, missing=" ? ").rename({"y": "class"}), LAYOUT)
    assert table.equals(again)
    assert digest(table) == digest(again)
    assert canonical(written(table, LAYOUT), LAYOUT).equals(table)


@given(ROWS, st.sampled_from([-1, 1]))
def test_a_last_bit_does_not_matter_and_a_last_decimal_does(rows, way):
    table = canonical(_frame(rows), LAYOUT)
    nudged = _frame(rows).with_columns(
        pl.col("n").map_elements(lambda v: math.nextafter(v, way * 1e9), return_dtype=pl.Float64)
    )
    assert canonical(nudged, LAYOUT).equals(table)
    moved = _frame(rows).with_columns(pl.col("n") + 1e-9)
    same = all(n is None for n, _, _ in rows)
    assert (digest(canonical(moved, LAYOUT)) == digest(table)) == same


def test_rows_are_sorted_by_all_columns_with_nulls_last():
    rows: list[Row] = [
        (2, "a", True),
        (1, None, True),
        (1, "b", True),
        (1, "b", False),
        (None, "a", True),
    ]
    assert canonical(_frame(rows), LAYOUT).rows() == [
        (1.0, "b", 0),
        (1.0, "b", 1),
        (1.0, None, 1),
        (2.0, "a", 1),
        (None, "a", 1),
    ]


def test_minus_zero_is_zero():
    assert digest(canonical(_frame([(-0.0, "a", True)]), LAYOUT)) == digest(
        canonical(_frame([(0.0, "a", True)]), LAYOUT)
    )


def test_strange_labels_and_absent_columns_are_refused():
    frame = _frame([(1, "a", True)])
    with refused(LabelValueError):
        canonical(frame.with_columns(pl.lit("maybe").alias("y")), LAYOUT)
    with refused(ColumnError, names="'t'"):
        canonical(frame.drop("t"), LAYOUT)
