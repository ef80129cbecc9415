"""Exact confidence interval of a share, and Student's of a mean.

The Clopper-Pearson interval [ClopperPearson34] holds every share ``p`` under which neither
tail of the observed successes is rarer than ``(1 - confidence)/2``::

    low  = Beta^-1((1-c)/2; k, n-k+1)        0 if k = 0
    high = Beta^-1((1+c)/2; k+1, n-k)        1 if k = n

It covers the true share at least as often as it says, whatever the share and the number of trials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from taciturn.errors import DataError
from taciturn.numerics.intervals import check_confidence


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper-Pearson interval of a share; (0, 1) of no trials."""
    # Loaded when needed. Not scipy.stats, which has the same functions behind a second of imports.
    from scipy.special import betainccinv, betaincinv

    check_confidence(confidence)
    if not 0 <= successes <= trials:
        raise DataError(f"{successes} successes in {trials} trials")
    tail = (1 - confidence) / 2
    failures = trials - successes
    low = float(betaincinv(successes, failures + 1, tail)) if successes else 0.0
    high = float(betainccinv(successes + 1, failures, tail)) if failures else 1.0
    return low, high


def t_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Student's interval of a mean."""
    from scipy.special import stdtrit

    check_confidence(confidence)
    reach = stdtrit(len(values) - 1, (1 + confidence) / 2) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - float(reach), fmean(values) + float(reach)
