"""``stacking``: the equations of all batches and epochs at once, as one system in the labels.

Residues change from epoch to epoch, labels do not. With ``r = y - f`` and known scores::

    X_t^T y = g_t + X_t^T f_t        d_A equations for each batch t

An epoch has too few of them where batches are larger than d_A; but rows are shuffled anew each
epoch, and from ``epochs * d_A >= |B|`` on there are as many equations as labels.

**Solution.** Each batch's equations are first made orthonormal: with ``X = U S V^T`` they say
``U^T y = U^T f + S^-1 V^T g``, where rounding of the residues counts for half a step of their grid,
however ill-conditioned X is. LSMR [FongSaunders11] then finds the solution nearest to one half.
Where it leaves labels open, accelerated projected gradients [BeckTeboulle09] look for a solution
between 0 and 1, which half as many equations may determine.

**Certain.** That labels satisfy the equations does not make them right: two equal rows may swap
theirs. Write A for the equations, b for their right-hand sides, u for the found ``y - 1/2`` and v
for the true one, both with entries ±1/2. Any combination ``c = A^T l`` of the equations has
``c.v = l.b``, but for rounding, so that ``d = c.u - l.b`` is what wrong rows make of it::

    d = sum over wrong rows of c_i 2u_i

Where ``c_i`` has the sign of ``u_i`` and exceeds d, all that have the other sign together, and what
rounding may add, row i is not among the wrong ones: that is a proof, and such a row is called
certain. A combination that proves many rows is looked for by descent. Without known scores b is an
estimate, and nothing is called certain.

**Flipped labels.** In ``label-rr`` a flipped label moves its residue not by 1 but by a gap that its
score decides, at most ``tanh(eps/2)``; the rows of U are scaled by it, and all of the above is
about flipped labels.

The remark counts the batches whose integer equations the rounded labels satisfy, recomputed as Bob
computes residues. A step in each residue is allowed for, since another machine may round a score
otherwise; a wrong label is 2^residue_bits of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsmr

from taciturn.arrays import BoolArray, FloatArray, IndexArray
from taciturn.engine.callbacks import ReportProgress
from taciturn.protocol.observations import GradientSeen, Signal
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.attacks.linear import gradients, residue_step
from taciturn_audit.views.alice_view import AliceView

# Directions that a batch hardly sees are left out: solving for them would multiply the rounding.
_WEAKEST = 1e-8
_STACK_ENTRIES = 1 << 20
# At eight bytes each, half a gigabyte: of more epochs than that the first ones are taken.
_MOST_ENTRIES = 1 << 26
# What a solution may cost, in entries touched: some ten seconds.
_MOST_WORK = 4e9
_MOST_STEPS = 1000
_ROUNDS = 4
# Labels this far from one half are at 0 or 1.
_DECIDED = 0.49
# For progress: the equations, two solutions, the proof.
_STAGES = 4


class StackingAttack(Attack):
    """One sparse system in the labels, over all batches and epochs."""

    name = "stacking"
    reference = "[Tan22] Eq. 3 over all epochs; [FongSaunders11], [BeckTeboulle09]"
    needs = frozenset({Signal.FEATURES, Signal.GRADIENTS})

    def obstacle(self, view: AliceView) -> str:
        """Hidden batches: the rows of an equation are not known."""
        if Signal.RESPONSE in view.signals:
            return "the batches are hidden: the equations are not linear in the labels alone"
        return ""

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        batches, of_epochs = _affordable(view)
        system = System.from_batches(view, batches, progress)
        progress(len(batches), _STAGES * len(batches))
        estimate = system.solve()
        progress(2 * len(batches), _STAGES * len(batches))
        fits = _fits(view, batches, estimate > 0)
        if not (view.scores_known and fits.all()):
            estimate = system.solve_inside(np.clip(estimate, -0.5, 0.5))
            fits = _fits(view, batches, estimate > 0)
        progress(3 * len(batches), _STAGES * len(batches))
        certain = np.zeros(len(estimate), dtype=bool)
        step = residue_step(view) / largest_gap(view)
        if view.scores_known:
            undecided = (np.abs(estimate) < _DECIDED) & (not fits.all())
            certain = system.proven(estimate > 0, undecided, step)
        progress(_STAGES * len(batches), _STAGES * len(batches))
        remark = _remark(view, fits, 1 + batches[-1].epoch, of_epochs)
        return LabelGuess(estimate, np.abs(estimate) > step, certain, remark)


@dataclass(frozen=True, slots=True)
class Block:
    """Batches of one epoch and size.

    ``basis`` holds a U for each, with zeros for what is cut; where labels were flipped its rows are
    scaled by how far a label moves the residue.
    """

    rows: IndexArray = field(repr=False)
    basis: FloatArray = field(repr=False)


class System:
    """``U_t^T (y - 1/2) = targets`` for all batches; one half is an unknown label."""

    def __init__(self, rows: int, blocks: list[Block], targets: FloatArray) -> None:
        self.rows = rows
        self.targets = targets
        self._blocks = blocks
        entries = sum(block.basis.size for block in blocks)
        self._steps = int(np.clip(_MOST_WORK / max(1, entries), 50, _MOST_STEPS))
        # How often a row is in a batch. Each epoch projects, so this bounds the squared norm.
        self._times = max(1.0, sum(block.rows.size for block in blocks) / rows)

    @classmethod
    def from_batches(
        cls, view: AliceView, batches: list[GradientSeen], progress: ReportProgress
    ) -> System:
        """The equations of these batches."""
        blocks: list[Block] = []
        targets: list[FloatArray] = []
        done = 0
        for stack in _stacks(batches):
            progress(done, _STAGES * len(batches))
            block, target = _orthonormal(view, stack)
            blocks.append(block)
            targets.append(target.ravel())
            done += len(stack)
        return cls(view.features.rows, blocks, np.concatenate(targets))

    def forward(self, labels: FloatArray) -> FloatArray:
        """The left-hand sides of the equations for these labels."""
        flat = labels.ravel()
        return np.concatenate(
            [
                np.einsum("kbm,kb->km", block.basis, flat[block.rows], optimize=True).ravel()
                for block in self._blocks
            ]
        )

    def backward(self, sides: FloatArray) -> FloatArray:
        """The transpose of ``forward``."""
        total, start = np.zeros(self.rows), 0
        flat = sides.ravel()
        for block in self._blocks:
            count, _, width = block.basis.shape
            part = flat[start : start + count * width].reshape(count, width)
            # A block's batches are of one epoch: no row is in two of them.
            total[block.rows] += np.einsum("kbm,km->kb", block.basis, part, optimize=True)
            start += count * width
        return total

    def solve(self) -> FloatArray:
        """The solution of least norm, that is nearest to one half; of least squares if none."""
        shape = (len(self.targets), self.rows)
        operator = LinearOperator(shape, self.forward, self.backward, dtype=np.float64)
        solution = lsmr(
            operator, self.targets, atol=1e-9, btol=1e-9, conlim=0.0, maxiter=self._steps
        )
        return np.asarray(solution[0], dtype=np.float64)

    def solve_inside(self, start: FloatArray) -> FloatArray:
        """A solution with every label between 0 and 1, or what comes nearest to one."""

        def step(at: FloatArray) -> FloatArray:
            slope = self.backward(self.forward(at) - self.targets)
            return np.clip(at - slope / self._times, -0.5, 0.5)

        return _accelerated(step, start, self._steps)

    def proven(self, labels: BoolArray, undecided: BoolArray, residue_step: float) -> BoolArray:
        """The rows whose label cannot be other than this, whatever the others are.

        ``undecided`` rows are left out of the proof. ``residue_step`` is the step of the residues'
        grid, in units of the largest gap.
        """
        signs = np.where(labels, 1.0, -1.0)
        apart = self.forward(signs / 2) - self.targets
        # Half a step in each residue, and a step for a score that was rounded otherwise.
        rounding = 1.5 * residue_step * np.sqrt(self._times * self.rows)
        certain = np.zeros(self.rows, dtype=bool)
        sides = np.zeros(len(self.targets))
        for _ in range(_ROUNDS):

            def step(at: FloatArray, without: BoolArray = undecided) -> FloatArray:
                signed = signs * self.backward(at)
                lacking = np.where(without, -signed, np.maximum(0.0, 1.0 - signed))
                climbed: FloatArray = at + self.forward(signs * lacking) / self._times
                return climbed

            sides = _accelerated(step, sides, self._steps // _ROUNDS)
            signed = signs * self.backward(sides)
            others = sides @ apart - signed[signed < 0].sum()
            certain |= signed > others + np.linalg.norm(sides) * rounding
            if certain.all():
                break
            undecided = undecided | (signed < 0.5)
        return certain


def _accelerated(
    step: Callable[[FloatArray], FloatArray], start: FloatArray, most: int
) -> FloatArray:
    """A gradient step repeated with momentum [BeckTeboulle09], which restarts when it errs."""
    at, ahead, pace = start, start, 1.0
    for _ in range(most):
        after = step(ahead)
        moved = after - at
        if (ahead - after) @ moved > 0:
            pace = 1.0
        faster = (1 + np.sqrt(1 + 4 * pace**2)) / 2
        ahead = after + (pace - 1) / faster * moved
        at, pace = after, faster
        if np.abs(moved).max() < 1e-7:
            break
    return at


def _affordable(view: AliceView) -> tuple[list[GradientSeen], int]:
    seen = gradients(view)
    epochs = 1 + max(batch.epoch for batch in seen)
    size = max(len(batch.rows) for batch in seen)
    entries = view.features.rows * min(size, len(seen[0].gradient))
    taken = min(epochs, max(1, _MOST_ENTRIES // entries))
    return [batch for batch in seen if batch.epoch < taken], epochs


def _stacks(batches: list[GradientSeen]) -> Iterator[list[GradientSeen]]:
    for (_, size), same in groupby(batches, key=lambda seen: (seen.epoch, len(seen.rows))):
        group = list(same)
        count = max(1, _STACK_ENTRIES // (size * len(group[0].gradient)))
        for start in range(0, len(group), count):
            yield group[start : start + count]


def _orthonormal(view: AliceView, stack: list[GradientSeen]) -> tuple[Block, FloatArray]:
    rows = np.stack([seen.rows for seen in stack])
    pairs = [view.residues(seen.rows, seen.weights) for seen in stack]
    one, zero = (np.stack(candidates) for candidates in zip(*pairs, strict=True))
    totals = np.stack([seen.gradient for seen in stack]).astype(np.float64)
    features = view.encoded(rows.ravel()).reshape(*rows.shape, -1).astype(np.float64)
    u, s, vt = np.linalg.svd(features, full_matrices=False)
    kept = s > _WEAKEST * s.max(axis=1, keepdims=True)
    inverse = np.divide(1.0, s, out=np.zeros_like(s), where=kept)
    basis = u * kept[:, None, :]
    residues = np.einsum("kmd,kd->km", vt, totals) * inverse * residue_step(view)
    # A label moves its residue by ``one - zero``, from what it is halfway between the two.
    most = largest_gap(view)
    known = np.einsum("kbm,kb->km", basis, (one + zero) / 2)
    return Block(rows, basis * ((one - zero) / most)[:, :, None]), (residues - known) / most


def largest_gap(view: AliceView) -> float:
    """The most by which a label moves its residue: 1, or less where labels were flipped.

    With flips it is largest at a score of 0, as ``f(1-f) / (q(1-q))`` is.
    """
    one, zero = view.residues(np.zeros(1, dtype=np.int64), np.zeros(len(view.features.columns)))
    return float(one[0] - zero[0])


def _fits(view: AliceView, batches: list[GradientSeen], labels: BoolArray) -> BoolArray:
    satisfied = np.zeros(len(batches), dtype=bool)
    for at, seen in enumerate(batches):
        one, zero = view.residues(seen.rows, seen.weights)
        residues = np.where(labels[seen.rows], one, zero)
        steps = np.rint(residues / residue_step(view)).astype(np.int64)
        features = view.encoded(seen.rows)
        apart = np.abs(steps @ features - seen.gradient)
        satisfied[at] = (apart <= np.abs(features).sum(axis=0)).all()
    return satisfied


def _remark(view: AliceView, fits: BoolArray, epochs: int, of_epochs: int) -> str:
    parts = [f"the labels found satisfy {int(fits.sum())} of {len(fits)} batches exactly"]
    if not view.scores_known:
        parts = ["scores are estimated from Alice's part alone: nothing is called certain"]
    if epochs < of_epochs:
        parts.append(f"the first {epochs} of {of_epochs} epochs were taken")
    return "; ".join(parts)
