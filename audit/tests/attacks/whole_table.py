"""Alice's view of a first pass, without a conversation: made-up tables of any size and shape."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.numerics.likelihood import label_likelihood
from taciturn.numerics.subspace import SubspaceSolver
from taciturn.privacy.base import EncryptedMechanism
from taciturn.privacy.registry import mechanism
from taciturn.protocol.observations import MomentsSeen, Signal
from taciturn_audit.views.alice_view import AliceView, Observations
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
    """Her view of a first pass and of the model, where Bob has these columns.

    A column of ones among them is an intercept, and her own columns are centred then.

    The model is one step from the first pass: what later passes do to it is of no consequence here.
    """
    entropy, rows = np.random.default_rng(seed), len(alice)
    intercept = bob is not None and bool((bob == 1.0).all(axis=0).any())
    table = whitened(alice - intercept * alice.mean(axis=0))
    bits = math.ceil(math.log2(rows * alice.shape[1]) / 2) + 11
    public = agreement(**agreed, intercept=intercept)
    method = cast(EncryptedMechanism, mechanism(public))
    own = np.empty((rows, 0)) if bob is None else bob
    values = labels.astype(np.int8)
    solver = SubspaceSolver(label_likelihood(values, method.likelihood), own, 1e-6, 0, 2)
    numbers = solver.direction()
    seen = []
    for final in (False, True):
        whole = np.floor(numbers * 2.0**bits + entropy.random(rows)).astype(np.int64)
        seen.append(MomentsSeen(int(final), table, table.T @ whole, TABLE_BITS, bits, final))
    view = SimpleNamespace(
        agreement=public,
        mechanism=method,
        features=SimpleNamespace(rows=rows),
        complete=True,
        peer=SimpleNamespace(columns=0 if bob is None else bob.shape[1]),
        signals={Signal.FEATURES, Signal.MOMENTS},
        observations=Observations(np.zeros(alice.shape[1]), tuple(seen)),
    )
    return cast(AliceView, view)
