"""``discrete``: columns of few values, with no row known.

Two looks:

- **Equal scores are equal rows.** Where the rows of a pass have few different scores, each score is
  a kind of row. In training by batches the weights move between batches; where her columns are the
  levels of one category, Bob knows how: the score of a level moves by the sum of his own steps over
  its rows, and a level without a column scores 0. So he carries the score of each level along, and
  then fits each kind's score to the steps that all kinds have made.
- **A column of few values among the scores.** In whole-table training her columns are linear
  combinations of the scores once there are as many passes as columns. Independent component
  analysis proposes combinations, and once more of what is left where some were taken. One is taken
  where its values fall into few levels, and the levels, put in its place, still are a combination
  of the scores: of hundreds of rows that is no coincidence.

What the levels are called remains open: the judge names them by a linear map.
"""

from __future__ import annotations

import warnings

import numpy as np

from taciturn.arrays import FloatArray, IndexArray
from taciturn.errors import counted
from taciturn.protocol.bob.observations import BatchScored, BobSignal
from taciturn_audit.column_attacks.base import Ambiguity, ColumnAttack, ColumnEstimate, KnownRows
from taciturn_audit.column_attacks.scores import Batches, Visits, table_scores, whitened
from taciturn_audit.views.bob_view import BobView

MOST_KINDS = 64
"""How many kinds of rows there may be: more are no kinds."""

_SAME = 1e-7
"""Scores this near each other, in units of the largest, are the same."""

_NEAR = 2e-4
"""The scores of a level, carried along for an epoch, are this near to those that are seen."""

_ROUNDS, _STARTS, _MOST_ROWS = 30, 4, 5000
_REFITS, _DEFLATIONS = 6, 4
# How much of a vector of levels may lie outside the span of the scores.
_LEAST_FIT = 1e-3


class DiscreteAttack(ColumnAttack):
    """Few values show, whatever the weights are."""

    name = "discrete"
    reference = "equal scores, and columns of few values in their span"
    needs = frozenset({BobSignal.BATCH_SCORES, BobSignal.TABLE_SCORES})
    uses_known_rows = False
    works_without = True

    def obstacle(self, view: BobView) -> str:
        """Scores that do not repeat, where only repetition can help."""
        if view.directions or _repeated(view.batches):
            return ""
        return "the scores of a batch do not repeat: her rows are not of few kinds"

    def _estimate(self, view: BobView, known: KnownRows) -> ColumnEstimate:
        if not view.directions:
            kinds = _common(_carried(view.batches, view.features.rows))
            kinds = _refitted(Batches.from_view(view), kinds)
            return _named(kinds, "equal scores, carried from batch to batch")
        scores = table_scores(view)
        alike = _kinds(scores)
        if alike is not None:
            return _named(alike, "equal scores in every pass")
        columns = _columns(whitened(scores, view.columns))
        remark = f"{counted(columns.shape[1], 'column')} of few values in the span of the scores"
        # Where there is none, what is left to the judge's map is a constant: the mean.
        return ColumnEstimate(columns, ambiguity=Ambiguity.LINEAR, remark=remark)


def _named(kinds: IndexArray, remark: str) -> ColumnEstimate:
    labels, counts = np.unique(kinds, return_counts=True)
    common = labels[np.argsort(-counts, kind="stable")][:MOST_KINDS]
    indicators = (kinds[:, None] == common).astype(np.float64)
    words = f"{counted(len(labels), 'kind')} of rows by {remark}"
    return ColumnEstimate(indicators, ambiguity=Ambiguity.LINEAR, remark=words)


# --- equal scores -----------------------------------------------------------------------------


def _repeated(batches: tuple[BatchScored, ...]) -> bool:
    different = total = 0
    for batch in batches[1:]:
        scale = max(float(np.abs(batch.scores).max(initial=0.0)), _SAME)
        different += len(np.unique(np.round(batch.scores / (scale * _SAME))))
        total += len(batch.rows)
    return 2 * different <= total


def _kinds(scores: FloatArray) -> IndexArray | None:
    scale = np.maximum(np.abs(scores).max(axis=0), 1e-300)
    # Whitened columns are rounded once per training: equal rows stay equal.
    _, kinds = np.unique(np.round(scores / scale * 1e6), axis=0, return_inverse=True)
    return kinds if kinds.max(initial=0) < MOST_KINDS else None


def _carried(batches: tuple[BatchScored, ...], rows: int) -> IndexArray:
    kinds = np.zeros(rows, dtype=np.int64)
    # The first kind has no column: it scores 0 whatever happens.
    values = [0.0]
    for batch in batches[1:]:
        scale = max(float(np.abs(batch.scores).max(initial=0.0)), 1e-6)
        # The weights that nobody was seen to score with since they moved are still to be placed.
        for score in np.unique(np.round(batch.scores / (scale * _SAME)) * (scale * _SAME)):
            apart = min(abs(value - score) for value in values)
            if apart > _NEAR * scale and len(values) < 4 * MOST_KINDS:
                values.append(float(score))
        nearest_kind = np.abs(batch.scores[:, None] - np.array(values)).argmin(axis=1)
        kinds[batch.rows] = nearest_kind
        moved = np.bincount(nearest_kind, weights=batch.step, minlength=len(values))
        # What was seen is exact: carry on from there.
        seen = np.bincount(nearest_kind, minlength=len(values))
        sums = np.bincount(nearest_kind, weights=batch.scores, minlength=len(values))
        now = np.where(seen > 0, sums / np.maximum(seen, 1), np.array(values))
        carried = batch.shrink * now + moved
        carried[0] = 0.0
        values = carried.tolist()
    return kinds


