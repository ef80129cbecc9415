"""The model of Bob's columns alone: what he could have without a partner.

The same solver on the same rows, with the same penalty, weights and passes, and the true labels. He
computes it by himself; nothing of it leaves him. Without columns it is the best constant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.memmap import over_blocks
from taciturn.numerics.label_metrics import labels_loss, most_loss, null_score
from taciturn.numerics.likelihood import response_likelihood, weighted_likelihood
from taciturn.numerics.optimum import optimum
from taciturn.numerics.sgd import train_centralised
from taciturn.protocol.terms import Terms
from taciturn.rng import KEY_BYTES, Entropy


@dataclass(frozen=True, slots=True)
class LabelPartyBaseline:
    """A model of Bob's columns plus a ``constant``, or the constant alone."""

    weights: FloatArray = field(repr=False)
    constant: float = 0.0

    @classmethod
    def fit(
        cls, features: FeatureTable, labels: LabelTable, terms: Terms, entropy: Entropy
    ) -> LabelPartyBaseline:
        """The model of Bob's columns of the training rows; an intercept is the last."""
        if features.columns:
            # One that diverges overflows; the base rate is then the better model.
            with np.errstate(over="ignore", invalid="ignore"):
                baseline = cls(_fitted(features, labels, terms, entropy))
                loss = labels_loss(baseline.scores(features), labels, terms.agreement.class_weight)
            if loss <= most_loss(labels):
                return baseline
        constant = null_score(labels) + terms.log_odds_shift
        return cls(np.zeros(len(features.columns)), constant)

    def scores(self, features: FeatureTable) -> FloatArray:
        """The score of each row, from his columns of it."""
        values = features.values

        def scored(place: slice) -> FloatArray:
            scores: FloatArray = values[place] @ self.weights + self.constant
            return scores

        return np.concatenate([np.empty(0), *over_blocks(scored, features.rows, values)])


def _fitted(
    features: FeatureTable, labels: LabelTable, terms: Terms, entropy: Entropy
) -> FloatArray:
    agreed, truth = terms.agreement, labels.values
    if terms.whole_table:
        weighted = partial(weighted_likelihood, class_weight=agreed.class_weight)
        likelihood = response_likelihood(labels, weighted)
        return optimum(features.values, likelihood, agreed.l2, features.free).weights
    plan = terms.plan(entropy.fork("columns alone").token(KEY_BYTES), features.rows)
    return train_centralised(
        features.values,
        truth,
        (batch.rows for batch in plan),
        terms.rate,
        terms.penalty,
        features.free,
        agreed.class_weight,
    )
