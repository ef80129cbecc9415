"""The model of Bob's columns alone: what he could have without a partner.

The same solver on the same rows, with the same penalty, weights and passes, and the true labels. He
computes it by himself; nothing of it leaves him. Without columns it is the base rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.memmap import over_blocks
from taciturn.numerics.convergence import MOST_LOSS
from taciturn.numerics.likelihood import label_likelihood, weighted_likelihood
from taciturn.numerics.logistic import train_centralised, training_loss
from taciturn.numerics.whole_table import optimum
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
                weights = terms.agreement.class_weight
                loss = training_loss(baseline.scores(features), labels.values, weights)
            if loss <= MOST_LOSS:
                return baseline
        ones = int(np.count_nonzero(labels.values))
        # Half a row more of either class: where one is absent there would be no odds.
        odds = math.log((ones + 0.5) / (labels.rows - ones + 0.5))
        return cls(np.zeros(len(features.columns)), odds + terms.log_odds_shift)

    def scores(self, features: FeatureTable) -> FloatArray:
        """The log-odds of each row, from his columns of it."""
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
        likelihood = label_likelihood(truth, weighted)
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
