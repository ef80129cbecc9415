"""Tests of chance: exact, at fixed seeds, with one false alarm in a million over all seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import binomtest, chisquare

from taciturn.arrays import FloatArray, IntArray, WordArray
from taciturn.privacy.noise import LaplaceDraws

FALSE_ALARM = 1e-6
# Below this many expected counts the chi-square approximation is poor: cells are joined.
_LEAST_EXPECTED = 20.0


def fits(counts: Sequence[int] | IntArray, probabilities: Sequence[float] | FloatArray) -> bool:
    """Whether counts look drawn from the probabilities, which must be all there are."""
    total = int(np.sum(counts))
    assert abs(float(np.sum(probabilities)) - 1.0) < 1e-9
    expected = np.asarray(probabilities) * total
    # A value of probability zero that was seen is no matter of chance.
    if np.any((np.asarray(probabilities) == 0) & (np.asarray(counts) > 0)):
        return False
    rare = expected < _LEAST_EXPECTED
    seen = np.append(np.asarray(counts)[~rare], np.asarray(counts)[rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum())
    if wanted[-1] < _LEAST_EXPECTED:
        # The joined cell is still too small for the approximation: an exact test of its own.
        if not happens(int(seen[-1]), total, float(wanted[-1] / total)):
            return False
        seen, wanted = seen[:-1], wanted[:-1] * (seen[:-1].sum() / wanted[:-1].sum())
    if len(seen) == 1:
        return True
    return bool(chisquare(seen, wanted).pvalue > FALSE_ALARM)


def happens(successes: int, trials: int, probability: float) -> bool:
    """Whether so many successes are plausible: the exact binomial test."""
    return bool(binomtest(successes, trials, min(1.0, probability)).pvalue > FALSE_ALARM)


def draws_of(noise: Sequence[int] | IntArray, divisors: int | WordArray) -> LaplaceDraws:
    """Unit draws that give this noise at these divisors."""
    wanted = np.asarray(noise, dtype=np.int64)
    by = np.uint64(divisors) if isinstance(divisors, int) else divisors
    left = np.maximum(wanted, 0).astype(np.uint64) * by
    right = np.maximum(-wanted, 0).astype(np.uint64) * by
    return LaplaceDraws(left, right)


def pushed_forward(
    pmf: Callable[[IntArray], FloatArray], reach: int, through: Callable[[int], int]
) -> dict[int, float]:
    """The distribution of ``through(k)``, k from the pmf on ``[-reach, reach]``, one by one."""
    masses: dict[int, float] = {}
    noise = np.arange(-reach, reach + 1)
    for k, mass in zip(noise.tolist(), pmf(noise).tolist(), strict=True):
        output = through(k)
        masses[output] = masses.get(output, 0.0) + mass
    return masses
