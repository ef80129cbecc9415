"""Intervals: an exact one for a share, an approximate one for an AUC, Student's for a mean.

The Clopper-Pearson interval [ClopperPearson34] holds every share ``p`` under which neither
so few nor so many successes would be rarer than ``(1 - confidence)/2``::

    low  = Beta^-1((1-c)/2; k, n-k+1)        0 if k = 0
    high = Beta^-1((1+c)/2; k+1, n-k)        1 if k = n

It covers the true share at least as often as it says, whatever the share and the number of trials.

For an AUC the interval holds every area ``A`` from which the observed one lies no further than the
normal quantile times the standard error that A would give [HanleyMcNeil82]::

    SE(A)^2 = (A(1-A) + (P-1)(Q1-A^2) + (N-1)(Q2-A^2)) / (PN)     Q1 = A/(2-A), Q2 = 2A^2/(1+A)

with P ones and N zeros, or P zeros and N ones if that is larger, since which class is the more
scattered one is not known. Taking the error at A rather than at the observed area keeps the ends in
[0, 1] and the interval open at an area of 1, where the observed error is 0 however few the rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

# Not scipy.stats, which has the same functions behind a second of imports.
from scipy.special import betainccinv, betaincinv, ndtri, stdtrit

from taciturn.errors import ConfigError, DataError


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact binomial interval of a share.

    Args:
        successes: How often it happened.
        trials: How often it could have; 0 trials say nothing, hence (0, 1).
        confidence: The least coverage, above 0 and below 1.

    Returns:
        The lower and the upper end, both inclusive.

    Raises:
        ConfigError: If the confidence is not between 0 and 1.
        DataError: If the successes are not between 0 and the trials.

    >>> low, high = clopper_pearson(8, 10)
    >>> round(low, 4), round(high, 4)
    (0.4439, 0.9748)
    >>> clopper_pearson(0, 0)
    (0.0, 1.0)
    """
    _check_confidence(confidence)
    if not 0 <= successes <= trials:
        raise DataError(f"{successes} successes in {trials} trials")
    tail = (1 - confidence) / 2
    failures = trials - successes
    low = float(betaincinv(successes, failures + 1, tail)) if successes else 0.0
    high = float(betainccinv(successes + 1, failures, tail)) if failures else 1.0
    return low, high


def auc_interval(
    auc: float, positives: int, negatives: int, confidence: float = 0.95
) -> tuple[float, float]:
    """The Hanley-McNeil interval of an area under the ROC curve.

    Approximate: normal, with a formula for the scores of exponential distributions. Where it says
    95 %, simulations of few and of many rows, even and uneven, find the true area within it at
    least 92 % of the time, and below its lower end at most 3.5 % (``tests/numerics``).

    Args:
        auc: The observed area, in [0, 1]; NaN where a class is absent.
        positives: How many ones there are.
        negatives: How many zeros there are.
        confidence: The coverage aimed at, above 0 and below 1.

    Returns:
        The lower and the upper end, both within [0, 1]; (NaN, NaN) for an area of NaN.

    Raises:
        ConfigError: If the confidence is not between 0 and 1.
        DataError: If the area is not in [0, 1], or is one although a class is absent.

    >>> low, high = auc_interval(0.9, positives=30, negatives=70)
    >>> round(low, 4), round(high, 4)
    (0.7959, 0.9538)
    >>> low, high = auc_interval(1.0, positives=30, negatives=70)
    >>> round(low, 4), high
    (0.9381, 1.0)
    >>> auc_interval(math.nan, positives=0, negatives=9)
    (nan, nan)
    """
    _check_confidence(confidence)
    if math.isnan(auc):
        return math.nan, math.nan
    if not 0 <= auc <= 1 or min(positives, negatives) < 1:
        raise DataError(f"an AUC of {auc} with {positives} positives and {negatives} negatives")
    z = float(ndtri((1 + confidence) / 2))

    def end(outside: float) -> float:
        """The area nearest ``outside`` that the observed one does not contradict, by bisection."""
        inside = auc
        for _ in range(60):
            middle = (outside + inside) / 2
            if abs(auc - middle) > z * _auc_error(middle, positives, negatives):
                outside = middle
            else:
                inside = middle
        return inside

    return end(0.0), end(1.0)


def t_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Student's interval of a mean.

    Args:
        values: Two or more independent draws of one distribution, taken to be normal.
        confidence: The coverage aimed at, above 0 and below 1.

    >>> tuple(round(end, 4) for end in t_interval([0.9, 1.0, 0.95]))
    (0.8258, 1.0742)
    """
    _check_confidence(confidence)
    reach = stdtrit(len(values) - 1, (1 + confidence) / 2) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - float(reach), fmean(values) + float(reach)


def _auc_error(area: float, positives: int, negatives: int) -> float:
    """The standard error of an area, the larger of the two ways round."""
    gap_1 = area / (2 - area) - area**2
    gap_2 = 2 * area**2 / (1 + area) - area**2
    spread = max(
        (positives - 1) * gap_1 + (negatives - 1) * gap_2,
        (negatives - 1) * gap_1 + (positives - 1) * gap_2,
    )
    return math.sqrt(max(0.0, area * (1 - area) + spread) / (positives * negatives))


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ConfigError(
            f"the confidence is {confidence}", where="confidence", hint="use 0.95, for example"
        )
