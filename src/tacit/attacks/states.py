"""The one state of every row that fits a batch's gradient: a small integer program.

Where Alice knows the probabilities f, a row is in one of two states (its label), or in ``hybrid``
of three: label 1, label 0, not in the true batch. With indicators ``u`` (in the batch, label 1) and
``v`` (in the batch, label 0) and ``k = sum(u + v)``, Bob's ``r = (batch_size / k)(u (1-f) - v f)``
makes the gradient's equations linear although k is unknown::

    X^T (u (1-f) - v f) - (g / batch_size) sum(u + v) = 0,     u + v <= 1

and without hiding simply ``X^T y = g + X^T f``. Rounding to the residues' grid moves a side by at
most half a step for each row. HiGHS solves the linear relaxation first; where rows are fewer than
twice the independent equations that alone is usually integral (Cover 1965), beyond it branches.

A state that is found is turned into the integers that Bob must have encoded, and these are checked
to the last bit. Rows whose residue is next to nothing fit in any state; they are fitted as free
integers afterwards, if they are few.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp

from tacit.arrays import BoolArray, FloatArray, IntArray
from tacit.attacks.posterior import Law
from tacit.attacks.recovery import System, independent_columns, independent_rows

INFEASIBLE = 2
# Log-odds beyond this are not told apart in a search.
_MOST_ODDS = 12.0
# Residues of fewer steps than this may be lost in the tolerance of a search.
_FAINT_STEPS = 256
# How often rows that turn out to be exchangeable are set aside.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Search:
    """A batch, and what is known of its rows.

    Args:
        system: The batch's equations.
        law: What everybody knows about it.
        f: The probabilities with which Bob made the residues.
        odds: Log-odds of label 1, to look first where it is likely.
        fixed: Where the label is taken as the sign of ``odds``.
        seconds: The most that a search may take.
    """

    system: System
    law: Law
    f: FloatArray = field(repr=False)
    odds: FloatArray = field(repr=False)
    fixed: BoolArray = field(repr=False)
    seconds: float

    def find(self) -> IntArray | None:
        """+1 for label 1, -1 for label 0, 0 for a row outside the batch; None if none is found."""
        # Any state that fits will do: the integers decide whether it is the true one.
        return self._states(self._solve(self._costs(), [], gap=np.inf))

    def proven(self, states: IntArray) -> IntArray | None:
        """The integers that Bob encoded, if they are these rows' and hold to the last bit."""
        steps = self._encoded(states)
        left = self.system.missing(steps)
        if left is None:
            return None
        if not left.any():
            return steps
        return self._refitted(steps)

    def unique(self, states: IntArray) -> BoolArray:
        """The members that have the same state in every solution, as far as a search can prove."""
        members = states != 0
        generic = self.law.design is None or bool(np.ptp(self.f) > 0)
        if generic and independent_rows(self.system.features[members]):
            # Labels of the same rows cannot be exchanged, and other rows have other values.
            return members
        open_rows = members.copy()
        apart = replace(self, fixed=np.zeros(len(states), dtype=bool))
        for _ in range(_ROUNDS):
            found = apart._other(states, open_rows)
            if found.status == INFEASIBLE:
                return open_rows
            other = apart._states(found)
            if other is None:
                break
            open_rows &= other == states
        return np.zeros(len(states), dtype=bool)

    @property
    def _hidden(self) -> bool:
        return self.law.design is not None

    def _encoded(self, states: IntArray) -> IntArray:
        """As Bob encodes them: the nearest grid point of ``s (y - f)``."""
        members = states != 0
        residues = np.where(members, (states > 0) - self.f, 0.0)
        if self._hidden:
            residues = residues * (self.law.batch_size / max(1, int(members.sum())))
        return np.rint(residues * 2.0**self.system.residue_bits).astype(np.int64)

    def _refitted(self, steps: IntArray) -> IntArray | None:
        """The integers with those of faint rows, in whatever state, made to fit."""
        faint = np.minimum(self.f, 1.0 - self.f) < _FAINT_STEPS * self.system.step
        faint &= np.abs(steps) < _FAINT_STEPS * self.law.batch_size
        kept = np.where(faint, 0, steps)
        left = self.system.missing(kept)
        if left is None:
            return None
        fitted = self.system.fitted(np.flatnonzero(faint), left.astype(np.float64))
        if fitted is None or np.abs(fitted).max() > _FAINT_STEPS * self.law.batch_size:
            return None
        whole: IntArray = kept + fitted
        return whole if self.system.holds(whole) else None

    def _costs(self) -> FloatArray:
        odds = np.clip(self.odds, -_MOST_ODDS, _MOST_ODDS)
        if not self._hidden:
            return -odds
        share = self.law.share(len(odds))
        absent = np.log1p(-share) - np.log(share)
        as_one, as_zero = np.logaddexp(0.0, -odds), np.logaddexp(0.0, odds)
        return np.concatenate([as_one, as_zero]) + absent

    def _other(self, states: IntArray, rows: BoolArray) -> OptimizeResult:
        """Another solution that differs from this one in at least one of these rows."""
        one, zero = (states > 0) & rows, (states < 0) & rows
        kept = np.concatenate([one, zero]) if self._hidden else one * 1.0 - zero
        most = (int(rows.sum()) if self._hidden else int(one.sum())) - 1
        fewer = LinearConstraint(np.asarray(kept, dtype=np.float64)[None], -np.inf, most)
        return self._solve(np.zeros(len(kept)), [fewer], gap=np.inf)

    def _solve(self, costs: FloatArray, more: list[LinearConstraint], gap: float) -> OptimizeResult:
        matrix, target = self.system.matrix, self.system.target
        columns = independent_columns(matrix)
        sides, room = (
            matrix[:, columns].T,
            self.system.step * np.abs(matrix[:, columns]).sum(axis=0),
        )
        goal = target[columns]
        one = self.odds > 0
        if self._hidden:
            assert self.law.design is not None  # noqa: S101
            scaled = (goal / self.law.batch_size)[:, None]
            equations = np.hstack([sides * (1.0 - self.f) - scaled, -sides * self.f - scaled])
            rows = np.eye(len(matrix))
            limits = [
                LinearConstraint(equations, -room, room),
                LinearConstraint(np.hstack([rows, rows]), -np.inf, 1.0),
                LinearConstraint(np.ones((1, 2 * len(rows))), 1, self.law.design.marked),
            ]
            highest = 1.0 - np.concatenate([self.fixed & ~one, self.fixed & one])
            bounds = Bounds(0.0, highest)
        else:
            goal = goal + sides @ self.f
            limits = [LinearConstraint(sides, goal - room, goal + room)]
            bounds = Bounds((self.fixed & one) * 1.0, 1.0 - (self.fixed & ~one))
        return milp(
            costs,
            constraints=[*limits, *more],
            bounds=bounds,
            integrality=np.ones(len(costs)),
            options={"time_limit": self.seconds, "mip_rel_gap": gap},
        )

    def _states(self, found: OptimizeResult) -> IntArray | None:
        if found.x is None:
            return None
        whole = np.rint(found.x).astype(np.int64)
        if not self._hidden:
            return 2 * whole - 1
        half = len(whole) // 2
        return whole[:half] - whole[half:]
