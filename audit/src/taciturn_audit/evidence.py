"""The ledger's claim against evidence: a lower bound on epsilon from one run with many canaries.

The labels of one run share a model, so rows are not independent trials, and an interval of the
accuracy says nothing about epsilon. The one-run bound does [SteinkeNJ23]: labels are replaced by
independent fair coins before the training, attacks guess some of them, and the number of right
guesses bounds epsilon from below.

Each of m canaries gets a random label, the protocol runs once, and an attack guesses the labels of
as many canaries as it likes. If the protocol is (epsilon, delta)-differentially private about every
single label, then few guesses can be right. With W the sum of r independent coins, one for each
guess, that come up with probability q = e^epsilon / (1 + e^epsilon)::

    P(v or more of r guesses are right) <= beta + 2 m delta alpha
        beta  = P(W >= v)
        alpha = max over i = 1..v of P(v > W >= v - i) / i

[SteinkeNJ23, Sec. 5 and App. D, v1]. The bound on epsilon is the least epsilon that makes the
guesses unsurprising: the right-hand side is ``failure`` or more.

**Labels that are no fair coins.** If a canary's label is y with probability p_y, independently of
the others, a guess of y has a coin of its own, and delta a term of its own::

    q_y = p_y e^epsilon / (p_y e^epsilon + 1 - p_y)
    P(...) <= P(W >= v) + 2 p_0 p_1 m delta

*Proof.* Let S be the labels, T the guesses (computed from what the run shows), and fix T = t and
S_j for j < i. The labels after i are independent of S_i, so that averaging over them keeps what
differential privacy says of any two runs that differ in S_i: with P_y the law of T given S_i = y
and the labels before, P_1(A) <= e^epsilon P_0(A) + delta for every set A, and the other way round.

If delta = 0: by Bayes the odds of S_i = t_i are at most e^epsilon times those before, hence its
probability at most q_y, y = t_i, whatever the labels before. Draw S_i by a uniform number U_i (the
guess is right if U_i is at most that probability) and let B_i = [U_i <= q_y]: the B_i of the
guesses made are independent given t, and the guesses that are right are a subset of those with
B_i = 1, whose number is W. This holds for every t, hence also where the attack decides from what it
sees how many labels to guess, and which.

If delta > 0: the probability is q_y + x_i, and the guess at i is right only if B_i = 1 or U_i falls
into the x_i beyond. Where t_i = 1, Bayes gives ``P(t) x_i = p_0 p_1 (P_1(t) - e^epsilon P_0(t)) /
(p_1 e^epsilon + p_0)`` where that is positive; summed over all such t it is at most p_0 p_1 delta.
The same bound holds where t_i = 0. So the extra chances of all canaries add up to at most
2 p_0 p_1 m delta, and without them the guesses are as above. ∎

**Guarantee.** The bound exceeds the true epsilon with probability at most ``failure``.

**Assumes.** Each canary's label was drawn for the audit, independently and with the stated chance;
labels that a dataset happens to have, or a shuffle with fixed counts, are not such draws. The rest
of the data does not depend on them. Epsilon is about changing one canary's label. Canaries that the
attack abstains from count among the canaries and not among the guesses. For fair labels with
delta > 0 the number of guesses was fixed before the run. One bound is taken from one run: the best
of several attacks, or of several numbers of guesses, needs its failure divided by how many were
tried.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping

import numpy as np
from scipy.special import betainc, expit, gammaln, logit, xlog1py, xlogy

from taciturn.arrays import FloatArray, IntArray
from taciturn.data.label_table import LabelTable
from taciturn.errors import ConfigError
from taciturn.privacy.events import Statement
from taciturn_audit.attacks.base import LabelGuess
from taciturn_audit.results.audit import Evidence

# q rounds to 1 below this epsilon, and then nothing is surprising.
_HIGHEST = 64.0


def one_run_epsilon(
    correct: int,
    guesses: int,
    *,
    canaries: int,
    delta: float = 0.0,
    failure: float = 0.05,
    prior: float = 0.5,
    ones: int | None = None,
) -> float:
    """The epsilon that a protocol has at least, from one run's guesses at its canaries.

    ``guesses`` excludes abstentions; ``canaries`` includes them. ``delta`` is that of the claim, 0
    for pure differential privacy. ``failure`` is the largest chance of a bound above the true
    epsilon. ``prior`` is the chance with which a canary's label was drawn as 1. ``ones`` of the
    guesses say 1. Without it, and unless the prior is 1/2, all are taken to say the commoner label,
    which can only lower the bound.

    >>> round(one_run_epsilon(75, 100, canaries=1000, delta=1e-4), 3)
    0.673
    >>> round(one_run_epsilon(75, 100, canaries=1000), 3)
    0.702
    >>> one_run_epsilon(90, 100, canaries=100, prior=0.9, ones=100)
    0.0
    """
    correct, guesses = operator.index(correct), operator.index(guesses)
    if not 0 <= correct <= guesses <= canaries:
        raise ConfigError(f"{correct} of {guesses} guesses right, of {canaries} canaries")
    if not 0 <= delta < 1:
        raise ConfigError(f"delta is {delta}", where="delta", hint="use 0, or a little more")
    if not 0 < failure < 1:
        raise ConfigError(f"failure is {failure}", where="failure", hint="use 0.05, for example")
    if not 0 < prior < 1:
        raise ConfigError(f"prior is {prior}", where="prior", hint="use 0.5 for fair labels")
    if ones is None:
        ones = guesses if prior >= 0.5 else 0
    ones = operator.index(ones)
    if not 0 <= ones <= guesses:
        raise ConfigError(f"{ones} of {guesses} guesses say 1", where="ones")

    def p_value(epsilon: float) -> float:
        if prior == 0.5:
            return _fair_p_value(correct, guesses, epsilon, 2 * canaries * delta)
        chances = expit(epsilon + logit(prior)), expit(epsilon - logit(prior))
        beta = _sum_tail(correct, (ones, guesses - ones), chances)
        return beta + 2 * prior * (1 - prior) * canaries * delta

    # Every p-value grows with epsilon, so that there is one crossing. The lower end is returned: it
    # is refuted, as is all below it.
    low, high = 0.0, _HIGHEST
    if p_value(low) >= failure:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        if p_value(middle) < failure:
            low = middle
        else:
            high = middle
    return low


def _fair_p_value(correct: int, guesses: int, epsilon: float, spread: float) -> float:
    """P-value of this many right guesses at fair labels, with ``spread`` for 2 m delta."""
    q = float(expit(epsilon))
    beta = float(_tails(np.array([correct]), guesses, q)[0])
    if spread == 0 or correct == 0:
        return beta
    steps = np.arange(1, correct + 1)
    alphas = (_tails(correct - steps, guesses, q) - beta) / steps
    # The bound at step i is a mean of P(W >= v) and P(W >= v - i), with a weight of spread/i on the
    # second. Up to spread/i = 1 it grows with epsilon, as both do. The best i (the largest, of
    # equals) falls as epsilon grows, since the likelihood ratio of W is monotone. So calling all
    # beyond spread/i = 1 unsurprising makes the whole grow, and bisection right. It costs nothing:
    # there the formula exceeds P(W >= v - i) with v - i at most the likeliest W, which is over 1/3.
    best = correct - int(np.argmax(alphas[::-1]))
    if best < spread:
        return 1.0
    return min(1.0, beta + spread * float(alphas[best - 1]))


def _sum_tail(least: int, trials: tuple[int, int], chances: tuple[float, float]) -> float:
    """P(A + B >= least) for two independent binomial counts."""
    one, other = trials
    hits = np.arange(one + 1)
    log_count = gammaln(one + 1) - gammaln(hits + 1) - gammaln(one - hits + 1)
    log_chance = xlogy(hits, chances[0]) + xlog1py(one - hits, -chances[0])
    return float(np.exp(log_count + log_chance) @ _tails(least - hits, other, chances[1]))


def _tails(least: IntArray, trials: int, chance: float) -> FloatArray:
    """P(W >= least) for a binomial count W."""
    tails = np.where(least <= 0, 1.0, 0.0)
    inner = (least > 0) & (least <= trials)
    tails[inner] = betainc(least[inner], trials - least[inner] + 1, chance)
    return tails


FAILURE = 0.05
# Shares of the rows that are guessed, the surest first; fixed before anything is seen.
SHARES = (1.0, 0.5, 0.2, 0.05)


def evidence(
    guesses: Mapping[str, LabelGuess], labels: LabelTable, ledger: Statement
) -> Evidence | None:
    """Strongest bound from several attacks' guesses at random labels; None without a signal.

    ``labels`` are independent and fair. Rows without signal are not guessed.
    """
    failure = FAILURE / max(1, len(guesses) * len(SHARES))
    bounds = [
        _bound(name, guess, share, labels, ledger, failure)
        for name, guess in guesses.items()
        for share in SHARES
        if guess.signal.any()
    ]
    return max(bounds, key=lambda bound: bound.lower_bound, default=None)


def _bound(
    name: str,
    guess: LabelGuess,
    share: float,
    labels: LabelTable,
    ledger: Statement,
    failure: float,
) -> Evidence:
    known = np.flatnonzero(guess.signal)
    count = max(1, math.floor(share * len(known)))
    # A stable order: which of equally sure rows are taken depends on nothing but their place.
    surest = known[np.argsort(-np.abs(guess.scores[known]), kind="stable")[:count]]
    right = (guess.scores[surest] > 0) == labels.upper[surest]
    correct = int(np.count_nonzero(right))
    bound = one_run_epsilon(
        correct, count, canaries=labels.rows, failure=failure, delta=ledger.label_delta_total
    )
    return Evidence(
        claim=ledger.label_epsilon_total,
        lower_bound=bound,
        attack=name,
        guesses=count,
        correct=correct,
        rows=labels.rows,
        failure=FAILURE,
        violated=bound > ledger.label_epsilon_total,
    )
