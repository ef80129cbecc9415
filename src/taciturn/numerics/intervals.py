"""Confidence intervals of a share and of a model's figures, in closed form.

For an AUC the interval holds every area ``A`` from which the observed one lies no further than the
normal quantile times the standard error that A would give [HanleyMcNeil82]::

    SE(A)^2 = (A(1-A) + (P-1)(Q1-A^2) + (N-1)(Q2-A^2)) / (PN)     Q1 = A/(2-A), Q2 = 2A^2/(1+A)

with P ones and N zeros, or P zeros and N ones if that is larger, since which class is the more
scattered one is not known. Taking the error at A rather than at the observed area keeps the ends in
[0, 1] and the interval open at an area of 1, where the observed error is 0 however few the rows.

The others are Wilson's of a share [Wilson27], the logit interval of an average precision
[BoydEP13], the normal one of a mean, and ::

    KS      +- sqrt(log(2/(1-c)) / 2 (1/P + 1/N))                                   [Smirnov48]
    O/E     SE(log O/E)^2 = (1 - O/n)/O                                             [DebrayEtAl17]

All of them are for one model on rows that it was not trained on; on training rows they say how
much the rows' number alone leaves open.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from taciturn.errors import ConfigError, DataError

Interval = tuple[float, float]
UNKNOWN: Interval = (math.nan, math.nan)


def auc_interval(
    auc: float, positives: int, negatives: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Hanley-McNeil interval of an AUC; (NaN, NaN) of a NaN, where a class is absent.

    Approximate: normal, with a formula for the scores of exponential distributions. Where it says
    95 %, simulations of few and of many rows, even and uneven, find the true area within it at
    least 92 % of the time, and below its lower end at most 3.5 % (``tests/numerics``).
    """
    check_confidence(confidence)
    if math.isnan(auc):
        return UNKNOWN
    if not 0 <= auc <= 1 or min(positives, negatives) < 1:
        raise DataError(f"invalid AUC {auc} of {positives} positives and {negatives} negatives")
    z = _quantile(confidence)

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


def wilson(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Wilson's interval of a share."""
    squared = _quantile(confidence) ** 2
    share = successes / trials
    middle = (share + squared / (2 * trials)) / (1 + squared / trials)
    reach = math.sqrt(squared * (share * (1 - share) + squared / (4 * trials)) / trials)
    reach /= 1 + squared / trials
    return max(0.0, middle - reach), min(1.0, middle + reach)


def precision_interval(average: float, positives: int, confidence: float = 0.95) -> Interval:
    """Logit interval of an average precision.

    >>> tuple(round(end, 4) for end in precision_interval(0.8, positives=50))
    (0.6667, 0.8889)
    """
    if math.isnan(average):
        return UNKNOWN
    # At 1 and at 0 the logit has no interval: half a row is taken off, as one does with shares.
    inside = min(max(average, 0.5 / positives), 1 - 0.5 / positives)
    reach = _quantile(confidence) / math.sqrt(positives * inside * (1 - inside))
    middle = math.log(inside / (1 - inside))
    low, high = (1 / (1 + math.exp(-middle - sign * reach)) for sign in (-1, 1))
    return min(low, average), max(high, average)


def distance_interval(
    distance: float, positives: int, negatives: int, confidence: float = 0.95
) -> Interval:
    """Smirnov's band around a Kolmogorov-Smirnov distance: wide, and it holds.

    Both observed distribution functions lie within it of the true ones, everywhere at once. The
    error at the threshold of the distance alone would be smaller, and too small: that threshold was
    chosen.

    >>> tuple(round(end, 4) for end in distance_interval(0.5, positives=100, negatives=400))
    (0.3482, 0.6518)
    """
    check_confidence(confidence)
    if math.isnan(distance):
        return UNKNOWN
    reach = math.sqrt(-math.log((1 - confidence) / 2) / 2 * (1 / positives + 1 / negatives))
    return max(0.0, distance - reach), min(1.0, distance + reach)


def mean_interval(mean: float, deviation: float, count: int, confidence: float = 0.95) -> Interval:
    """Normal interval of a mean.

    >>> tuple(round(end, 4) for end in mean_interval(0.5, 1.0, 100))
    (0.304, 0.696)
    """
    reach = _quantile(confidence) * deviation / math.sqrt(count)
    return mean - reach, mean + reach


def ratio_interval(observed: int, expected: float, rows: int, confidence: float = 0.95) -> Interval:
    """Log-normal interval of observed over expected ones.

    >>> tuple(round(end, 4) for end in ratio_interval(50, 40.0, 1000))
    (0.9541, 1.6377)
    """
    if not (observed and expected > 0):
        return UNKNOWN
    reach = _quantile(confidence) * math.sqrt((1 - observed / rows) / observed)
    return observed / expected * math.exp(-reach), observed / expected * math.exp(reach)


def _auc_error(area: float, positives: int, negatives: int) -> float:
    """Standard error of an area, the larger of the two assignments of classes."""
    gap_1 = area / (2 - area) - area**2
    gap_2 = 2 * area**2 / (1 + area) - area**2
    spread = max(
        (positives - 1) * gap_1 + (negatives - 1) * gap_2,
        (negatives - 1) * gap_1 + (positives - 1) * gap_2,
    )
    return math.sqrt(max(0.0, area * (1 - area) + spread) / (positives * negatives))


def _quantile(confidence: float) -> float:
    check_confidence(confidence)
    return NormalDist().inv_cdf((1 + confidence) / 2)


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that is not between 0 and 1."""
    if not 0 < confidence < 1:
        raise ConfigError(
            f"invalid confidence {confidence}", where="confidence", hint="use 0.95, for example"
        )
