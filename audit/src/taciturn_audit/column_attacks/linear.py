"""Estimates from few known rows: a Gaussian prior of the columns, and ridge regression."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import FloatArray
from taciturn_audit.column_attacks.base import KnownRows

_RIDGES = tuple(10.0**power for power in range(-8, 3))
# Scores whose part in all that varies is below this are rounding.
_LEAST_SPREAD = 1e-7


@dataclass(frozen=True, slots=True)
class Prior:
    """Gaussian prior of a row of Alice's columns."""

    mean: FloatArray = field(repr=False)
    covariance: FloatArray = field(repr=False)

    @classmethod
    def of(cls, known: KnownRows, columns: int) -> Prior:
        """The prior of the known rows, drawn to uncorrelated columns of deviation 1.

        Preparation standardises columns, which both parties know. With no row known it is that.
        """
        if not known.count:
            return cls(np.zeros(columns), np.eye(columns))
        count = known.count
        mean = known.values.mean(axis=0) * count / (count + 3)
        apart = known.values - mean
        products = apart.T @ apart
        alone = np.diag((np.diagonal(products) + 1.0) / (count + 1))
        covariance = (products + columns * alone) / (count + columns)
        return cls(mean, covariance)


def whitened(scores: FloatArray, columns: int) -> FloatArray:
    """The principal components of scores, each of mean square 1, without those that are rounding.

    At most ``columns`` components: so many columns made the scores. Not centred: scores of a row of
    zeros are zero.
    """
    sizes = np.sqrt(np.mean(scores**2, axis=0))
    left, spread, _ = np.linalg.svd(scores / np.where(sizes > 0, sizes, 1.0), full_matrices=False)
    least = _LEAST_SPREAD * max(float(spread.max(initial=0.0)), 1e-300)
    count = min(int(np.count_nonzero(spread > least)), columns)
    components: FloatArray = left[:, :count] * np.sqrt(len(scores))
    return components


def ridge(features: FloatArray, known: KnownRows, columns: int) -> FloatArray:
    """Her columns by regression on the features of known rows, with the ridge that predicts best.

    Best by leaving out one known row after the other, over all columns together; the smallest where
    there are as many features and known rows as columns. There is no constant: where a row's
    features are zero, so are its columns.

    >>> features = np.arange(12.0).reshape(6, 2) % 5
    >>> truth = features @ np.array([[1.0], [2.0]])
    >>> known = KnownRows(np.arange(4), truth[:4])
    >>> bool(np.abs(ridge(features, known, 2) - truth).max() < 1e-3)
    True
    """
    inputs, targets = features[known.rows], known.values
    values, vectors = np.linalg.eigh(inputs @ inputs.T)
    scale = max(float(values.max(initial=0.0)), 1e-300)
    values = np.maximum(values, 0.0)
    turned = vectors.T @ targets
    best, smallest = np.zeros_like(targets), np.inf
    determined = min(inputs.shape) >= columns
    for size in _RIDGES[:1] if determined else _RIDGES:
        shrunk = vectors / (values + size * scale)
        dual = shrunk @ turned
        # The residual of a row left out is its dual entry over the inverse's diagonal.
        diagonal = np.einsum("ij,ij->i", shrunk, vectors)
        error = float(np.sum((dual / diagonal[:, None]) ** 2))
        if error < smallest:
            best, smallest = dual, error
    estimate: FloatArray = features @ (inputs.T @ best)
    return estimate
