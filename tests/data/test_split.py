from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import RawData
from taciturn.data.split import (
    ColumnSplit,
    Partition,
    deal,
    prepare_vertical,
    random_partition,
    split_columns,
)
from taciturn.data.user_table import user_data
from taciturn.errors import ColumnError, ConfigError, LabelValueError, ShapeError
from taciturn.rng import KeyedEntropy
from tests.expected import refused

COLUMNS = ("age", "job=baker", "job=clerk", "rate", "debt")
SOURCES = ("age", "job", "job", "rate", "debt")


def test_what_is_no_split_is_refused():
    with refused(ColumnError):
        split_columns("all", (), ())
    with refused(ShapeError):
        Partition(np.array([0, 1]), np.array([1]))


@given(st.integers(2, 300), st.floats(0.01, 0.99), st.integers(0, 99))
def test_a_partition_places_every_row_once(rows, fraction, seed):
    held_out = math.ceil(fraction * rows)
    if held_out == rows:
        with refused(ShapeError):
            random_partition(rows, fraction, KeyedEntropy.from_seed(seed))
        return
    parts = random_partition(rows, fraction, KeyedEntropy.from_seed(seed))
    assert len(parts.test) == held_out
    assert sorted([*parts.train, *parts.test]) == list(range(rows))


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, 2.0, float("nan")])
def test_fractions_out_of_range_are_refused(fraction):
    with refused(ConfigError):
        random_partition(10, fraction, KeyedEntropy.from_seed(1))


@pytest.mark.parametrize(
    ("spec", "alice"),
    [
        ("all", COLUMNS),
        ("half", COLUMNS[:3]),
        ("equal", COLUMNS[:3]),
        (1, COLUMNS[:1]),
        ("4", COLUMNS[:4]),
        (5, COLUMNS),
        ("debt,age", ("age", "debt")),
        ("job, rate", ("job=baker", "job=clerk", "rate")),
        ("job=clerk", ("job=clerk",)),
        (["job", "debt"], ("job=baker", "job=clerk", "debt")),
    ],
)
def test_column_splits(spec, alice):
    bob = tuple(name for name in COLUMNS if name not in alice)
    assert split_columns(spec, COLUMNS, SOURCES) == ColumnSplit((alice,), bob)


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        (0, "0 of 5"),
        (6, "6 of 5"),
        ("-1", "-1 of 5"),
        (True, "half"),
        ("agee", ("'agee'", "age")),
        ("", "half"),
        (",", "half"),
        ("age,age", "'age'"),
        ("job,job=baker", "'job=baker'"),
        ([], "half"),
    ],
)
def test_unfit_splits_are_refused(spec, names):
    with refused(ColumnError, names=names) as caught:
        split_columns(spec, COLUMNS, SOURCES)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("spec", "parties", "alices"),
    [
        ("all", 2, (COLUMNS[:3], COLUMNS[3:])),
        ("all", 4, (("age",), ("job=baker", "job=clerk"), ("rate",), ("debt",))),
        ("all", 5, tuple((name,) for name in COLUMNS)),
        ("half", 2, (("age",), ("job=baker", "job=clerk"))),
        ("half", 3, (("age",), ("job=baker",), ("job=clerk",))),
        ("equal", 2, (("age", "job=baker", "job=clerk"), ("rate",))),
        ("equal", 4, tuple((name,) for name in COLUMNS[:4])),
        (3, 2, (("age",), ("job=baker", "job=clerk"))),
        ("debt,age", 2, (("age",), ("debt",))),
        (["rate", "job"], 2, (("job=baker", "job=clerk"), ("rate",))),
        ("debt,age;job", 2, (("age", "debt"), ("job=baker", "job=clerk"))),
        ("rate ; job=clerk ; debt", 3, (("rate",), ("job=clerk",), ("debt",))),
    ],
)
def test_several_alices_are_dealt_their_columns(spec, parties, alices):
    split = split_columns(spec, COLUMNS, SOURCES, parties=parties)
    assert split.alices == alices
    assert sorted([*split.alice, *split.bob]) == sorted(COLUMNS)


