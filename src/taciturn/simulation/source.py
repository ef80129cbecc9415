"""From settings to two parties' tables: which rows, which columns, prepared how."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import polars as pl

from taciturn.data import datasets
from taciturn.data.prepare import RawData
from taciturn.data.split import VerticalData, prepare_vertical, random_partition, whole_vertical
from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.data.user_table import (
    DEFAULTS,
    UserTable,
    chosen,
    unknown_columns,
    unlabelled_data,
    user_data,
)
from taciturn.errors import ConfigError
from taciturn.faces import Hint
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings, missing_label
from taciturn.simulation.coins import DataCoins

_NAME_DATA = Hint(
    "use {dataset}, or {data} with {label}", dataset="NAME", data="FILE", label="COLUMN"
)
_NAME_COLUMNS = Hint("use {dataset}, {data} or {columns}", dataset="NAME", data="FILE", columns=30)


def load_raw(settings: Settings, table: object = None, labels: object = None) -> RawData:
    """The rows that the settings name, or a table given in Python.

    ``table`` is a frame with a label column; or columns alone, where labels are given.
    """
    if labels is not None:
        return _columns_and_labels(settings, table, labels)
    if table is None and settings.data is None:
        return _load_dataset(settings, _NAME_DATA)
    if settings.label is None:
        raise missing_label()
    return user_data(
        settings.data if table is None else table,
        id_column=settings.id,
        label_column=settings.label,
        table=UserTable.of(settings),
    )


def load_features(settings: Settings, table: object = None) -> RawData:
    """The rows of one party's table, for a look at its columns; the labels mean nothing."""
    if table is None and settings.data is None:
        return _load_dataset(settings, _NAME_COLUMNS)
    return unlabelled_data(
        settings.data if table is None else table,
        id_column=settings.id,
        label_column=settings.label,
        table=UserTable.of(settings),
    )


def _columns_and_labels(settings: Settings, table: object, labels: object) -> RawData:
    columns = (
        table if isinstance(table, FeatureTable) else FeatureTable.of(table, id_column=settings.id)
    )
    truth = labels if isinstance(labels, LabelTable) else LabelTable.of(labels, ids=columns.ids)
    truth.ids.require_same(columns.ids, names=("the labels", "the columns"))
    return RawData(
        name="own data",
        frame=pl.from_numpy(columns.values, schema=list(columns.columns)),
        ids=columns.ids,
        labels=truth,
        settings=chosen(DEFAULTS, settings),
        own=True,
    )


def _load_dataset(settings: Settings, hint: Hint) -> RawData:
    if settings.dataset is None:
        raise ConfigError("no data is named", setting="dataset", hint=hint)
    directory = Path(settings.data_dir) if settings.data_dir else None
    raw = datasets.load(settings.dataset, data_dir=directory)
    prepared = chosen(raw.settings, settings)
    for problem in unknown_columns(prepared, raw.frame.columns):
        raise problem
    return replace(raw, settings=prepared)


Source: TypeAlias = RawData | VerticalData
"""Rows to be split and prepared, or two parties' tables as they are."""


def arrange(settings: Settings, raw: Source, coins: DataCoins) -> VerticalData:
    """Splits rows and columns; shuffles labels, or Alice's rows, for a canary run."""
    data = _split(settings, raw, coins)
    return _permuted(data, coins) if settings.permute_rows else data


def _split(settings: Settings, raw: Source, coins: DataCoins) -> VerticalData:
    if isinstance(raw, VerticalData):
        if not settings.permute_labels:
            return raw
        return replace(raw, labels_train=raw.labels_train.permuted(coins.permute.fork("labels")))
    if settings.permute_labels:
        raw = replace(raw, labels=raw.labels.permuted(coins.permute.fork("labels")))
    columns, parties = settings.alice_columns, settings.parties
    intercept = bool(settings.intercept)
    if raw.whole:
        return whole_vertical(raw, columns, intercept=intercept, parties=parties)
    partition = random_partition(len(raw.ids), settings.test_fraction, coins.split.fork("rows"))
    return prepare_vertical(raw, partition, columns, intercept=intercept, parties=parties)


def _permuted(data: VerticalData, coins: DataCoins) -> VerticalData:
    """Alice's training rows under the ids of others: her columns say nothing of Bob's rows."""
    hers = data.alice_train
    order = coins.permute.fork("rows").permutation(hers.rows)
    permuted = FeatureTable(hers.ids, hers.columns, hers.values[order])
    return replace(data, alice_train=permuted)


def with_coin_labels(source: Source, entropy: KeyedEntropy) -> Source:
    """The same rows, with fair coins for the labels that are trained with."""
    if isinstance(source, VerticalData):
        return replace(source, labels_train=source.labels_train.coins(entropy))
    return replace(source, labels=source.labels.coins(entropy))
