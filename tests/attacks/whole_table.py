"""Whole-table training as Alice sees it, played in a few lines: exact formulas, no conversation."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from scipy.optimize import root

from taciturn.arrays import FloatArray, IntArray, LabelArray
from taciturn.privacy.base import EncryptedMechanism
from taciturn.privacy.registry import mechanism
from taciturn.protocol.observations import MomentsSeen, Signal
from taciturn.view.alice_view import AliceView, Observations
from tests.protocol.parties import agreement

TABLE_BITS = 14


def whitened(columns: FloatArray) -> IntArray:
    """Alice's table on its grid; the penalty is 1/n."""
    rows, width = columns.shape
    curvature = columns.T @ columns / (4 * rows) + np.eye(width) / rows
    factor = np.linalg.cholesky(curvature)
    table: IntArray = np.rint(np.linalg.solve(factor, columns.T).T * 2.0**TABLE_BITS).astype(int)
    return table


def played(
    alice: FloatArray,
    labels: FloatArray,
    bob: FloatArray | None = None,
    *,
    seed: int = 1,
    **agreed: Any,
) -> AliceView:
    """Her view of a first pass and of the model, where Bob has these columns (an intercept is one).

    The model is one step from the first pass: what later passes do to it is of no consequence here.
    """
    coins = np.random.default_rng(seed)
    table, rows = whitened(alice), len(alice)
    bits = math.ceil(math.log2(rows * alice.shape[1]) / 2) + 11
    public = agreement(**agreed)
    method = cast(EncryptedMechanism, mechanism(public))
    own = np.zeros(rows) if bob is None else bob @ _alone(bob, labels, method.residue)
    slopes = method.residue(own, labels.astype(np.int8)) / rows
    seen = []
    for final in (False, True):
        numbers = np.floor(slopes * 2.0**bits + coins.random(rows)).astype(np.int64)
        seen.append(MomentsSeen(int(final), table, table.T @ numbers, TABLE_BITS, bits, final))
    view = SimpleNamespace(
        agreement=public,
        mechanism=method,
        features=SimpleNamespace(rows=rows),
        peer=SimpleNamespace(columns=0 if bob is None else bob.shape[1]),
        signals={Signal.FEATURES, Signal.MOMENTS},
        observations=Observations(np.zeros(alice.shape[1]), tuple(seen)),
    )
    return cast(AliceView, view)


def _alone(
    bob: FloatArray, labels: FloatArray, residue: Callable[[FloatArray, LabelArray], FloatArray]
) -> FloatArray:
    """The weights that his columns have alone: with a trace of a penalty, his slopes cancel out."""

    def slope(weights: FloatArray) -> FloatArray:
        return bob.T @ residue(bob @ weights, labels.astype(np.int8)) - 1e-9 * weights

    return np.asarray(root(slope, np.zeros(bob.shape[1]), tol=1e-13).x)
