"""The rows of a fold of simulated tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taciturn.arrays import BoolArray
from taciturn.data.split import VerticalData


def of_fold(data: VerticalData, inside: BoolArray) -> VerticalData:
    """The tables of a fold: trained without its rows, which are tested on instead."""
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
