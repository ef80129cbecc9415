"""Posterior of each label given a batch's gradient, if residues take a few known values.

Where Alice knows the score, ``r_i`` is ``s (1 - f_i)`` for label 1, ``-s f_i`` for label 0 (in
``label-rr`` the two corrected residues of a flipped label, ``view.residues``), and in
``hybrid`` 0 where the row is not in the true batch; ``s`` is 1, or ``batch_size / k``. Replace this
law, given her present belief in each label, by a normal one of the same mean m and variance V. Then
``X^T r = g`` gives in closed form (a linear estimate of least mean square)::

    mean      m + V X (X^T V X)^-1 (g - X^T m)
    variance  V - V X (X^T V X)^-1 X^T V

Taking a row's own belief out again leaves what the *other* rows and the gradient say of it, a
normal likelihood of its residue, and the ratio of that at its few values is evidence about the
label. Evidence of different batches adds up; each sweep over the run replaces a batch's evidence by
one that uses what the others said meanwhile (expectation propagation [Minka01]). So epochs stack
without a system of all equations, also where the batch itself is hidden.

The normal law is an approximation, and so is ``s`` where k is hidden: evidence of one batch is
capped, and none of it is called certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit, logit

from taciturn.arrays import FloatArray
from taciturn.engine.callbacks import ReportProgress, noop
from taciturn.privacy.batch_response import BatchDesign
from taciturn.protocol.observations import GradientSeen
from taciturn_audit.attacks.recovery import System
from taciturn_audit.views.alice_view import AliceView

SWEEPS = 2
# The most that one batch may say, in nats: its law is an approximation.
_MOST_EVIDENCE = 6.0
_MOST_ODDS = 30.0
# The error of a probability that Alice can only estimate, as Bob's columns have a part in it.
_SCORE_ERROR = 0.15
# No label is taken to be rarer than this before anything is known of a row.
_RAREST = 0.01
_RIDGE = 1e-9
# Relative room between a variance and what is left of it, so that precisions can be subtracted.
_ROOM = 1e-6


@dataclass(frozen=True, slots=True)
class Law:
    """Public facts about a batch's residues: the agreed size, and the design of a hidden batch."""

    batch_size: int
    design: BatchDesign | None

    @classmethod
    def from_view(cls, view: AliceView) -> Law:
        """The law that the agreement names."""
        return cls(view.agreement.sgd.batch_size, view.mechanism.hidden_batch)

    @property
    def scale(self) -> float:
        """s, for the expected k where it is hidden."""
        return 1.0 if self.design is None else self.batch_size / self.design.true_rows

    def share(self, rows: int) -> float:
        """The probability that a row of a batch of ``rows`` is in the true batch."""
        if self.design is None:
            return 1.0
        return float(np.clip(self.design.true_rows / rows, 0.05, 0.95))


@dataclass(frozen=True, slots=True)
class Belief:
    """Log-odds that one batch adds: of label 1, and of being in the true batch.

    ``member`` is infinite where no batch is hidden.
    """

    evidence: FloatArray = field(repr=False)
    member: FloatArray = field(repr=False)


def scores_exact(view: AliceView, seen: GradientSeen) -> bool:
    """Whether the probabilities of a batch are the model's: at the start whatever Bob has."""
    return view.scores_known or seen.iteration == 0


def gather(
    view: AliceView,
    batches: Sequence[GradientSeen],
    sweeps: int = SWEEPS,
    progress: ReportProgress = noop,
) -> FloatArray:
    """The log-odds of label 1 for each row; 0 for rows in none of the batches."""
    evidence, heard = np.zeros(view.features.rows), np.zeros(view.features.rows, dtype=bool)
    messages: list[FloatArray] = [np.zeros(len(seen.rows)) for seen in batches]
    base = 0.0
    for sweep in range(sweeps):
        for number, seen in enumerate(batches):
            # A batch must not hear again what it said itself in the sweep before.
            others = evidence[seen.rows] - messages[number]
            messages[number] = hear(view, seen, others + base).evidence
            evidence[seen.rows] = others + messages[number]
            heard[seen.rows] = True
            progress(sweep * len(batches) + number + 1, sweeps * len(batches))
        # What is likely of all rows together is likely of each: how common label 1 is.
        share = float(np.mean(expit(evidence[heard] + base))) if heard.any() else 0.5
        base = float(logit(np.clip(share, _RAREST, 1.0 - _RAREST)))
    # A row that was surely in no true batch has no evidence, and is left to other guesses.
    return np.where(evidence != 0, evidence + base, 0.0)


def hear(view: AliceView, seen: GradientSeen, odds: FloatArray) -> Belief:
    """The belief about its rows' labels and membership that one batch adds.

    ``odds`` are the log-odds of label 1 known from elsewhere, for each of its rows.
    """
    system, law = System.from_view(view, seen), Law.from_view(view)
    share, scale = law.share(len(seen.rows)), law.scale
    one, zero = (scale * residues for residues in view.residues(seen.rows, seen.weights))
    # What a wrong probability does to a residue is in proportion to what a label does to it.
    error = (one - zero) * (0.0 if scores_exact(view, seen) else _SCORE_ERROR)
    odds = np.clip(odds, -_MOST_ODDS, _MOST_ODDS)
    chance = expit(odds)
    mean = share * (chance * one + (1.0 - chance) * zero)
    power = share * (chance * (one**2 + error**2) + (1.0 - chance) * (zero**2 + error**2))
    variance = power - mean**2 + system.step**2
    seen_at, spread = _without_own(system, mean, variance)

    def fits(value: FloatArray) -> FloatArray:
        # A value that is itself uncertain is met by a wider likelihood.
        width = spread + error**2
        fit: FloatArray = -((value - seen_at) ** 2) / (2 * width) - 0.5 * np.log(width)
        return fit

    if share == 1.0:
        evidence = fits(one) - fits(zero)
        member = np.full(len(one), np.inf)
    else:
        absent = np.log1p(-share) - seen_at**2 / (2 * spread) - 0.5 * np.log(spread)
        as_one, as_zero = np.log(share) + fits(one), np.log(share) + fits(zero)
        evidence = np.logaddexp(absent, as_one) - np.logaddexp(absent, as_zero)
        present = np.logaddexp(as_one - np.logaddexp(0.0, -odds), as_zero - np.logaddexp(0.0, odds))
        member = present - absent
    return Belief(np.clip(evidence, -_MOST_EVIDENCE, _MOST_EVIDENCE), member)


def _without_own(
    system: System, mean: FloatArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Each residue as the equations and the other rows see it: a normal mean and variance."""
    matrix, target = system.matrix, system.target
    weighted = matrix * variance[:, None]
    gram = matrix.T @ weighted
    # Columns that depend on each other within a batch would make it singular.
    gram[np.diag_indices(len(gram))] += _RIDGE * np.trace(gram) / len(gram) + system.step**2
    surprise = target - mean @ matrix
    solved = np.linalg.solve(gram, np.column_stack([surprise, weighted.T]))
    after = mean + weighted @ solved[:, 0]
    left = variance - np.einsum("ij,ji->i", weighted, solved[:, 1:])
    left = np.clip(left, _ROOM * variance, (1.0 - _ROOM) * variance)
    precision = 1.0 / left - 1.0 / variance
    return (after / left - mean / variance) / precision, 1.0 / precision
