"""Parts of simulated tables: the rows of a fold, and some of the columns."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from taciturn.arrays import BoolArray
from taciturn.data.split import VerticalData
from taciturn.data.tables import FeatureTable


def of_fold(data: VerticalData, inside: BoolArray) -> VerticalData:
    """The tables of a fold: trained without its rows, which are tested on instead.

    Args:
        data: All training rows.
        inside: Which of them are in the fold.
    """
    rest, judged = np.flatnonzero(~inside), np.flatnonzero(inside)
    return replace(
        data,
        alice_train=data.alice_train.take(rest),
        bob_train=data.bob_train.take(rest),
        labels_train=data.labels_train.take(rest),
        alice_test=data.alice_train.take(judged),
        bob_test=data.bob_train.take(judged),
        labels_test=data.labels_train.take(judged),
        held_out=True,
    )


def without(data: VerticalData, gone: Collection[str]) -> VerticalData:
    """The tables without some of the prepared columns.

    Args:
        data: Both parties' tables.
        gone: Names of prepared columns.
    """

    def kept(table: FeatureTable) -> FeatureTable:
        return table.select([name for name in table.columns if name not in gone])

    names = data.alice_train.columns
    alices, start = [], 0
    for name, place in data.alices:
        width = sum(column not in gone for column in names[place])
        alices.append((name, slice(start, start + width)))
        start += width
    return replace(
        data,
        alice_train=kept(data.alice_train),
        bob_train=kept(data.bob_train),
        alice_test=kept(data.alice_test),
        bob_test=kept(data.bob_test),
        alices=tuple(alices),
    )
