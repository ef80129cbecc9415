"""Exact intervals for a share.

The Clopper-Pearson interval [ClopperPearson34] holds every share ``p`` under which neither
so few nor so many successes would be rarer than ``(1 - confidence)/2``::

    low  = Beta^-1((1-c)/2; k, n-k+1)        0 if k = 0
    high = Beta^-1((1+c)/2; k+1, n-k)        1 if k = n

It covers the true share at least as often as it says, whatever the share and the number of trials.
"""

from __future__ import annotations

# Not scipy.stats.beta, which is the same function behind a second of imports.
from scipy.special import betainccinv, betaincinv

from tacit.errors import ConfigError, DataError


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
    if not 0 < confidence < 1:
        raise ConfigError(
            f"the confidence is {confidence}", where="confidence", hint="use 0.95, for example"
        )
    if not 0 <= successes <= trials:
        raise DataError(f"{successes} successes in {trials} trials")
    tail = (1 - confidence) / 2
    failures = trials - successes
    low = float(betaincinv(successes, failures + 1, tail)) if successes else 0.0
    high = float(betainccinv(successes + 1, failures, tail)) if failures else 1.0
    return low, high
