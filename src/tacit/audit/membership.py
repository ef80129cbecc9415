"""Judges guesses at who is in a hidden batch against the batches that Bob used.

**Guarantee.** Precision and recall are over all rows of the looked-at iterations together.

**Assumes.** The true batches are those of the same run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tacit.arrays import IndexArray
from tacit.attacks.membership import MembershipGuess


@dataclass(frozen=True, slots=True)
class MembershipScore:
    """How well the batch was seen through.

    ``precision`` is the share of guessed rows that are in the batch, ``recall`` the share of the
    batch that was guessed, ``k_exact`` the share of iterations whose size was right. ``base_rate``
    is the share of scored rows that are in the batch: the precision of guessing all of them.
    """

    iterations: int
    precision: float | None
    recall: float | None
    k_exact: float
    certified: float
    base_rate: float

    def to_dict(self) -> dict[str, Any]:
        """The score for JSON."""
        return asdict(self)


def judge_membership(
    guesses: Sequence[MembershipGuess], batches: Mapping[int, IndexArray]
) -> MembershipScore:
    """Compares guesses with the true batches, by iteration.

    >>> guess = MembershipGuess(0, np.array([1, 2, 3, 4]), np.array([1, 2]), False)
    >>> score = judge_membership([guess], {0: np.array([1, 3])})
    >>> score.precision, score.recall, score.k_exact, score.base_rate
    (0.5, 0.5, 1.0, 0.5)
    """
    right = guessed = there = asked = exact = certified = 0
    for guess in guesses:
        true = batches[guess.iteration]
        right += len(np.intersect1d(guess.members, true))
        guessed += len(guess.members)
        there += len(true)
        asked += len(guess.asked)
        exact += len(guess.members) == len(true)
        certified += guess.certified
    count = max(1, len(guesses))
    return MembershipScore(
        iterations=len(guesses),
        precision=right / guessed if guessed else None,
        recall=right / there if there else None,
        k_exact=exact / count,
        certified=certified / count,
        base_rate=there / asked if asked else 0.0,
    )
