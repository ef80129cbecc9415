"""Judges guesses at the hidden batches of ``hybrid``.

**Guarantee.** Precision and recall are over all guessed iterations together: of the rows called
members the share that are, and of the members the share that were called so. ``base_rate`` is the
share of the asked rows that are members, which is the precision of calling every row one (its
recall is 1). ``k_exact`` is the share of iterations whose number of members was guessed exactly.

**Assumes.** The true batches are those of the run that was viewed, by the same row numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from taciturn.arrays import IndexArray
from taciturn.errors import ShapeError
from taciturn_audit.attacks.membership import MembershipGuess
from taciturn_audit.results.audit import Membership


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


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
