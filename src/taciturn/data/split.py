"""Splits: which rows are for training, and which columns go to whom."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, groupby, pairwise

import numpy as np
import polars as pl

from taciturn.arrays import IndexArray
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import Preparation, RawData, fit, prepared_table
from taciturn.data.rules import NumericRule
from taciturn.data.tables import FeatureTable
from taciturn.data.target_leakage import leakage_notes, width_notes
from taciturn.errors import ColumnError, ConfigError, ShapeError, counted, nearest
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint

_FORMS = 'use "all", "half", "equal", a number of columns, or names separated by commas'


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Positions of the training rows, in training order, and of the test rows."""

    train: IndexArray
    test: IndexArray

    def __post_init__(self) -> None:
        if not (len(self.train) and len(self.test)):
            raise ShapeError(
                f"{len(self.train)} rows would be left for training and {len(self.test)} for "
                "testing",
                hint="both parts need a row: use more rows or another test fraction",
            )
        everything = np.concatenate([self.train, self.test])
        if len(np.unique(everything)) != len(everything):
            raise ShapeError(
                "a row is in both the training and the test rows, or is repeated",
                hint="give every row one place",
            )


def training_rows(rows: int, test_fraction: float) -> int:
    """Number of training rows: the number of test rows is rounded up."""
    return rows - math.ceil(test_fraction * rows)


def random_partition(rows: int, test_fraction: float, entropy: Entropy) -> Partition:
    """Draw the test rows; their number is rounded up, as in scikit-learn."""
    if not 0 < test_fraction < 1:
        raise ConfigError(
            f"the test fraction is {test_fraction}",
            setting="test_fraction",
            hint="use a number between 0 and 1, such as 0.2",
        )
    order = entropy.permutation(rows)
    held_out = rows - training_rows(rows, test_fraction)
    return Partition(train=order[held_out:], test=order[:held_out])


@dataclass(frozen=True, slots=True)
class ColumnSplit:
    """Output columns of each party, in the table's order."""

    alices: tuple[tuple[str, ...], ...]
    bob: tuple[str, ...]

    @property
    def alice(self) -> tuple[str, ...]:
        """Columns of all Alices, one after the other."""
        return tuple(chain.from_iterable(self.alices))


def split_columns(
    spec: str | int | Sequence[str],
    columns: Sequence[str],
    sources: Sequence[str],
    left_out: Sequence[str] = (),
    parties: int = 1,
) -> ColumnSplit:
    """Divide the columns between the parties.

    Several Alices are dealt theirs in order, as evenly as can be. What one source column gives
    stays with one of them, unless there are fewer source columns than Alices.

    ``spec`` is what the Alices get: "all"; "half" (the first half, rounded up); "equal" (as many
    for each Alice as for Bob); a number (counted from the first); or names, in a sequence or
    separated by commas, each an output column or a source column, which stands for all the columns
    it gives. Names with semicolons between them are those of one Alice each. Raw columns in
    ``left_out`` give no output column.
    """
    if not columns:
        raise ColumnError("there are no columns to split", hint="use data with a varying column")
    alices = _chosen(_groups(spec, columns, parties), columns, sources, left_out)
    taken = set().union(*alices)
    if len(alices) == 1:
        alices = _dealt(
            _in_order(columns, taken), dict(zip(columns, sources, strict=True)), parties
        )
    if len(alices) != parties:
        raise ColumnError(
            f"the columns of {counted(len(alices), 'Alice')} are named, and there "
            f"{'is' if parties == 1 else 'are'} {parties}",
            setting="alice_columns",
            hint=Hint("use {parties}, or name the columns of each Alice", parties=len(alices)),
        )
    bob = tuple(name for name in columns if name not in taken)
    return ColumnSplit(tuple(_in_order(columns, names) for names in alices), bob)


def _dealt(columns: Sequence[str], sources: Mapping[str, str], parties: int) -> list[set[str]]:
    widths = deal([sources[name] for name in columns], parties)
    return [{*columns[place]} for place in _consecutive_slices(widths)]


def deal(sources: Sequence[str], parties: int) -> list[int]:
    """Number of columns of each Alice, given the source column of each column."""
    if parties > len(sources):
        raise ColumnError(
            f"{counted(parties, 'Alice')} cannot share {counted(len(sources), 'column')}",
            setting="parties",
            hint=Hint("use fewer {parties}, or let {alice_columns} give them more"),
        )
    sizes = [len([*same]) for _, same in groupby(sources)]
    if len(sizes) < parties or len(sizes) == len(sources):
        return _even(len(sources), parties)
    return _least_squares(sizes, parties)


