"""``label-enumeration``: groups of rows, every way to label them, and the gradient that fits best.

Jiang et al. cluster the rows, simulate a training for every mapping of clusters to labels, and keep
the mapping whose gradients of the first round point the way that the seen ones do [JiangFLL26]. Of
logistic regression nothing needs to be simulated: Alice knows her weights of the first epoch, hence
the two residues that a row can have, and the gradient that a mapping ``m`` would give is linear in
it::

    g(m) = X^T r_0 + sum over clusters c of m_c X_c^T (r_1 - r_0)_c

with ``r_y`` the residues where every label is y. So all mappings of ``CLUSTERS`` clusters to labels
are compared, by the cosine between ``g(m)`` and what was seen, over the batches of the first epoch.
A row's score is how much better the best mapping fits with its cluster labelled 1 than with 0.

It needs no label beforehand, and no batch that is small: it works where groups of like rows have
like labels, and tells little of labels that were shuffled. It is never certain.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray, IndexArray
from taciturn.engine.callbacks import ReportProgress
from taciturn.protocol.observations import GradientSeen, Signal
from taciturn.rng import Entropy
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.attacks.linear import gradients
from taciturn_audit.views.alice_view import AliceView

CLUSTERS = 8
_ROUNDS = 20


class LabelEnumerationAttack(Attack):
    """Every labelling of a few clusters, against the gradients of the first epoch."""

    name = "label-enumeration"
    reference = "LEA of [JiangFLL26], without simulated models: the loss is convex and known"
    needs = frozenset({Signal.FEATURES, Signal.GRADIENTS})

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        values = view.features.values
        nearest = clusters(values, CLUSTERS, view.entropy.fork(self.name))
        seen = [gradient for gradient in gradients(view) if gradient.epoch == 0]
        scores = np.zeros(len(values))
        if seen:
            scores = _preferences(_inner_products(view, seen, nearest, progress))[nearest]
        return LabelGuess(scores, scores != 0, np.zeros(len(values), dtype=bool))


def clusters(values: FloatArray, count: int, entropy: Entropy) -> IndexArray:
    """The cluster of each row, by Lloyd's k-means from rows drawn at random.

    >>> from taciturn.rng import KeyedEntropy
    >>> rows = np.array([[0.0], [9.0], [0.1], [9.1]])
    >>> groups = clusters(rows, 2, KeyedEntropy.from_seed(1))
    >>> bool(groups[0] == groups[2] != groups[1] == groups[3])
    True
    """
    centres = values[entropy.permutation(len(values))[:count]]
    nearest = _nearest(values, centres)
    for _ in range(_ROUNDS):
        sizes = np.bincount(nearest, minlength=len(centres))
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, values)
        filled = sizes > 0
        # A cluster without rows keeps its centre.
        centres = np.where(filled[:, None], sums / np.maximum(sizes, 1)[:, None], centres)
        moved = _nearest(values, centres)
        if np.array_equal(moved, nearest):
            break
        nearest = moved
    return nearest


def _nearest(values: FloatArray, centres: FloatArray) -> IndexArray:
    # The square of a row itself is the same for all centres.
    distances = (centres**2).sum(axis=1) - 2 * values @ centres.T
    closest: IndexArray = distances.argmin(axis=1)
    return closest


def _inner_products(
    view: AliceView, seen: list[GradientSeen], nearest: IndexArray, progress: ReportProgress
) -> FloatArray:
    """Gram matrix of the all-zero gradient, each cluster's addition and the seen gradient."""
    scale = 2.0 ** -(view.agreement.feature_bits + view.agreement.residue_bits)
    total = np.zeros((CLUSTERS + 2, CLUSTERS + 2))
    for number, batch in enumerate(seen):
        rows = view.features.values.take(batch.rows, axis=0)
        ones, zeros = view.residues(batch.rows, batch.weights)
        member = nearest[batch.rows] == np.arange(CLUSTERS)[:, None]
        added = (member * (ones - zeros)) @ rows
        vectors = np.vstack([zeros @ rows, added, batch.gradient * scale])
        total += vectors @ vectors.T
        progress(number + 1, len(seen))
    return total


def _preferences(products: FloatArray) -> FloatArray:
    numbers = np.arange(1 << CLUSTERS)
    mappings = (numbers[:, None] >> np.arange(CLUSTERS)) & 1
    weights = np.column_stack([np.ones(len(numbers)), mappings])
    fits = weights @ products[:-1, -1]
    squares = np.einsum("mi,ij,mj->m", weights, products[:-1, :-1], weights)
    # A square of nothing may round to less.
    lengths = np.sqrt(np.maximum(squares, 0.0))
    cosines = np.divide(fits, lengths, out=np.zeros(len(fits)), where=lengths > 0)
    return np.array(
        [cosines[labels == 1].max() - cosines[labels == 0].max() for labels in mappings.T]
    )
