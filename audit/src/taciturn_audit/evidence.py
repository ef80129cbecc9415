"""The ledger's claim against evidence: could these guesses be so right if the claim were true?

The labels of one run share a model, so rows are not independent trials, and an interval of the
accuracy says nothing about epsilon. The one-run bound does [SteinkeNJ23]: labels are replaced by
independent fair coins before the training, attacks guess some of them, and the number of right
guesses bounds epsilon from below (``taciturn_audit.one_run``).

**Guarantee.** The bound exceeds the true label epsilon with probability at most ``FAILURE``, for
all attacks and numbers of guesses together.

**Assumes.** The coins were independent of all else, which the caller sees to.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from taciturn.data.tables import LabelTable
from taciturn.privacy.statement import Statement
from taciturn_audit.attacks.base import LabelGuess
from taciturn_audit.one_run import one_run_epsilon
from taciturn_audit.results.audit import Evidence

FAILURE = 0.05
# Shares of the rows that are guessed, the surest first; fixed before anything is seen.
SHARES = (1.0, 0.5, 0.2, 0.05)


def evidence(
    guesses: Mapping[str, LabelGuess], coins: LabelTable, ledger: Statement
) -> Evidence | None:
    """The strongest bound from several attacks' guesses at coin labels; None without a signal.

    ``coins`` are independent fair coins. Rows without signal are not guessed.
    """
    failure = FAILURE / max(1, len(guesses) * len(SHARES))
    bounds = [
        _bound(name, guess, share, coins, ledger, failure)
        for name, guess in guesses.items()
        for share in SHARES
        if guess.signal.any()
    ]
    return max(bounds, key=lambda bound: bound.lower_bound, default=None)


def _bound(
    name: str,
    guess: LabelGuess,
    share: float,
    coins: LabelTable,
    ledger: Statement,
    failure: float,
) -> Evidence:
    known = np.flatnonzero(guess.signal)
    count = max(1, math.floor(share * len(known)))
    # A stable order: which of equally sure rows are taken depends on nothing but their place.
    surest = known[np.argsort(-np.abs(guess.scores[known]), kind="stable")[:count]]
    right = (guess.scores[surest] > 0) == (coins.values[surest] == 1)
    correct = int(np.count_nonzero(right))
    bound = one_run_epsilon(
        correct, count, canaries=coins.rows, failure=failure, delta=ledger.label_delta_total
    )
    return Evidence(
        claim=ledger.label_epsilon_total,
        lower_bound=bound,
        attack=name,
        guesses=count,
        correct=correct,
        rows=coins.rows,
        failure=FAILURE,
        violated=bound > ledger.label_epsilon_total,
    )