def _least_squares(sizes: Sequence[int], parts: int) -> list[int]:
    """Sizes of ``parts`` runs of groups, none empty, of the least sum of squared sizes.

    By dynamic programming over the groups; of equal sums the one with larger parts first.
    """
    ends = np.concatenate([[0], np.cumsum(sizes)])
    best, begins = ends.astype(float) ** 2, []
    for _ in range(parts - 1):
        # Without a group there is no part.
        best[0] = math.inf
        before, begin = best, np.zeros(len(ends), dtype=int)
        best = np.full(len(ends), math.inf)
        for stop in range(1, len(ends)):
            sums = before[:stop] + (ends[stop] - ends[:stop]) ** 2
            begin[stop] = stop - 1 - int(np.argmin(sums[::-1]))
            best[stop] = sums[begin[stop]]
        begins.append(begin)
    stops = [len(sizes)]
    for begin in reversed(begins):
        stops.append(int(begin[stops[-1]]))
    widths: list[int] = np.diff(ends[[0, *reversed(stops)]]).tolist()
    return widths


def _consecutive_slices(widths: Iterable[int]) -> list[slice]:
    """Slices of consecutive parts of these widths.

    >>> _consecutive_slices([3, 2])
    [slice(0, 3, None), slice(3, 5, None)]
    """
    return [slice(*ends) for ends in pairwise(accumulate(widths, initial=0))]


def _even(count: int, parts: int) -> list[int]:
    size, over = divmod(count, parts)
    return [size + (number < over) for number in range(parts)]


def alice_names(count: int) -> tuple[str, ...]:
    """Names of several simulated Alices."""
    return tuple(f"alice-{number}" for number in range(1, count + 1))


