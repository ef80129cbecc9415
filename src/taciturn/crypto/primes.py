"""Primes for keys, from random candidates.

Every candidate is a fresh draw. Searching upwards from one random start would be quicker, but picks
a prime with a probability proportional to the gap below it; fresh draws are uniform over the primes
of the wanted form.

A candidate that survives trial division is tested by Baillie-PSW and 40 rounds of Miller-Rabin. No
composite that passes the first is known; a round of the second passes a composite with probability
at most 1/4, so 40 rounds leave 2^-80, and far less for random candidates [DamgardLP93].
The rounds' bases come from GMP's own fixed generator: harmless for numbers that we
drew, which nobody could choose against it, and the reason why ``looks_prime`` is no proof about a
number that a stranger chose.
"""

from __future__ import annotations

from math import prod

import gmpy2
from gmpy2 import mpz

from taciturn.rng import Entropy

MILLER_RABIN_ROUNDS = 40
# GMP counts Baillie-PSW as the first 24 rounds, and does every further round as Miller-Rabin.
_GMP_ROUNDS = 24 + MILLER_RABIN_ROUNDS
_TRIAL_LIMIT = 4096
_SMALL = [k for k in range(3, _TRIAL_LIMIT, 2) if gmpy2.is_prime(k)]
_SMALL_PRODUCT = mpz(prod(_SMALL))


def has_small_factor(number: mpz) -> bool:
    """Whether an odd prime below 4096 divides the number.

    >>> has_small_factor(mpz(3 * 4099)), has_small_factor(mpz(4099 * 4111))
    (True, False)
    """
    return bool(gmpy2.gcd(number, _SMALL_PRODUCT) != 1)


def looks_prime(number: mpz) -> bool:
    """Baillie-PSW and 40 rounds of Miller-Rabin.

    >>> looks_prime(mpz(2**127 - 1)), looks_prime(mpz(2**129 - 1))
    (True, False)
    """
    return bool(gmpy2.is_prime(number, _GMP_ROUNDS))


def draw_prime(bits: int, entropy: Entropy) -> mpz:
    """A prime of exactly ``bits`` bits whose two top bits are set.

    **Guarantee.** Uniform over the primes in [3 * 2^(bits-2), 2^bits) that exceed 4096. The product
    of two such primes has exactly ``2 * bits`` bits.

    **Assumes.** The entropy's draws are uniform.

    ``bits`` is at least 16, so that no prime of this size counts as a small factor.

    >>> from taciturn.rng import KeyedEntropy
    >>> draw_prime(64, KeyedEntropy.from_seed(1)).bit_length()
    64
    """
    top = mpz(3) << (bits - 2)
    while True:
        candidate = top + 2 * entropy.below(1 << (bits - 3)) + 1
        if not has_small_factor(candidate) and looks_prime(candidate):
            return candidate
