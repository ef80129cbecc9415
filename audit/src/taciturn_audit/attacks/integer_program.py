"""Integer program: the state of every row that fits a batch's gradient, and whether it is unique.

Where Alice knows the probabilities f, a row is in one of two states (its label), or in ``hybrid``
of three: label 1, label 0, not in the true batch. With indicators ``u`` (in the batch, label 1) and
``v`` (in the batch, label 0) and ``k = sum(u + v)``, Bob's ``r = (batch_size / k)(u (1-f) - v f)``
makes the gradient's equations linear although k is unknown::

    X^T (u (1-f) - v f) - (g / batch_size) sum(u + v) = 0,     u + v <= 1

and without hiding simply ``X^T y = g + X^T f``. Other residues for the two labels, as ``label-rr``
has them, take the place of ``1-f`` and ``-f``; the states are then those of flipped labels.
Rounding to the residues' grid moves a side by at most half a step for each row. HiGHS solves the
linear relaxation first; where rows are fewer than twice the independent equations that alone is
usually integral [Cover65], beyond it branches.

A state that is found is turned into the integers that Bob must have encoded, and these are checked
to the last bit. Rows whose residue is next to nothing fit in any state; they are fitted as free
integers afterwards, if they are few.

Is it the only one? Other labels for the same rows would need flips ``w >= 0`` of some of them with
``sum_i w_i s_i x_i = 0``, where ``s_i`` is +1 for label 1 and -1 for label 0; a linear program
finds the largest set of rows that can take part, and all others are proven. Another *true batch* is
ruled out by chance: its residues would have to meet every integer equation with other values of f.
Where all f are alike (the first iteration) or too many rows could be flipped, the integer program
is asked for another solution, and only its "there is none" counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, linprog, milp

from taciturn.arrays import BoolArray, FloatArray, IntArray
from taciturn_audit.attacks.posterior import Law
from taciturn_audit.attacks.recovery import System, independent_columns

# SciPy's word for it.
_INFEASIBLE = 2
# Log-odds beyond this are not told apart in a search.
_MOST_ODDS = 12.0
# Residues of fewer steps than this may be lost in the tolerance of a search.
_FAINT_STEPS = 256
# A flip of less than this is a solver's rounding.
_MOVED = 1e-6
# So many entries of its matrix an integral relaxation goes through in about a millisecond, and how
# many times as long a node of a tree takes.
_ENTRIES, _ROOT = 1_000, 50
# How often rows that turn out to be exchangeable are set aside.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class _Solved:
    work: float
    conclusive: bool

    @classmethod
    def from_result(cls, result: OptimizeResult, entries: int, limit: int) -> _Solved:
        """The work, counted and not timed.

        SciPy does not report the nodes of a search that ends without a solution.
        """
        conclusive = result.x is not None or result.status == _INFEASIBLE
        nodes = result.get("mip_node_count")
        nodes = (1 if conclusive else limit) if nodes is None else int(nodes)
        return cls(entries / _ENTRIES * max(1, _ROOT * nodes), conclusive)


@dataclass(frozen=True, slots=True)
class Search:
    """Integer program for the states of one batch's rows.

    ``one`` and ``zero`` are the residues that Bob computes for the two labels. The log-odds
    ``odds`` (label 1) and ``member`` (true batch) direct the search. Where ``fixed``, the label is
    the sign of ``odds``. ``nodes`` bounds a search's tree.
    """

    system: System
    law: Law
    one: FloatArray = field(repr=False)
    zero: FloatArray = field(repr=False)
    odds: FloatArray = field(repr=False)
    member: FloatArray = field(repr=False)
    fixed: BoolArray = field(repr=False)
    nodes: int
    _solved: list[_Solved] = field(default_factory=list, repr=False)

    @property
    def work(self) -> float:
        """Work so far, in the units of ``LabelGuess``."""
        return sum(solved.work for solved in self._solved)

    @property
    def unsolved(self) -> bool:
        """Whether a search ended at its limit, with neither a solution nor "there is none"."""
        return any(not solved.conclusive for solved in self._solved)

    def find(self) -> IntArray | None:
        """+1 for label 1, -1 for label 0, 0 for a row outside the batch; None if none is found."""
        odds = np.clip(self.odds, -_MOST_ODDS, _MOST_ODDS)
        if self.law.design is None:
            costs = -odds
        else:
            member = np.clip(self.member, -_MOST_ODDS, _MOST_ODDS)
            as_one, as_zero = np.logaddexp(0.0, -odds), np.logaddexp(0.0, odds)
            costs = np.concatenate([as_one - member, as_zero - member])
        return self._states(self._solve(costs, []))

    def proven(self, states: IntArray) -> IntArray | None:
        """The integers that Bob encoded, if they are these rows' and hold to the last bit."""
        steps = self._encoded(states)
        left = self.system.remainder(steps)
        if left is None:
            return None
        return self._refitted(steps) if left.any() else steps

    def unique(self, states: IntArray) -> BoolArray:
        """The members that have the same state in every solution, as far as that is proven."""
        members: BoolArray = states != 0
        if self.law.design is None or np.ptp(self.one) > 0:
            firm: BoolArray = members & ~exchangeable(self.system.matrix, states)
            if firm.any():
                return firm
        apart = replace(self, fixed=np.zeros(len(states), dtype=bool))
        for _ in range(_ROUNDS):
            alternative = apart._other(states, members)
            if alternative.status == _INFEASIBLE:
                return members
            other = apart._states(alternative)
            if other is None:
                break
            members &= other == states
        return np.zeros(len(states), dtype=bool)

    def _encoded(self, states: IntArray) -> IntArray:
        """Bob's encoding: the nearest grid point of s times the label's residue."""
        members = states != 0
        residues = np.where(members, np.where(states > 0, self.one, self.zero), 0.0)
        if self.law.design is not None:
            residues = residues * (self.law.batch_size / max(1, int(members.sum())))
        return np.rint(residues * 2.0**self.system.residue_bits).astype(np.int64)

    def _refitted(self, steps: IntArray) -> IntArray | None:
        largest = _FAINT_STEPS * self.system.seen.largest
        faint = np.minimum(self.one, -self.zero) < _FAINT_STEPS * self.system.step
        faint &= np.abs(steps) <= largest
        kept = np.where(faint, 0, steps)
        left = self.system.remainder(kept)
        if left is None:
            return None
        fitted = self.system.fitted(np.flatnonzero(faint), left.astype(np.float64))
        if fitted is None or np.abs(fitted).max() > largest:
            return None
        whole: IntArray = kept + fitted
        return whole if self.system.holds(whole) else None

    def _other(self, states: IntArray, rows: BoolArray) -> OptimizeResult:
        one, zero = (states > 0) & rows, (states < 0) & rows
        if self.law.design is None:
            agreeing, most = one * 1.0 - zero, int(one.sum()) - 1
        else:
            agreeing, most = np.concatenate([one, zero]) * 1.0, int(rows.sum()) - 1
        fewer = LinearConstraint(agreeing[None], -np.inf, most)
        return self._solve(np.zeros(len(agreeing)), [fewer])

    def _solve(self, costs: FloatArray, more: list[LinearConstraint]) -> OptimizeResult:
        matrix = self.system.matrix
        columns = independent_columns(matrix)
        sides, goal = matrix[:, columns].T, self.system.target[columns]
        room = self.system.step * np.abs(sides).sum(axis=1)
        one = self.odds > 0
        if self.law.design is None:
            goal = goal - sides @ self.zero
            # At one scale whatever a label moves: the solver's tolerances are absolute.
            gaps = self.one - self.zero
            moved, goal, room = (term / gaps.max() for term in (sides * gaps, goal, room))
            limits = [LinearConstraint(moved, goal - room, goal + room)]
            bounds = Bounds((self.fixed & one) * 1.0, 1.0 - (self.fixed & ~one))
        else:
            mean = (goal / self.law.batch_size)[:, None]
            equations = np.hstack([sides * self.one - mean, sides * self.zero - mean])
            rows = np.eye(len(matrix))
            limits = [
                LinearConstraint(equations, -room, room),
                LinearConstraint(np.hstack([rows, rows]), -np.inf, 1.0),
                LinearConstraint(np.ones((1, 2 * len(rows))), 1, self.law.design.marked),
            ]
            bounds = Bounds(0.0, 1.0 - np.concatenate([self.fixed & ~one, self.fixed & one]))
        result = milp(
            costs,
            constraints=[*limits, *more],
            bounds=bounds,
            integrality=np.ones(len(costs), dtype=np.int64),
            # Any state that fits will do: the integers decide whether it is the true one.
            options={"node_limit": self.nodes, "mip_rel_gap": np.inf},
        )
        height = len(goal) + (0 if self.law.design is None else len(matrix))
        self._solved.append(_Solved.from_result(result, len(costs) * height, self.nodes))
        return result

    def _states(self, solution: OptimizeResult) -> IntArray | None:
        if solution.x is None:
            return None
        whole: IntArray = np.rint(solution.x).astype(np.int64)
        if self.law.design is None:
            return 2 * whole - 1
        half = len(whole) // 2
        states: IntArray = whole[:half] - whole[half:]
        return states


