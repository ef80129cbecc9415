"""Each scheme on this machine: a fresh key of real size, and one product there and back."""

from __future__ import annotations

import time

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.base import Capacity, Scheme
from taciturn.crypto.registry import SCHEMES
from taciturn.engine.trial import KeyPair
from taciturn.results.doctor import Finding
from taciturn.rng import Entropy, SystemEntropy

# Half a batch of the paper's smallest set: enough to show that all parts work.
_COLUMNS, _ROWS = 6, 8
_CAPACITY = Capacity(vector_bits=20, matrix_bits=18, terms=_ROWS)


def look_at_schemes() -> list[Finding]:
    """One finding per scheme."""
    return [look_at_scheme(scheme) for scheme in SCHEMES.values()]


def look_at_scheme(scheme: Scheme) -> Finding:
    """Makes a key, encrypts, multiplies, decrypts, and compares with the product in clear."""
    bits, entropy = scheme.key_bits[0], SystemEntropy()
    matrix = _integers(_COLUMNS * _ROWS, _CAPACITY.matrix_bits, entropy).reshape(_COLUMNS, _ROWS)
    vector = _integers(_ROWS, _CAPACITY.vector_bits, entropy)
    start = time.perf_counter()
    try:
        pair = KeyPair.of(scheme, bits, _CAPACITY, entropy)
        made = time.perf_counter()
        trial = pair.trial(matrix, vector, entropy)
    except Exception as problem:  # a library that is broken may raise anything
        return _broken(scheme, f"it raises {type(problem).__name__}")
    if trial.error:
        return _broken(scheme, "what it decrypts is not the product")
    kind = f" {bits}" if scheme.protects else ", which hides nothing"
    product = trial.seconds + trial.ahead
    return Finding.ok(
        "schemes",
        f"{scheme.name}{kind}: key in {_time(made - start)}, product in {_time(product)}",
    )


def _integers(count: int, bits: int, entropy: Entropy) -> IntArray:
    drawn = entropy.integers(1 << (bits + 1), count).astype(np.int64)
    return drawn - (1 << bits) + 1 - (drawn > (1 << bits))


def _broken(scheme: Scheme, why: str) -> Finding:
    return Finding.problem(
        "schemes",
        f"{scheme.name} does not work here: {why}",
        "reinstall its package; do not train with this scheme until it works",
    )


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"
