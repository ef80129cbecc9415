"""Attacks on opened scores: ``prediction``, ``several-models``, ``what-if``, ``known-others``.

A score is ``x_A w_A + x_B w_B`` and noise. What regression on Bob's own columns leaves of it is a
linear function of Alice's columns, without what his columns say of them: one model gives one such
function of each row, and as many models as she has columns span her columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable
from taciturn.errors import counted
from taciturn.parallel import one_thread
from taciturn_audit.column_attacks.base import Ambiguity, ColumnEstimate, KnownRows
from taciturn_audit.column_attacks.scores import ridge
from taciturn_audit.views.opened_scores import SCORE_NOISE, OpenedScores

_ABOVE_NOISE = 2.0
"""Singular values above this multiple of the noise's largest are signal."""
_MANY_KNOWN = 20


class OpenedScoresAttack(ABC):
    """Base class of attacks on opened scores: an estimate of Alice's columns of the scored rows."""

    name: str
    reference: str

    @abstractmethod
    def lacks(self, view: OpenedScores) -> str:
        """Reason why the attack does not apply; empty if it does."""

    @abstractmethod
    def known_counts(self, view: OpenedScores) -> tuple[int, ...]:
        """Numbers of known rows that the attack is worth trying with; 0 is none."""

    def estimate(self, view: OpenedScores, known: KnownRows) -> ColumnEstimate:
        """An estimate of every row, made on one thread of linear algebra."""
        with one_thread():
            return self._estimate(view, known)

    @abstractmethod
    def _estimate(self, view: OpenedScores, known: KnownRows) -> ColumnEstimate:
        """The attack itself."""


def without_own_columns(scores: FloatArray, features: FeatureTable) -> FloatArray:
    """Residual of scores after regression on Bob's own columns and a constant.

    >>> own = FeatureTable.from_data(np.array([[0.0], [1.0], [2.0], [3.0]]))
    >>> hers = np.array([1.0, -1.0, -1.0, 1.0])
    >>> np.round(without_own_columns(hers + 5.0 + 3.0 * own.values[:, 0], own), 6).tolist()
    [1.0, -1.0, -1.0, 1.0]
    """
    own = _with_constant(features)
    residual: FloatArray = scores - own @ np.linalg.lstsq(own, scores, rcond=None)[0]
    return residual


def alice_part(view: OpenedScores) -> FloatArray:
    """Alice's part of each score, up to a constant and what Bob's columns say of it.

    It is exact up to her noise where he knows his weights.
    """
    if view.bob_weights is not None:
        return view.scores - view.features.values @ view.bob_weights
    return without_own_columns(view.scores, view.features)


def signal_components(residual: FloatArray, columns: int) -> tuple[FloatArray, FloatArray]:
    """Principal components of residual scores above the noise, and all singular values over it.

    The components have mean square 1, and there are at most ``columns`` of them.
    """
    rows, models = residual.shape
    left, sizes, _ = np.linalg.svd(residual, full_matrices=False)
    # Largest singular value of independent uniform noise.
    noise = SCORE_NOISE / np.sqrt(3.0) * (np.sqrt(rows) + np.sqrt(models))
    count = min(int(np.count_nonzero(sizes > _ABOVE_NOISE * noise)), columns)
    return left[:, :count] * np.sqrt(rows), sizes / noise


def _with_constant(features: FeatureTable) -> FloatArray:
    values = features.values[:, : features.values.shape[1] - features.free]
    return np.column_stack([np.ones(len(values)), values])


class OpenedPredictionAttack(OpenedScoresAttack):
    """Alice's part of one model's scores, which is one column of hers up to unit and offset."""

    name = "prediction"
    reference = "residual of the scores on Bob's columns; equation solving [Luo21]"

    def lacks(self, view: OpenedScores) -> str:
        """Applies wherever a score was opened."""
        return "" if view.models else "no score of a row was opened"

    def known_counts(self, view: OpenedScores) -> tuple[int, ...]:
        """Without known rows the unit of her part stays open."""
        return (0,)

    def _estimate(self, view: OpenedScores, known: KnownRows) -> ColumnEstimate:
        return ColumnEstimate(
            alice_part(view)[:, :1],
            ambiguity=Ambiguity.SCALE,
            remark="Alice's part of the scores of one model",
        )


class SeveralModelsAttack(OpenedScoresAttack):
    """The span of Alice's columns, from scores of the same rows by several models.

    Of the residual scores as many singular values are above the noise as she has columns, if there
    are as many models. Her columns are linear functions of these components and of Bob's columns,
    which as many known rows determine.
    """

    name = "several-models"
    reference = "span of the residual scores"

    def lacks(self, view: OpenedScores) -> str:
        """Applies where two models scored the same rows."""
        return "" if view.models > 1 else "no two models scored the same rows for Bob"

    def known_counts(self, view: OpenedScores) -> tuple[int, ...]:
        """None, as many as there are unknowns, and at least ``_MANY_KNOWN``."""
        enough = self._inputs(view).shape[1]
        most = view.features.rows // 2
        return (0, *sorted({min(enough, most), min(max(enough, _MANY_KNOWN), most)}))

    def _inputs(self, view: OpenedScores) -> FloatArray:
        components, _ = signal_components(alice_part(view), view.columns)
        return np.column_stack([components, _with_constant(view.features)])

    def _estimate(self, view: OpenedScores, known: KnownRows) -> ColumnEstimate:
        components, sizes = signal_components(alice_part(view), view.columns)
        inputs = np.column_stack([components, _with_constant(view.features)])
        shown = ", ".join(f"{size:.3g}" for size in sizes[: view.columns + 1])
        remark = (
            f"{counted(components.shape[1], 'component')} of {counted(view.models, 'model')} "
            f"above the noise (singular values over the noise: {shown})"
        )
        if not known.count:
            return ColumnEstimate(inputs, ambiguity=Ambiguity.LINEAR, remark=remark)
        return ColumnEstimate(ridge(inputs, known, inputs.shape[1]), remark=remark)


