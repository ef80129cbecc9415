"""``sparse``: basis pursuit, the residues of smallest sum among all that fit.

Where most rows of a batch have no residue (``hybrid`` sets all but the true batch to zero), the
vector that minimises ``|r|_1`` subject to ``X^T r = g`` and ``|r| <= largest`` is the true one
[ChenDS98], as long as the true batch is small enough for the number of independent equations
[DonohoTanner09]. More unknowns than equations is no protection.

The linear program's vertex has at most as many rows as there are independent equations. They are
fitted once more, rounded to the residues' grid, and the integer equations are checked to the last
bit. Each equation beyond the number of rows that are left then holds by chance with probability
about ``2^-F``, for each choice of rows; the batch counts as certified where all choices together
come to less than ``2^-40``.

That argues with chance, about rows that are not related. Whatever the true residues are, those of
the rows that were left out must add up to a combination of the rows that were found; but for
chance, each of them alone must be one (a twin of a found row, or the sum of two less a third, as
columns of few levels make them). Such a row may hide in the found ones of which it is made, and
those are not called certain. The argument needs residues that are not alike: the first iteration,
in which all scores are equal, is never certified, nor is a row that shares the size of its residue
with another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb, log2

import numpy as np
from scipy.optimize import OptimizeResult, linprog

from taciturn.arrays import BoolArray, FloatArray
from taciturn.engine.callbacks import ReportProgress
from taciturn.protocol.observations import GradientSeen, Signal
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.attacks.linear import gradients, solve
from taciturn_audit.attacks.recovery import (
    ProvenLabels,
    Recovered,
    System,
    evenly,
    independent_columns,
    on_cores,
    scattered,
)
from taciturn_audit.views.alice_view import AliceView

# The probability of a coincidence that is still called certain is 2 to the minus this.
_CERTAIN_BITS = 40
# A vertex has true zeros; what is larger than this belongs to its support.
_ZERO = 1e-9
# So many entries of its matrix a simplex step goes through in about a millisecond.
_ENTRIES = 80_000
# Relative distance below which a row is a combination of others.
_SAME = 1e-7


@dataclass(frozen=True)
class SparseAttack(Attack):
    """Basis pursuit in each batch, certified in integers, summed over epochs.

    ``program`` bounds the work of one linear program; after ``work`` no further one begins. Both
    are in the units of ``LabelGuess``. ``most_batches`` are spread evenly over the run.
    """

    name = "sparse"
    reference = "basis pursuit [ChenDS98]"
    needs = frozenset({Signal.FEATURES, Signal.GRADIENTS})

    most_batches: int = 32_768
    program: float = 1_000.0
    work: float = 300_000.0

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        every = gradients(view)
        batches = scattered(evenly(every, self.most_batches))
        notes, total = ProvenLabels(view.features.rows), np.zeros(view.features.rows)
        tried = certified = failed = done = 0
        work, left_out = 0.0, False

        def recover(seen: GradientSeen) -> Recovered | None:
            useful = notes.may_prove(seen) and work < self.work
            return recover_sparse(view, seen, self.program) if useful else None

        for recovered in on_cores(recover, batches):
            done += 1
            progress(done, len(batches))
            if recovered is None:
                left_out |= work >= self.work
                continue
            tried += 1
            work += recovered.work
            certified += recovered.certified
            failed += recovered.failed
            notes.settle(recovered)
            total[recovered.seen.rows] += recovered.residues
        half_step = 2.0 ** -(view.agreement.residue_bits + 1)
        soft = np.where(np.abs(total) > half_step, total, 0.0)
        remark = _remark(tried, len(every), certified, failed)
        return notes.guess(soft, remark, limited=left_out or failed > 0, work=work)


def recover_sparse(view: AliceView, seen: GradientSeen, program: float = 1_000.0) -> Recovered:
    """The sparsest residues of a batch, as far as basis pursuit finds them."""
    system = System.from_view(view, seen)
    if len(seen.rows) <= system.features.shape[1]:
        (solved,) = solve(view, [seen])
        if solved.exact:
            steps = np.rint(solved.residues / system.step).astype(np.int64)
            size = int(np.count_nonzero(steps))
            return Recovered.proven(system, steps, size, np.ones(len(steps), dtype=bool))
    matrix = system.matrix
    columns = independent_columns(matrix)
    steps_each = 2 * len(matrix) * len(columns) / _ENTRIES
    most = max(1, int(program / steps_each)) if program > 0 else 0
    solution = _pursue(matrix[:, columns], system.target[columns], seen.largest, most)
    work = steps_each * solution.nit
    if solution.status != 0:
        return Recovered.nothing(seen, work)
    half = len(matrix)
    residues: FloatArray = solution.x[:half] - solution.x[half:]
    proven = _certified(system, residues, len(columns))
    if proven is not None:
        return replace(proven, work=work)
    members = np.abs(residues) > system.step
    none = np.zeros(half, dtype=bool)
    return Recovered(seen, residues, members, int(members.sum()), False, none, work=work)


def _pursue(matrix: FloatArray, target: FloatArray, largest: float, steps: int) -> OptimizeResult:
    """``min |r|_1`` as a linear program in the positive and the negative part of r."""
    both = np.concatenate([matrix, -matrix]).T
    return linprog(
        np.ones(2 * len(matrix)),
        A_eq=both,
        b_eq=target,
        bounds=(0.0, largest),
        method="highs-ds",
        options={"maxiter": steps},
    )


def _certified(system: System, residues: FloatArray, rank: int) -> Recovered | None:
    if system.seen.iteration == 0:
        return None
    (support,) = np.nonzero(np.abs(residues) > _ZERO)
    steps = system.fitted(support, system.seen.gradient.astype(np.float64))
    if steps is None or not system.holds(steps):
        return None
    members = steps != 0
    size = int(members.sum())
    chance = log2(comb(len(steps), size)) - system.residue_bits * (rank - size)
    if chance > -_CERTAIN_BITS:
        return None
    _, number, count = np.unique(np.abs(steps), return_inverse=True, return_counts=True)
    certain = members & (count[number] == 1) & ~hiding_places(system.matrix, members)
    return Recovered.proven(system, steps, size, certain)


def hiding_places(matrix: FloatArray, members: BoolArray) -> BoolArray:
    """The members of which some other row is a combination; members must be independent.

    >>> matrix = np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 1.0, 0], [1.0, 1.0, 0, 0]])
    >>> hiding_places(matrix, np.array([True, True, True, False])).tolist()
    [True, True, False, False]
    """
    inside, others = matrix[members], matrix[~members]
    shares = np.linalg.lstsq(inside.T, others.T, rcond=None)[0]
    apart = np.linalg.norm(others - shares.T @ inside, axis=1)
    made = apart <= _SAME * np.linalg.norm(others, axis=1)
    places = np.zeros(len(matrix), dtype=bool)
    places[members] = (np.abs(shares[:, made]) > _SAME).any(axis=1)
    return places


def _remark(tried: int, batches: int, certified: int, failed: int) -> str:
    looked = f"looked at {tried} of {batches} batches"
    proof = f"{certified} recovered and certified to the last bit"
    unsolved = f"; {failed} not solved within the limit" if failed else ""
    return f"{looked}, {proof}{unsolved}"
