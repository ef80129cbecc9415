"""The judge: the one place where a guess, at labels or at hidden batches, meets the truth.

**Guarantee.** ``accuracy_low`` and ``accuracy_high`` are the exact (Clopper-Pearson) 95 % interval
of the share of rows guessed right. ``auc_low`` and ``auc_high`` are an approximate 95 % interval of
the AUC, from the standard error of [HanleyMcNeil82] (``numerics.intervals`` says how near). Of
hidden batches, precision and recall are over all guessed iterations together: of the rows called
members the share that are, and of the members the share that were called so. ``base_rate`` is the
share of the asked rows that are members, which is the precision of calling every row one (its
recall is 1). ``k_exact`` is the share of iterations whose number of members was guessed exactly.

**Assumes.** Rows are independent trials, for the accuracy of one probability. Rows of one run share
a model, so these are intervals of *this* run's rows; several seeds show how runs differ. The guess
was made without the truth: attacks get a view and nothing else. The true batches are those of the
run that was viewed, by the same row numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, IndexArray
from taciturn.data.label_table import LabelTable
from taciturn.errors import ShapeError
from taciturn.numerics.intervals import auc_interval
from taciturn.numerics.metrics import auc
from taciturn_audit.attacks.base import LabelGuess
from taciturn_audit.attacks.membership import MembershipGuess
from taciturn_audit.exact_intervals import clopper_pearson
from taciturn_audit.results.audit import AttackScore, Control, Membership

_SHARE_OF_DEVIATION = 0.01


def judge(name: str, guess: LabelGuess, truth: LabelTable, seconds: float = 0.0) -> AttackScore:
    """The figures of a guess against the labels of the same rows, with their intervals.

    Those of the AUC are NaN where a class is absent. Of other families than ``binomial``, accuracy
    is the share of values recovered (``right_rows``), and the AUC that of telling the rows with
    labels above the median.

    >>> everywhere = np.ones(4, dtype=bool)
    >>> guess = LabelGuess(np.array([0.9, 0.2, -0.1, 0.1]), everywhere, ~everywhere)
    >>> score = judge("mine", guess, LabelTable.from_data([1, 1, 0, 0]))
    >>> score.accuracy, score.auc, score.decided
    (0.75, 1.0, 0.0)
    >>> round(score.accuracy_low, 3), round(score.auc_low, 3)
    (0.194, 0.386)
    """
    if len(guess.scores) != truth.rows:
        raise ShapeError(f"a guess at {len(guess.scores)} rows where there are {truth.rows} labels")
    right = right_rows(guess, truth)
    low, high = clopper_pearson(int(right.sum()), truth.rows)
    upper = truth.upper
    ones = int(np.count_nonzero(upper))
    area = auc(guess.scores, upper)
    area_low, area_high = auc_interval(area, ones, truth.rows - ones)
    sure = int(guess.certain.sum())
    return AttackScore(
        name=name,
        rows=truth.rows,
        accuracy=float(right.mean()),
        accuracy_low=low,
        accuracy_high=high,
        auc=area,
        auc_low=area_low,
        auc_high=area_high,
        decided=sure / truth.rows,
        decided_correct=float(right[guess.certain].mean()) if sure else None,
        seconds=seconds,
        remark=guess.remark,
        limited=guess.limited or None,
    )


def right_rows(guess: LabelGuess, truth: LabelTable) -> BoolArray:
    """Which rows a guess has right: the class, the exact count, or the value to a hundredth.

    That is a hundredth of the labels' standard deviation. Amounts and numbers are matched up to a
    unit and an offset, which two known labels fix. Without a guess the best constant counts.
    """
    if truth.kind.has_classes:
        return np.asarray((guess.scores > 0) == (truth.values == 1))
    values = np.asarray(truth.values, dtype=np.float64)
    slack = 0.0 if truth.kind.exact_labels else _SHARE_OF_DEVIATION * float(values.std())
    guessed = np.full(truth.rows, _best_constant(values, slack))
    given = np.zeros(truth.rows, dtype=bool) if guess.values is None else ~np.isnan(guess.values)
    if guess.values is not None and given.any():
        matched = guess.values[given]
        if slack and np.ptp(matched) > 0:
            # A line through the guesses: controls and shuffled labels get the same freedom.
            slope, start = np.polyfit(matched, values[given], 1)
            matched = start + slope * matched
        guessed[given] = matched
    return np.asarray(np.abs(guessed - values) <= slack)


def _best_constant(values: FloatArray, slack: float) -> float:
    """The number that most values equal, up to ``slack``."""
    ordered = np.sort(values)
    counts = np.searchsorted(ordered, ordered + 2 * slack, "right") - np.arange(len(ordered))
    return float(ordered[int(np.argmax(counts))]) + slack


def control(name: str, guess: LabelGuess, truth: LabelTable) -> Control:
    """The figures of a control's guess.

    >>> truth = LabelTable.from_data([0, 0, 0, 1])
    >>> control("always the commoner", commoner_label(truth), truth).accuracy
    0.75
    """
    score = judge(name, guess, truth)
    return Control(score.name, score.accuracy, score.auc)


def commoner_label(truth: LabelTable) -> LabelGuess:
    """The best constant guess, for the rows about which nothing else is known.

    Its scores are the smallest of their sign: in a ranking such rows stand between those that an
    attack calls 1 and those that it calls 0.

    >>> commoner_label(LabelTable.from_data([0, 1, 1])).scores > 0
    array([ True,  True,  True])
    """
    sign = 1.0 if 2 * np.count_nonzero(truth.upper) > truth.rows else -1.0
    everywhere = np.ones(truth.rows, dtype=bool)
    scores = np.full(truth.rows, sign * np.finfo(np.float64).tiny)
    return LabelGuess(scores, everywhere, ~everywhere)


def prior(truth: LabelTable) -> Control:
    """The control that anyone has who knows which label is the commoner one.

    >>> prior(LabelTable.from_data([0, 0, 0, 1]))
    Control(name='prior', accuracy=0.75, auc=0.5)
    """
    return control("prior", commoner_label(truth), truth)


def judge_membership(
    guesses: Sequence[MembershipGuess], true_batches: Mapping[int, IndexArray]
) -> Membership:
    """Precision, recall and exact sizes of guessed batches, against the rows of the true ones.

    >>> asked, members = np.arange(4), np.array([0, 1])
    >>> guess = MembershipGuess(7, asked, members, size=3, certified=False)
    >>> judge_membership([guess], {7: np.array([1, 2, 3])}).precision
    0.5
    """
    called = right = members = asked = exact = 0
    for guess in guesses:
        truth = true_batches.get(guess.iteration)
        if truth is None or not np.isin(truth, guess.asked).all():
            raise ShapeError(f"iteration {guess.iteration} has another batch than was viewed")
        called += len(guess.members)
        right += int(np.isin(guess.members, truth).sum())
        members += len(truth)
        asked += len(guess.asked)
        exact += guess.size == len(truth)
    return Membership(
        precision=_share(right, called),
        recall=_share(right, members),
        k_exact=_share(exact, len(guesses)),
        iterations=len(guesses),
        base_rate=_share(members, asked),
        certified=_share(sum(guess.certified for guess in guesses), len(guesses)),
    )


def _share(count: int, whole: int) -> float | None:
    return count / whole if whole else None
