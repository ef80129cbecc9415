"""The public seed of the batches, from a stream of its own."""

from __future__ import annotations

from tacit.rng import KEY_BYTES, Entropy


def batch_seed(entropy: Entropy) -> bytes:
    """Drawn by Bob, told to Alice in the clear.

    >>> from tacit.rng import KeyedEntropy
    >>> len(batch_seed(KeyedEntropy.from_seed(1)))
    32
    """
    return entropy.fork("batches").token(KEY_BYTES)
