"""All labels at once, where every row's number takes one of two values: a subset-sum problem.

``p = T^T a``, ``a_i`` one of two known values (one pair for every number of rows with label 1 where
Bob has an intercept), rounded up or down at random. Two ways to a labelling:

- *the smallest box*: of all a with these sums take the one whose values lie closest together. Below
  about two rows a column that is the true one [MangasarianRecht11], however long the integers;
- *the nearest vector of a lattice*: ``(y, W T^T y)`` for whole y is a lattice, and the true labels
  are its point nearest to ``(1/2, W m)``, where m is what the sums say of ``T^T y`` and W makes
  roundings count as much as a label. It succeeds while the sums hold well more bits than rows.

**Check.** A labelling is taken only if no sum is off by more than six standard deviations of the
roundings, and the sums hold enough bits for it to be the only one. It is called certain where
labellings that pass are rarer than ``2^-20`` by chance, and only in rows that cannot be flipped or
exchanged with another and still pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linprog
from scipy.special import entr

from taciturn.arrays import BoolArray, FloatArray, LabelArray
from taciturn_audit.attacks.group_sums import FirstPass
from taciturn_audit.lattice import Reduced, reduce_basis

# Standard deviations of the roundings that a sum may be off by.
_DEVIATIONS = 6.0
# Chance passes a labelling at most so often, in bits, for it to be called certain.
_SURE_BITS = 20.0
# The smallest box is tried up to this many rows for each independent sum, and rows in all.
_ROWS_PER_SUM, _MOST_BOXED = 2.5, 600
# Planes' best kept, and how many of them are checked.
_WIDTH, _CHECKED = 1000, 8
# A label counts as this many steps of the lattice, so that rounding its entries does not matter.
_GRAIN = 16
_LARGEST_ENTRY = 2.0**36
_BOX_ITERATIONS = 20_000
_ENTRIES_PER_WORK_UNIT, _WORK_OF_PLANES = 100.0, 50.0
# The entropy of a random rounding, on average over what is rounded.
_BITS_OF_A_ROUNDING = 0.5 / np.log(2.0)
# How exact the other party's floating-point slopes are at least.
_FLOATING = 1e-7


@dataclass(frozen=True, slots=True)
class Labelling:
    """Labels that fit every sum, and where they are proven."""

    values: LabelArray = field(repr=False)
    certain: BoolArray = field(repr=False)


@dataclass
class Solver:
    """Search for a labelling within limits; ``remark`` and ``limited`` describe how it ended.

    Beyond ``most_rows`` rows no lattice is reduced. ``passes`` is the number of sums of each
    column. ``work`` is in the units of ``LabelGuess``.
    """

    first: FirstPass
    most_rows: int
    passes: int = 1
    limited: bool = False
    work: float = 0.0
    remark: str = ""

    def solve(self) -> Labelling | None:
        """A labelling that passes the check; None where there is none or none was found."""
        rows = len(self.first.table)
        if not self.first.slopes.two_valued:
            self.remark = "linear guess, as Bob's columns hide the values of the slopes"
            return None
        ways = {"the smallest box": self._from_box, "a lattice": self._from_lattice}
        for name, candidates in ways.items():
            for values in candidates():
                if (labelling := self._checked(values)) is not None:
                    proven = int(np.count_nonzero(labelling.certain))
                    self.remark = f"{name} gives labels that fit them all, {proven} proven"
                    self.limited = False
                    return labelling
        self.remark = "linear guess, as no labelling was found that fits them"
        if rows > self.most_rows:
            self.remark = "linear guess, as there are too many rows to search for labels"
            self.limited |= self._determined()
        return None

    def _determined(self) -> bool:
        """Whether a search without a limit might succeed.

        The integers of all passes are public functions of the labels and of the roundings, so that
        they determine the labels in principle where they hold more bits than both of these have.
        """
        first = self.first
        rows = len(first.table)
        law = first.slopes.law(rows // 2, rows)
        if law is None:
            return False
        sizes = np.linalg.norm(first.table, axis=0) * first.unit
        held = np.log2(np.maximum(1.0, np.sqrt(2.0 * np.pi * np.e) * sizes)).sum()
        fractions = _halves(first, law) % 1.0
        first_roundings = float((entr(fractions) + entr(1.0 - fractions)).sum()) / np.log(2.0)
        later_roundings = (self.passes - 1) * rows * _BITS_OF_A_ROUNDING
        return bool(self.passes * held > rows + first_roundings + later_roundings)

    def _from_box(self) -> Iterator[LabelArray]:
        first = self.first
        rows, columns = first.table.shape
        if rows > min(_MOST_BOXED, _ROWS_PER_SUM * first.rank):
            return
        # Unknowns: the numbers, the middle of the box, its half width, and the roundings.
        scale = 1.0 / np.maximum(np.abs(first.table).max(axis=0), 1.0)
        table, target = (first.table * scale).T, first.product * scale / first.unit
        slack = np.sqrt(rows) / first.unit
        cost = np.concatenate([np.zeros(rows + 1), [1.0], np.full(2 * columns, 1.0 / slack)])
        sums = np.hstack([table, np.zeros((columns, 2)), np.eye(columns), -np.eye(columns)])
        below = np.hstack([np.eye(rows), -np.ones((rows, 2)), np.zeros((rows, 2 * columns))])
        above = below.copy()
        above[:, :rows] *= -1.0
        above[:, rows] *= -1.0
        middle = (0.0, 0.0) if first.slopes.exact else (None, None)
        bounds = [(None, None)] * rows + [middle, (0.0, None)]
        bounds += [(0.0, 8.0 * slack)] * (2 * columns)
        solved = linprog(
            cost,
            A_ub=np.vstack([below, above]),
            b_ub=np.zeros(2 * rows),
            A_eq=sums,
            b_eq=target,
            bounds=bounds,
            options={"maxiter": _BOX_ITERATIONS},
        )
        self.work += rows * columns / 10.0
        if solved.x is None:
            self.limited |= solved.status == 1
            return
        yield (solved.x[:rows] > solved.x[rows]).astype(np.int8)

    def _from_lattice(self) -> Iterator[LabelArray]:
        first = self.first
        rows = len(first.table)
        if rows > self.most_rows or (middle := first.slopes.law(rows // 2, rows)) is None:
            return
        weight = 0.5 * first.unit * (middle[1] - middle[0]) / _noise(first, _halves(first, middle))
        largest = _LARGEST_ENTRY / _GRAIN / np.abs(first.table).max(initial=1.0)
        weight = np.minimum(weight, largest)
        lattice = self._reduced(weight)
        for zero, one in first.slopes.laws(rows):
            wanted = first.product / first.unit - zero * first.table.sum(axis=0)
            sums = weight * wanted / (one - zero)
            target = _GRAIN * np.concatenate([np.full(rows, 0.5), sums])
            self.work += _WORK_OF_PLANES
            for near in lattice.nearest(target, _WIDTH)[:_CHECKED]:
                values = near[:rows] // _GRAIN
                if ((values == 0) | (values == 1)).all():
                    yield values.astype(np.int8)

    def _reduced(self, weight: FloatArray) -> Reduced:
        rows = len(self.first.table)
        entries = np.rint(_GRAIN * weight * self.first.table).astype(np.int64)
        basis = np.hstack([_GRAIN * np.eye(rows, dtype=np.int64), entries])
        self.work += rows**2 / _ENTRIES_PER_WORK_UNIT
        return reduce_basis(basis)

    def _checked(self, values: LabelArray) -> Labelling | None:
        first = self.first
        law = first.slopes.law(int(np.count_nonzero(values)), len(values))
        if law is None:
            return None
        zero, one = law
        numbers = first.unit * np.where(values == 1, one, zero)
        margin = _DEVIATIONS * _noise(first, numbers)
        left = first.product - numbers @ first.table
        if (np.abs(left) > margin).any():
            return None
        step = first.unit * (one - zero)
        spare = _bits(first, step, margin) - len(values)
        if spare < 0:
            # Many labellings fit, and nothing says that this is the one.
            return None
        if spare < _SURE_BITS:
            return Labelling(values, np.zeros(len(values), dtype=bool))
        return Labelling(values, ~_exchangeable(first, values, step, left, margin))


def _halves(first: FirstPass, law: tuple[float, float]) -> FloatArray:
    return first.unit * np.where(np.arange(len(first.table)) % 2 == 1, law[1], law[0])


def _noise(first: FirstPass, numbers: FloatArray) -> FloatArray:
    """The standard deviation of each sum where these numbers are rounded at random."""
    fractions = numbers - np.floor(numbers)
    chance = fractions * (1.0 - fractions)
    # Bob's own arithmetic, and hers, are floating-point.
    floating = (_FLOATING * first.unit) ** 2 + 1e-6
    deviation: FloatArray = np.sqrt((chance + floating) @ first.table**2)
    return np.maximum(deviation, 0.5)


def _bits(first: FirstPass, step: float, margin: FloatArray) -> float:
    """The bits of a labelling that the sums hold: one in ``2^bits`` passes the check by chance."""
    spread = 0.5 * step * np.linalg.norm(first.table, axis=0)
    share = np.minimum(1.0, 2.0 * margin / (np.sqrt(2.0 * np.pi) * np.maximum(spread, 1e-300)))
    return float(-np.log2(share).sum())


def _exchangeable(
    first: FirstPass, values: LabelArray, step: float, left: FloatArray, margin: FloatArray
) -> BoolArray:
    moved = step * first.table
    turn = np.where(values == 1, -1.0, 1.0)[:, None] * (moved - moved.mean(axis=0))
    if not first.slopes.bob_columns:
        turn = np.where(values == 1, -1.0, 1.0)[:, None] * moved
    loose: BoolArray = (np.abs(left - turn) <= margin).all(axis=1)
    ones, zeros = np.flatnonzero(values == 1), np.flatnonzero(values == 0)
    for row in ones:
        fits = (np.abs(left - (moved[zeros] - moved[row])) <= margin).all(axis=1)
        loose[zeros[fits]] = True
        loose[row] |= bool(fits.any())
    return loose