@dataclass(frozen=True, slots=True, eq=False)
class VerticalData:
    """Prepared tables of each party, for training and for testing.

    Where ``held_out`` is false, the test rows are the training rows. ``alices`` has the names of
    several Alices, and the place of each one's columns among Alice's, which are those of all; it is
    empty where there is one.
    """

    alice_train: FeatureTable
    bob_train: FeatureTable
    labels_train: LabelTable
    alice_test: FeatureTable
    bob_test: FeatureTable
    labels_test: LabelTable
    preparation: Preparation
    notes: tuple[str, ...]
    held_out: bool = True
    alices: tuple[tuple[str, slice], ...] = ()

    @property
    def intercept(self) -> bool:
        """Whether Bob's last column is the intercept."""
        return bool(self.bob_train.free)

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of each of several Alices."""
        return tuple(place.stop - place.start for _, place in self.alices)

    @property
    def alice_train_parts(self) -> dict[str, FeatureTable]:
        """Training table of each of several Alices, by name."""
        return self._dealt(self.alice_train)

    @property
    def alice_test_parts(self) -> dict[str, FeatureTable]:
        """Test table of each of several Alices, by name."""
        return self._dealt(self.alice_test)

    def _dealt(self, table: FeatureTable) -> dict[str, FeatureTable]:
        return {name: table.select(table.columns[place]) for name, place in self.alices}


def prepare_vertical(
    raw: RawData,
    partition: Partition,
    spec: str | int | Sequence[str],
    *,
    intercept: bool,
    parties: int = 1,
) -> VerticalData:
    """Fit and apply the preparation; divide the columns by ``spec`` as in ``split_columns``."""
    train, test = partition.train, partition.test
    train_ids = raw.ids.take(train)
    plan = fit(raw.frame, raw.settings, raw.vocabularies, ids=train_ids, rows=train)
    used = {*plan.sources}
    left_out = [name for name in raw.frame.columns if name not in used]
    split = split_columns(spec, plan.columns, plan.sources, left_out, parties)
    labels_train = raw.labels.take(train).standardised(intercept=intercept)
    labels_train.require_variation()

    alice_train, bob_train = _tables(plan, split, raw.frame, train_ids, intercept, train)
    alice_test, bob_test = _tables(plan, split, raw.frame, raw.ids.take(test), intercept, test)
    # Columns of the paper's datasets have been looked over.
    tables = (alice_train, bob_train) if raw.own else ()
    remarks = [note for table in tables for note in leakage_notes(table, labels_train)]
    remarks += width_notes(len(plan.columns), len(train))
    return VerticalData(
        alice_train=alice_train,
        bob_train=bob_train,
        labels_train=labels_train,
        alice_test=alice_test,
        bob_test=bob_test,
        labels_test=replace(raw.labels.take(test), response=labels_train.response),
        preparation=plan,
        notes=(*plan.notes, *remarks),
        alices=_places(split),
    )


def _places(split: ColumnSplit) -> tuple[tuple[str, slice], ...]:
    if len(split.alices) == 1:
        return ()
    places = _consecutive_slices(map(len, split.alices))
    return tuple(zip(alice_names(len(places)), places, strict=True))


NOT_HELD_OUT = "no row was held out: the figures of held-out rows are those of the training rows"


def whole_vertical(
    raw: RawData, spec: str | int | Sequence[str], *, intercept: bool, parties: int = 1
) -> VerticalData:
    """Like ``prepare_vertical``, with every row in training and unprepared."""
    plan = Preparation(tuple(NumericRule(name) for name in raw.frame.columns), (NOT_HELD_OUT,))
    split = split_columns(spec, plan.columns, plan.sources, parties=parties)
    labels = raw.labels.standardised(intercept=intercept)
    labels.require_variation()
    alice, bob = _tables(plan, split, raw.frame, raw.ids, intercept)
    return VerticalData(
        alice_train=alice,
        bob_train=bob,
        labels_train=labels,
        alice_test=alice,
        bob_test=bob,
        labels_test=labels,
        preparation=plan,
        notes=plan.notes,
        held_out=False,
        alices=_places(split),
    )


def _tables(
    plan: Preparation,
    split: ColumnSplit,
    frame: pl.DataFrame,
    ids: RowIds,
    intercept: bool,
    rows: IndexArray | None = None,
) -> tuple[FeatureTable, FeatureTable]:
    # One party at a time: the full matrix of both is never in memory beside its parts.
    alice, bob = (
        prepared_table(plan, frame, ids, columns=columns, rows=rows, intercept=ones)
        for columns, ones in ((split.alice, False), (split.bob, intercept))
    )
    return alice, bob


def _groups(
    spec: str | int | Sequence[str], columns: Sequence[str], parties: int
) -> list[Sequence[str]]:
    """Column names of each Alice; one group where the specification does not separate them."""
    if isinstance(spec, bool):
        raise ColumnError("Alice's columns are given as a truth value", hint=_FORMS)
    if isinstance(spec, str):
        spec = _counted(spec, len(columns), parties)
    if isinstance(spec, str):
        return [[name.strip() for name in group.split(",")] for group in spec.split(";")]
    return [_leading(spec, columns) if isinstance(spec, int) else spec]


def _counted(spec: str, width: int, parties: int) -> int | str:
    if spec == "all":
        return width
    if spec == "half":
        return (width + 1) // 2
    if spec == "equal":
        return width - _even(width, parties + 1)[-1]
    return int(spec) if spec.strip().lstrip("+-").isdecimal() else spec


def _leading(count: int, columns: Sequence[str]) -> Sequence[str]:
    if not 1 <= count <= len(columns):
        raise ColumnError(
            f"Alice cannot get {count} of {len(columns)} columns",
            setting="alice_columns",
            hint=f"use a number from 1 to {len(columns)}",
        )
    return columns[:count]


def _in_order(columns: Sequence[str], chosen: set[str]) -> tuple[str, ...]:
    return tuple(name for name in columns if name in chosen)


def _chosen(
    groups: Sequence[Sequence[str]],
    columns: Sequence[str],
    sources: Sequence[str],
    left_out: Sequence[str],
) -> list[set[str]]:
    taken: set[str] = set()
    chosen: list[set[str]] = [set() for _ in groups]
    present, given = {*columns}, defaultdict[str, list[str]](list)
    for column, source in zip(columns, sources, strict=True):
        given[source].append(column)
    for group, name in ((group, name) for group, names in enumerate(groups) for name in names):
        if name == "":
            continue
        meant = [name] if name in present else given.get(name, [])
        if not meant and name in left_out:
            raise ColumnError(
                f"column {name!r} is left out as free text, and nobody can have it",
                setting="alice_columns",
                hint=Hint("take it as categories: {type}; or name others", type={name: "category"}),
            )
        if not meant:
            known = list(dict.fromkeys([*sources, *columns]))
            raise ColumnError(
                f"there is no column {name!r}", setting="alice_columns", hint=nearest(name, known)
            )
        if taken.intersection(meant):
            raise ColumnError(
                f"column {name!r} is named twice",
                setting="alice_columns",
                hint="name every column once",
            )
        taken.update(meant)
        chosen[group].update(meant)
    if not all(chosen):
        raise ColumnError("no column is assigned to Alice", setting="alice_columns", hint=_FORMS)
    return chosen
