"""``gradient-direction`` and ``gradient-norm``: statistics of gradients, with no system solved.

**Direction**, a matched filter. ``g = sum_j r_j x_j``, so the gradient of a batch holds ``r_i
|x_i|^2`` along ``x_i``, plus what the other rows add. Li et al. compare the directions of single
rows' gradients [LiSun22]; in a batch sum the row's own part is what its features filter out::

    s_i = sum over its batches of <x_i, g> / |x_i|

The sign of ``s_i`` is the guess. It needs no score to be known, and gives the labels away the less,
the more rows share a batch.

**Norm**: rows of the rarer class have the larger gradients [LiSun22]. The gradient of one row is
``r x``, and Alice knows ``x``: its size is that of the residue, which is ``1 - f`` for a label of 1
and ``f`` for a 0. A model of a rare class scores nearly all rows low, so that the few ones stand
out by their size. With noisy residues a row's figure is the mean ``|z|`` of its releases; where
only batches' gradients are seen, the mean size of the mean gradients of its batches, which says
little unless batches are small.

Two things are decided without a label. *Which class is the rarer*: if it is the ones, sizes rise
with the score (the many zeros have ``f``), otherwise they fall; so the sign of their correlation
with Alice's own scores decides. It works where the intercept is Bob's, which her predictions do not
show. *From where on a row is called rare*: at the cut that leaves the least spread within the two
sides.

Neither is ever certain.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import BoolArray, FloatArray
from taciturn.engine.callbacks import ReportProgress
from taciturn.protocol.observations import GradientSeen, ResiduesSeen, Signal
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.attacks.linear import gradients
from taciturn_audit.views.alice_view import AliceView


class GradientDirectionAttack(Attack):
    """Each row's features against the gradients of its batches."""

    name = "gradient-direction"
    reference = "direction attack of [LiSun22], adapted to the sum over a batch"
    needs = frozenset({Signal.FEATURES, Signal.GRADIENTS})

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        values = view.features.values
        scale = 2.0 ** -(view.agreement.feature_bits + view.agreement.residue_bits)
        seen = gradients(view)
        total = np.zeros(len(values))
        every = max(1, len(seen) // 100)
        for at, observation in enumerate(seen):
            if at % every == 0:
                progress(at, len(seen))
            total[observation.rows] += values.take(observation.rows, axis=0) @ (
                observation.gradient * scale
            )
        progress(len(seen), len(seen))
        norms = np.linalg.norm(values, axis=1)
        scores = np.divide(total, norms, out=np.zeros(len(values)), where=norms > 0)
        return LabelGuess(scores, scores != 0, np.zeros(len(values), dtype=bool))


class GradientNormAttack(Attack):
    """The size of a row's residues, or of its batches' gradients."""

    name = "gradient-norm"
    reference = "norm attack of [LiSun22]"
    needs = frozenset({Signal.FEATURES, Signal.WEIGHTS})

    def obstacle(self, view: AliceView) -> str:
        """Neither residues nor gradients in the view: nothing has a size."""
        if view.signals & {Signal.RESIDUES, Signal.GRADIENTS}:
            return ""
        return f"Alice has neither {Signal.RESIDUES.value} nor {Signal.GRADIENTS.value}"

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        sizes, met = _mean_sizes(view, progress)
        scores = np.zeros(len(sizes))
        if met.any():
            scores[met] = sizes[met] - best_cut(sizes[met])
            scores *= _direction(view, sizes, met)
        return LabelGuess(scores, met & (scores != 0), np.zeros(len(sizes), dtype=bool))


def _mean_sizes(view: AliceView, progress: ReportProgress) -> tuple[FloatArray, BoolArray]:
    rows = view.features.rows
    batches: tuple[ResiduesSeen | GradientSeen, ...] = view.observations.of_kind(ResiduesSeen)
    if not batches:
        batches = view.observations.of_kind(GradientSeen)
    total, times = np.zeros(rows), np.zeros(rows)
    every = max(1, len(batches) // 100)
    for at, batch in enumerate(batches):
        if at % every == 0:
            progress(at, len(batches))
        times[batch.rows] += 1
        if isinstance(batch, ResiduesSeen):
            total[batch.rows] += np.abs(batch.residues)
        else:
            total[batch.rows] += float(np.linalg.norm(batch.gradient)) / len(batch.rows)
    progress(len(batches), len(batches))
    met = times > 0
    return np.divide(total, times, out=total, where=met), met


def _direction(view: AliceView, sizes: FloatArray, met: BoolArray) -> float:
    """1 if a large size means label 1, -1 if it means label 0, by Alice's model; 0 if unknown."""
    probabilities = view.probabilities(np.flatnonzero(met), view.observations.weights)
    together = (sizes[met] - sizes[met].mean()) @ (probabilities - probabilities.mean())
    return float(np.sign(together))


def best_cut(values: FloatArray) -> float:
    """The cut into two groups that leaves the least sum of squares within them.

    >>> best_cut(np.array([0.1, 0.9, 0.2, 1.0]))
    0.55
    """
    ordered = np.sort(values)
    if ordered[0] == ordered[-1]:
        return float(ordered[0])
    below = np.arange(1, len(ordered))
    sums = np.cumsum(ordered)
    # Least spread within is most spread between the two means.
    left, right = sums[:-1] / below, (sums[-1] - sums[:-1]) / (len(ordered) - below)
    at = int(np.argmax(below * (len(ordered) - below) * (left - right) ** 2))
    return float((ordered[at] + ordered[at + 1]) / 2)
