"""Naming one of several models by a randomised response: what a choice costs with noise.

Bob wants one of k models, for reasons that depend on labels. He names it with probability
``e^eps / (e^eps + k - 1)``, and each other one with ``1 / (e^eps + k - 1)``.

**Guarantee.** Whatever two sets of labels are compared, the probability that a model is named
differs by the factor ``e^eps`` at most: epsilon for every label, and for all of them together.

**Assumes.** Only the named model becomes known, and there is **one draw**: to draw again until the
answer is the wanted one tells the wanted one, whatever each draw costs. The words of the entropy
are uniform.
The probability of the wanted model is rounded down to a multiple of ``2^-62``, and the others share
the rest: the ratio is not above ``e^eps``, but for what the double that holds it is off, a part in
2^50, for epsilons up to 30; beyond there is nothing to protect.
"""

from __future__ import annotations

import math

from taciturn.errors import ConfigError
from taciturn.rng import Entropy

MOST_EPSILON = 30.0
_BITS = 62


def require_epsilon(epsilon: float) -> None:
    """Insists that a model can be named at a price.

    Raises:
        ConfigError: It cannot.
    """
    if not 0 < epsilon <= MOST_EPSILON:
        raise ConfigError(
            f"a choice cannot be drawn at epsilon {epsilon:g}",
            setting="epsilon",
            hint=f"use more than 0 and at most {MOST_EPSILON:g}, or leave it out",
        )


def wanted_probability(models: int, epsilon: float) -> float:
    """How likely the model that is wanted is named.

    >>> round(wanted_probability(12, 3.0), 3), wanted_probability(1, 1.0)
    (0.646, 1.0)
    """
    return 1.0 / (1.0 + (models - 1) * math.exp(-epsilon))


def named_choice(wanted: int, models: int, epsilon: float, entropy: Entropy) -> int:
    """The model that is named, from 1 on.

    >>> from taciturn.rng import KeyedEntropy
    >>> [named_choice(2, 3, 1.0, KeyedEntropy.from_seed(seed)) for seed in range(6)]
    [3, 2, 3, 2, 2, 1]

    Raises:
        ConfigError: The epsilon is none.
    """
    require_epsilon(epsilon)
    if models == 1:
        return wanted
    limit = math.floor(wanted_probability(models, epsilon) * 2.0**_BITS)
    if entropy.below(1 << _BITS) < limit:
        return wanted
    other = 1 + entropy.below(models - 1)
    return other if other < wanted else other + 1