class WhatIfAttack(OpenedScoresAttack):
    """Alice's part of each score, from a second scoring with other values of Bob's columns.

    Her noise is a function of her values: the difference of the two scores of a row is his change
    times his weights, without noise.
    """

    name = "what-if"
    reference = "difference of two scorings of the same rows"

    def lacks(self, view: OpenedScores) -> str:
        """Applies where rows were scored twice by one model."""
        return "" if view.rescored is not None else "no row was scored twice by one model"

    def known_counts(self, view: OpenedScores) -> tuple[int, ...]:
        """Without known rows the unit of her part stays open."""
        return (0,)

    def bob_weights(self, view: OpenedScores) -> FloatArray:
        """His weights but the intercept, by regression of the differences on his changes."""
        if view.rescored is None:
            raise ValueError("no row was scored twice")
        moved = view.rescored.features.values - view.features.values
        moved = moved[:, : moved.shape[1] - view.features.free]
        differences = view.rescored.scores - view.scores[:, 0]
        return np.asarray(np.linalg.lstsq(moved, differences, rcond=None)[0], dtype=np.float64)

    def _estimate(self, view: OpenedScores, known: KnownRows) -> ColumnEstimate:
        weights = self.bob_weights(view)
        part = view.scores[:, 0] - view.features.values[:, : len(weights)] @ weights
        return ColumnEstimate(
            part[:, None],
            ambiguity=Ambiguity.SCALE,
            remark="Alice's part of the scores, up to one constant",
        )


@dataclass(frozen=True, slots=True, eq=False)
class OthersKnown:
    """All that a Bob knows who lacks Alice's values of one training row, ``row``.

    ``alice`` and ``bob`` are the training rows' columns; Alice's values of ``row`` are zeros.
    ``scored`` are Alice's columns of the rows whose scores were ``opened`` to him. ``retrain``
    returns both sides' weights of a training that Bob simulates with values of Alice's columns.
    """

    alice: FloatArray = field(repr=False)
    bob: FeatureTable
    labels: FloatArray = field(repr=False)
    row: int
    scored: FloatArray = field(repr=False)
    opened: OpenedScores
    penalty: float
    retrain: Callable[[FloatArray], FloatArray]

    def __post_init__(self) -> None:
        if self.alice[self.row].any():
            raise ValueError("the row is known")


def row_from_others(view: OthersKnown) -> FloatArray:
    """Alice's values of the one unknown training row, from scores of rows that Bob knows.

    Known rows give both sides' weights. At the optimum the penalty balances the residues, so that
    the unknown row times its residue is what the other rows leave; his own columns of that row give
    its residue. A training stops short of the optimum: how far, a simulated one with that estimate
    shows, by a step of Newton's method.
    """
    with one_thread(), np.errstate(over="ignore"):
        inputs = np.column_stack([view.scored, view.opened.features.values])
        weights = np.linalg.lstsq(inputs, view.opened.scores[:, 0], rcond=None)[0]
        table = np.column_stack([view.alice, view.bob.values])
        ridges = np.full(len(weights), len(table) * view.penalty)
        ridges[len(weights) - view.bob.free :] *= not view.bob.free
        residues = view.labels - _sigmoid(table @ weights)
        residues[view.row] = 0.0
        values = _row(view, ridges * weights - residues @ table)
        table[view.row, : len(values)] = np.clip(values, -_LARGEST, _LARGEST)
        again = view.retrain(table[:, : len(values)])
        chances = _sigmoid(table @ again)
        hessian = (table * (chances * (1.0 - chances))[:, None]).T @ table + np.diag(ridges)
        residue = view.labels[view.row] - chances[view.row]
        return _row(view, residue * table[view.row] + hessian @ (weights - again))


_LARGEST = 10.0


def _row(view: OthersKnown, product: FloatArray) -> FloatArray:
    """Alice's values of the unknown row from the product of the whole row and its residue."""
    own, columns = view.bob.values[view.row], view.alice.shape[1]
    residue = float(own @ product[columns:]) / float(own @ own)
    # A residue has the sign of its label, and is no larger than 1.
    sign = 1.0 if view.labels[view.row] else -1.0
    values: FloatArray = product[:columns] / (sign * float(np.clip(sign * residue, 1e-2, 1.0)))
    return values


def _sigmoid(scores: FloatArray) -> FloatArray:
    chances: FloatArray = 1.0 / (1.0 + np.exp(-scores))
    return chances