@pytest.mark.parametrize(
    ("spec", "parties", "names", "setting"),
    [
        ("all", 6, (6, 5), "parties"),
        ("age", 2, (2, 1), "parties"),
        ("equal", 6, (6, 5), "parties"),
        ("age;job", 1, (2, 1), "alice_columns"),
        ("age;job", 3, (2, 3), "alice_columns"),
        ("age;job,age", 2, "'age'", "alice_columns"),
        ("age;", 2, (), "alice_columns"),
    ],
)
def test_splits_that_do_not_fit_the_parties_are_refused(spec, parties, names, setting):
    with refused(ColumnError, setting=setting, names=names) as raised:
        split_columns(spec, COLUMNS, SOURCES, parties=parties)
    assert raised.value.hint


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.integers(1, 16))
def test_parts_cover_all_columns_in_order_and_nobody_goes_away_empty(groups, parties):
    sources = [f"s{number}" for number, size in enumerate(groups) for _ in range(size)]
    columns = [f"c{number}" for number in range(len(sources))]
    if parties > len(columns):
        with refused(ColumnError):
            split_columns("all", columns, sources, parties=parties)
        return
    split = split_columns("all", columns, sources, parties=parties)
    assert [*split.alice] == columns
    assert split.bob == ()
    assert len(split.alices) == parties
    assert all(split.alices)
    owners = {
        source: {number for number, part in enumerate(split.alices) if name in part}
        for name, source in zip(columns, sources, strict=True)
    }
    widths = [len(part) for part in split.alices]
    if parties <= len(groups):
        assert all(len(whose) == 1 for whose in owners.values())
    else:
        assert max(widths) - min(widths) <= 1
    if max(groups) == 1:
        assert max(widths) - min(widths) <= 1


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(1, 5))
def test_no_way_to_keep_groups_together_is_more_even(groups, parties):
    if parties > len(groups):
        return
    sources = [f"s{number}" for number, size in enumerate(groups) for _ in range(size)]
    cuts = combinations(range(1, len(groups)), parties - 1)
    ways = ([0, *cut, len(groups)] for cut in cuts)
    least = min(sum(sum(groups[i:j]) ** 2 for i, j in pairwise(way)) for way in ways)
    assert sum(width**2 for width in deal(sources, parties)) == least


@given(st.integers(2, 60), st.integers(1, 16))
def test_equal_parts_are_equal_to_bobs(columns, parties):
    names = [f"c{number}" for number in range(columns)]
    if parties > columns:
        return
    split = split_columns("equal", names, names, parties=parties)
    widths = [*map(len, split.alices), len(split.bob)]
    assert max(widths) - min(widths) <= 1
    if parties == 1:
        assert split == split_columns("half", names, names)


@pytest.fixture
def raw():
    rows = 20
    frame = pl.DataFrame(
        {
            "who": [f"r{i}" for i in range(rows)],
            "age": [20.0 + i * i for i in range(rows)],
            "job": ["clerk", "baker", "actor", None] * 5,
            "y": [0, 1] * 10,
        }
    )
    return user_data(frame, label_column="y", id_column="who")


def _parts(raw: RawData) -> Partition:
    return random_partition(raw.rows, 0.3, KeyedEntropy.from_seed(4))


def test_vertical_data_fits_together(raw):
    parts = _parts(raw)
    data = prepare_vertical(raw, parts, "job", intercept=False)
    assert data.alice_train.columns == ("job=baker", "job=clerk", "job=(missing)")
    assert data.bob_train.columns == data.bob_test.columns == ("age",)
    data.alice_train.ids.require_same(data.bob_train.ids)
    data.alice_train.ids.require_same(data.labels_train.ids)
    data.alice_test.ids.require_same(data.labels_test.ids)
    assert data.alice_train.ids == raw.ids.take(parts.train)
    assert data.labels_test == raw.labels.take(parts.test)
    assert data.alice_train.rows + data.alice_test.rows == raw.rows
    assert data.bob_train.values.mean() == pytest.approx(0)
    assert data.bob_train.values.std() == pytest.approx(1)
    assert data.notes == data.preparation.notes


def test_the_joined_table_of_several_alices_has_their_parts_in_it(raw):
    data = prepare_vertical(raw, _parts(raw), "job;age", intercept=False, parties=2)
    assert data.alice_train.columns == ("job=baker", "job=clerk", "job=(missing)", "age")
    parts = data.alice_train_parts
    assert {name: len(part.columns) for name, part in parts.items()} == {"alice-1": 3, "alice-2": 1}
    joined = np.hstack([part.values for part in parts.values()])
    assert np.array_equal(joined, data.alice_train.values)
    one = prepare_vertical(raw, _parts(raw), "job", intercept=False)
    assert (one.alices, one.alice_train_parts) == ((), {})


def test_statistics_come_from_the_training_rows_only(raw):
    parts = _parts(raw)
    before = prepare_vertical(raw, parts, "all", intercept=False)
    held_out = pl.Series(np.isin(np.arange(raw.rows), parts.test))
    frame = raw.frame.with_columns(
        age=pl.when(held_out).then(1e6).otherwise("age"),
        job=pl.when(held_out).then(pl.lit("astronaut")).otherwise("job"),
    )
    changed = RawData(raw.name, frame, raw.ids, raw.labels, raw.settings)
    after = prepare_vertical(changed, parts, "all", intercept=False)
    assert after.preparation == before.preparation
    assert after.alice_train.digest() == before.alice_train.digest()
    assert after.alice_test.digest() != before.alice_test.digest()
    # An unknown job is what the training rows' jobs are on average.
    average = after.alice_train.select(["job=baker", "job=clerk"]).values.mean(axis=0)
    unknown = after.alice_test.select(["job=baker", "job=clerk"]).values
    assert np.allclose(unknown, average)


def test_one_class_in_training_is_refused(raw):
    labels = LabelTable(raw.ids, np.zeros(raw.rows, dtype=np.int8))
    same = RawData(raw.name, raw.frame, raw.ids, labels, raw.settings)
    with refused(LabelValueError):
        prepare_vertical(same, _parts(raw), "all", intercept=False)