def _common(kinds: IndexArray) -> IndexArray:
    labels, inverse, counts = np.unique(kinds, return_inverse=True, return_counts=True)
    ranks = np.empty(len(labels), dtype=np.int64)
    ranks[np.argsort(-counts, kind="stable")] = np.arange(len(labels))
    return np.minimum(ranks, MOST_KINDS - 1)[inverse]


def _refitted(batches: Batches, kinds: IndexArray) -> IndexArray:
    """The kinds that fit all scores best, beginning with a guess at them.

    A kind's score is a linear function of the steps that each kind has made so far, whatever the
    columns are. So it is fitted for each kind, and each row given to the kind that fits it.
    """
    visits = Visits.from_batches(batches, len(kinds))
    for _ in range(_REFITS):
        count = int(kinds.max()) + 1
        numbers, places = np.nonzero(batches.there)
        moved = np.zeros((batches.iterations, count))
        owners = kinds[batches.rows[numbers, places]]
        np.add.at(moved, (numbers, owners), batches.steps[numbers, places])
        paths = np.zeros_like(moved)
        np.cumsum(moved[:-1], axis=0, out=paths[1:])
        factors = np.zeros((count, count))
        for kind in range(count):
            there = visits.there & (kinds == kind)[:, None]
            inputs, scores = paths[visits.times[there]], visits.scores[there]
            if len(scores):
                factors[kind] = np.linalg.lstsq(inputs, scores, rcond=1e-6)[0]
        expected = paths @ factors.T
        misfit = np.zeros((len(kinds), count))
        for place in range(visits.times.shape[1]):
            error = visits.scores[:, place, None] - expected[visits.times[:, place]]
            misfit += np.where(visits.there[:, place, None], error**2, 0.0)
        better = misfit.argmin(axis=1)
        if np.array_equal(better, kinds):
            break
        kinds = better
    return kinds


# --- columns of few values --------------------------------------------------------------------


def _columns(components: FloatArray) -> FloatArray:
    rows = len(components)
    basis, _ = np.linalg.qr(np.column_stack([np.ones(rows), components]))
    taken: list[FloatArray] = []
    for _ in range(_DEFLATIONS):
        before = len(taken)
        for proposal in _proposals(_rest(components, taken)):
            column = _few_valued(proposal, basis)
            if column is not None and not _known(column, taken):
                taken.append(column)
        # What was found is taken out, and what is left looked at again: it hid among more.
        if not before < len(taken) < components.shape[1]:
            break
    return np.column_stack(taken) if taken else np.empty((rows, 0))


def _rest(components: FloatArray, taken: list[FloatArray]) -> FloatArray:
    out, _ = np.linalg.qr(np.column_stack([np.ones(len(components)), *taken]))
    left, sizes, _ = np.linalg.svd(components - out @ (out.T @ components), full_matrices=False)
    count = int(np.count_nonzero(sizes > _LEAST_FIT * sizes.max(initial=1e-300)))
    rest: FloatArray = left[:, :count] * np.sqrt(len(components))
    return rest


def _proposals(components: FloatArray) -> list[FloatArray]:
    from sklearn.decomposition import FastICA

    stride = max(1, len(components) // _MOST_ROWS)
    proposals: list[FloatArray] = []
    for start in range(_STARTS if components.shape[1] else 0):
        contrast = "cube" if start % 2 else "logcosh"
        # Not whitened there: it multiplies a component by the sign of its first number, and loses
        # one whose first number is 0.
        model = FastICA(fun=contrast, whiten=False, random_state=start, max_iter=200)
        with warnings.catch_warnings():
            # One that does not converge proposes all the same; what is taken is checked.
            warnings.simplefilter("ignore")
            model.fit(components[::stride])
        proposals += list(model.transform(components).T)
    return proposals


def _few_valued(proposal: FloatArray, basis: FloatArray) -> FloatArray | None:
    """Values snapped to levels and projected back until they are both; None where never."""
    values = proposal
    for _ in range(_ROUNDS):
        levels = _snapped(values)
        if levels is None:
            return None
        projected = basis @ (basis.T @ levels)
        spread = float(levels.std())
        if spread == 0.0:
            return None
        if float(np.abs(projected - levels).max()) < _LEAST_FIT * spread:
            return levels
        if np.allclose(projected, values, atol=1e-9 * spread):
            return None
        values = projected
    return None


def _snapped(values: FloatArray) -> FloatArray | None:
    """Levels lie between the widest gaps: two, or more where further gaps are as clear."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    gaps = np.diff(ordered)
    most = int(np.sqrt(len(values)))
    widest = np.sort(gaps)[::-1][: most + 1]
    if not len(widest) or widest[0] <= 0:
        return None
    # The clearest drop in the widths of gaps tells gaps between levels from those within.
    drops = widest[:-1] / np.maximum(widest[1:], 1e-12 * widest[0])
    count = int(drops.argmax()) + 1
    cuts = np.flatnonzero(gaps >= widest[count - 1])
    labels = np.zeros(len(values), dtype=np.int64)
    labels[order[1:]] = np.cumsum(np.isin(np.arange(len(gaps)), cuts))
    sums = np.bincount(labels, weights=values)
    snapped: FloatArray = (sums / np.bincount(labels))[labels]
    return snapped


def _known(column: FloatArray, taken: list[FloatArray]) -> bool:
    return any(abs(np.corrcoef(column, other)[0, 1]) > 1 - 1e-9 for other in taken)