def exchangeable(matrix: FloatArray, states: IntArray) -> BoolArray:
    """Rows whose labels might be flipped together without a trace.

    States are +1 or -1 by label; rows with 0 take no part.

    >>> matrix = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> exchangeable(matrix, np.array([1, -1, 1])).tolist()
    [True, True, False]
    >>> exchangeable(matrix, np.array([1, 1, 1])).tolist()
    [False, False, False]
    """
    (rows,) = np.nonzero(states)
    signed = matrix[rows] * states[rows, None]
    columns = independent_columns(signed)
    movable = np.zeros(len(states), dtype=bool)
    if len(columns) == len(rows):
        return movable
    # Flips w may be scaled, so that t = min(w, 1) is 1 for every row that can take part.
    nothing, unit = np.zeros((len(columns), len(rows))), np.eye(len(rows))
    solved = linprog(
        np.concatenate([np.zeros(len(rows)), -np.ones(len(rows))]),
        A_eq=np.hstack([signed[:, columns].T, nothing]),
        b_eq=np.zeros(len(columns)),
        A_ub=np.hstack([-unit, unit]),
        b_ub=np.zeros(len(rows)),
        bounds=[(0, None)] * len(rows) + [(0, 1)] * len(rows),
        method="highs-ds",
    )
    movable[rows] = True if solved.x is None else solved.x[len(rows) :] > _MOVED
    return movable
