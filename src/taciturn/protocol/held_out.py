"""Held-out rows at the end of each epoch, where that is agreed: the messages' chart.

::

    Alice                                            Bob
      PartialScores        X_A w_A, held out    ->
                                                <-   EpochVerdict        continue, or stop
                                                     (only with agreed patience)

Bob alone learns how good the model is. With patience he ends the training once the held-out loss
has not fallen for that number of epochs. Alice sees when he does, and that depends on labels: it is
a release without protection, and the ledger says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable, LabelTable


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Bob's part of the held-out rows."""

    features: FeatureTable
    labels: LabelTable


def out_of_patience(losses: FloatArray, patience: int) -> bool:
    """Whether the last ``patience`` losses are all no better than the best before them.

    >>> import numpy as np
    >>> out_of_patience(np.array([0.6, 0.5, 0.5, 0.51]), 2)
    True
    >>> out_of_patience(np.array([0.6, 0.5, 0.49]), 2)
    False
    """
    if len(losses) <= patience:
        return False
    return bool(losses[-patience:].min() >= losses[:-patience].min())
