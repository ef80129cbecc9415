"""Where sparse recovery stops: the phase transition of basis pursuit.

With L unknowns, d equations of a random matrix and k of the unknowns not zero, ``min |r|_1`` finds
them, almost always or almost never, as ``rho = k/d`` lies below or above a curve of ``delta = d/L``
[DonohoMM09, Eq. 5]::

    M(z) = (1 + z^2) Phi(-z) - z phi(z)
    rho(delta) = max over z >= 0 of (1 - 2 M(z) / delta) / (1 + z^2 - 2 M(z))

**Guarantee.** The curve is exact for Gaussian matrices in the limit of large sizes.

**Assumes.** Tables are not Gaussian and batches not large: near the curve, in a band of some tens
of per cent at these sizes, both happen. ``taciturn check`` therefore tries it out as well.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

_GRID = np.linspace(0.0, 8.0, 4001)


def largest_sparsity(delta: float) -> float:
    """``rho(delta)``, for delta above 0 and at most 1: the largest k/d that is still recovered.

    >>> round(largest_sparsity(0.5), 3)
    0.386
    """
    if not 0 < delta <= 1:
        raise ValueError("delta must be above 0 and at most 1")
    density = np.exp(-(_GRID**2) / 2) / np.sqrt(2 * np.pi)
    common = (1 + _GRID**2) * ndtr(-_GRID) - _GRID * density
    below = 1 + _GRID**2 - 2 * common
    values = np.divide(1 - 2 / delta * common, below, out=np.zeros_like(below), where=below > 1e-12)
    return float(min(1.0, max(0.0, values.max())))


def recoverable(unknowns: int, equations: int, nonzero: float) -> bool:
    """Whether basis pursuit finds ``nonzero`` unknowns, by the curve.

    >>> recoverable(40, 30, 16), recoverable(1000, 30, 16)
    (True, False)
    """
    if equations >= unknowns:
        return True
    return nonzero / equations <= largest_sparsity(equations / unknowns)


def first_hidden(equations: int, nonzero: float, most: int = 1 << 20) -> int:
    """The smallest number of unknowns at which recovery stops by the curve; ``most`` if none.

    >>> 40 < first_hidden(30, 16) < 100
    True
    """
    low, high = equations + 1, equations + 2
    while high < most and recoverable(high, equations, nonzero):
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if recoverable(middle, equations, nonzero):
            low = middle + 1
        else:
            high = middle
    return min(low, most)
