"""Coordinates in which the curvature of the loss is at most one, whatever the labels are.

With ``n`` rows ``X`` and the L2 penalty ``l2 > 0``::

    C  = X^T X / (4n) + l2 I = L L^T        X~ = X L^-T        w~ = L^T w,  so  X~ w~ = X w

``X^T X / (4n)`` bounds the curvature of the mean logistic loss [BohningLindsay88], so that of loss
and penalty is between 0 and the identity in w~. The penalty needs no further knowledge of X::

    l2 |w|^2 = w~^T (I - X~^T X~ / 4n) w~

**Centred columns.** Where there is a free intercept, every column is taken less its mean over the
rows. The intercept absorbs the means, so that the model is the same, and is then orthogonal to
the columns of all parties: their curvatures do not add up.

The owner of the columns does all this alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.errors import ConfigError, ShapeError
from taciturn.memmap import over_blocks, row_blocks
from taciturn.numerics.row_products import row_transforms
from taciturn.setting_syntax import Hint

MOST_COLUMNS = 8192
"""A square matrix of this size takes half a gibibyte, and two are needed at a time."""

_MOST_AT_A_TIME = 1024

# Below this part of a column's own variance, what the other columns leave of it is rounding error.
_LEAST_PIVOT = 1e-11


@dataclass(frozen=True, slots=True)
class Whitening:
    """Change of coordinates by L, a lower triangular factor, of columns less their ``means``.

    ``means`` is None where columns are not centred. The last ``free`` columns are the intercept,
    whose mean is given as 0.
    """

    factor: FloatArray
    means: FloatArray | None = None
    free: int = 0

    @classmethod
    def fit(
        cls,
        values: FloatArray,
        l2: float,
        free: int = 0,
        heaviest: float = 1.0,
        means: FloatArray | None = None,
    ) -> Whitening:
        """Whitening of a table; allocates nothing of the table's size.

        The last ``free`` columns (the intercept) carry no penalty and are not all zeros.
        ``heaviest`` is the largest weight of a row, by which it curves the loss more.
        """
        rows, columns = values.shape
        if not rows:
            raise ShapeError("the table has no rows", hint="pass at least one row")
        if not (np.isfinite(l2) and l2 > 0):
            raise ConfigError(
                f"whole-table training needs an L2 penalty above 0, and l2 is {l2:g}",
                setting="l2",
                hint="use 1 divided by the number of rows, or leave it out",
            )
        if columns > MOST_COLUMNS:
            raise ConfigError(
                f"whole-table training takes at most {MOST_COLUMNS:,} columns of a party, "
                f"and there are {columns:,}: it needs their products in pairs",
                setting="solver",
                hint="use fewer columns",
            )
        with np.errstate(over="ignore", invalid="ignore"):
            square = _square(values, means)
            square *= heaviest / (4.0 * rows)
        if not np.isfinite(square).all():
            raise ConfigError(
                "the values of the columns are too large to be multiplied with one another",
                hint="scale the columns",
            )
        penalised = np.arange(columns - free)
        square[penalised, penalised] += l2
        return cls(_cholesky(square), means, free)

    def beside(self, others: int) -> Whitening:
        """Whitening of the table next to one of ``others`` columns, for steps of length 1 in both.

        Each table alone makes a curvature of at most 1, both together of up to 2. With factors ``1
        + r`` of this table's curvature and ``1 + 1/r`` of the other's it is at most 1 whatever the
        two have in common: ``2 |x y| <= r x^2 + y^2 / r``. Here ``r = sqrt(others / columns)``: a
        table of few columns hardly slows one of many. Beside centred columns an intercept has
        nothing in common with any of them: it keeps its factor, and counts on neither side.
        """
        apart = self.free if self.means is not None else 0
        shared = len(self.factor) - apart
        factor = self.factor.copy()
        factor[:shared] *= np.sqrt(1.0 + np.sqrt(others / max(1, shared)))
        return replace(self, factor=factor)

    def bounding(self, blocks: Iterable[FloatArray], weight: float, l2: float) -> Whitening:
        """Whitening in which the loss of each block of rows alone curves by at most 1, too.

        ``blocks`` have the table's own columns, and each of their rows counts ``weight``: with B
        blocks of n rows in all the largest class weight times ``B / n``. One bound is raised block
        by block. An intercept beside centred columns is the same in every row, and stays.
        """
        apart = self.free if self.means is not None else 0
        shared = len(self.factor) - apart
        inverse = np.linalg.inv(self.factor)[:shared, : len(self.factor) - self.free]
        penalty, bound = l2 * inverse @ inverse.T, np.eye(shared)
        for block in blocks:
            values = self.apply(block)[:, :shared]
            square = weight / 4.0 * (values.T @ values) + penalty
            root = np.linalg.cholesky(bound)
            half = np.linalg.solve(root, square)
            excess, directions = np.linalg.eigh(np.linalg.solve(root, half.T) - np.eye(shared))
            raised = root @ directions * np.sqrt(np.maximum(excess, 0.0))
            bound += raised @ raised.T
        factor = self.factor.copy()
        factor[:, :shared] = factor[:, :shared] @ np.linalg.cholesky(bound)
        return replace(self, factor=factor)

    def within(self, largest: float, values: Iterable[FloatArray]) -> Whitening:
        """Whitening of which no value exceeds ``largest``: a larger bound on curvature is one too.

        ``values`` are parts of the table.
        """
        size = max(float(np.abs(self.apply(part)).max(initial=0.0)) for part in values)
        return replace(self, factor=self.factor * max(1.0, size / largest))

    def kept(self, l2: float, free: int = 0) -> FloatArray:
        """``I - P``: the part of weights that a step of length 1 on the penalty alone leaves.

        ``w^T P w`` is l2 times the squares of the original weights, but of the ``free`` last.
        """
        inverse = np.linalg.inv(self.factor)
        penalised = inverse[:, : len(inverse) - free]
        kept: FloatArray = np.eye(len(inverse)) - l2 * penalised @ penalised.T
        return kept

    def to_numbers(self) -> tuple[float, ...]:
        """Lower triangle of the factor, row by row, for a file."""
        return tuple(self.factor[np.tril_indices(len(self.factor))].tolist())

    @classmethod
    def from_numbers(
        cls, numbers: Sequence[float], columns: int, means: Sequence[float] = (), free: int = 0
    ) -> Whitening:
        """Inverse of ``to_numbers``; no ``means`` where columns are not centred.

        >>> whitening = Whitening(np.array([[2.0, 0.0], [1.0, 3.0]]))
        >>> Whitening.from_numbers(whitening.to_numbers(), 2).factor.tolist()
        [[2.0, 0.0], [1.0, 3.0]]
        """
        factor = np.zeros((columns, columns))
        factor[np.tril_indices(columns)] = numbers
        return cls(factor, np.array(means) if means else None, free)

    def apply(self, values: FloatArray) -> FloatArray:
        """Rows in the new coordinates: ``X L^-T``, of columns less their ``means``, if any."""
        whitened: FloatArray = centred(values, self.means) @ np.linalg.inv(self.factor).T
        return whitened

    def of_rows(self) -> Callable[[FloatArray], FloatArray]:
        """A function like ``apply``, whose result for a row does not depend on the other rows."""
        inverse: FloatArray = np.asarray(np.linalg.inv(self.factor).T, dtype=np.float64)
        return lambda values: row_transforms(centred(values, self.means), inverse)

    def weights(self, whitened: FloatArray) -> FloatArray:
        """Weights of the table's own columns, as they are: ``L^-T w~``.

        An intercept among them absorbs the means of the others. Without one the owner's scores lack
        ``centring_offset``.
        """
        weights = np.asarray(np.linalg.solve(self.factor.T, whitened), dtype=np.float64)
        if self.free:
            weights[-1] += centring_offset(weights, self.means)
        return weights

    def whitened(self, weights: FloatArray) -> FloatArray:
        """Weights in the new coordinates: the inverse of ``weights``."""
        if self.free:
            weights = weights.copy()
            weights[-1] -= centring_offset(weights, self.means)
        product: FloatArray = weights @ self.factor
        return product


def training_means(values: FloatArray, free: int = 0) -> FloatArray:
    """Mean of each column; 0 for the last ``free``, the intercept, which is not centred."""
    means = np.zeros(values.shape[1])
    for _, block in row_blocks(values):
        means += block.sum(axis=0) / len(values)
    means[values.shape[1] - free :] = 0.0
    return means


def centred(values: FloatArray, means: FloatArray | None) -> FloatArray:
    """Columns less their means; as they are where there are none."""
    return values if means is None else values - means


def centring_offset(weights: FloatArray, means: FloatArray | None) -> float:
    """Constant that centring adds to each score: minus the means times the weights, or 0."""
    return 0.0 if means is None else -float(means @ weights)


def _square(values: FloatArray, means: FloatArray | None) -> FloatArray:
    """``X^T X``, summed over blocks of rows in their order: the same whatever the cores."""
    rows, columns = values.shape
    if columns > _MOST_AT_A_TIME:
        # One square is large, and several blocks at a time have one each.
        blocks = (centred(block, means) for _, block in row_blocks(values))
        return reduce(operator.iadd, (block.T @ block for block in blocks))

    def square(place: slice) -> FloatArray:
        block = centred(values[place], means)
        product: FloatArray = block.T @ block
        return product

    return reduce(operator.iadd, over_blocks(square, rows, values))


def _cholesky(square: FloatArray) -> FloatArray:
    try:
        factor = np.asarray(np.linalg.cholesky(square), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise _nearly_dependent() from None
    # In exact arithmetic a pivot is at least l2: one that is lost beside its column is noise.
    if not np.all(np.diagonal(factor) ** 2 >= _LEAST_PIVOT * np.diagonal(square)):
        raise _nearly_dependent()
    return factor


def _nearly_dependent() -> ConfigError:
    return ConfigError(
        "columns that follow from one another are too large for the L2 penalty to tell apart",
        setting="l2",
        hint=Hint("scale the columns, drop those that repeat others, or raise {l2}"),
    )
