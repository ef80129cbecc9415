"""One iteration of a scheme, timed: what estimates and benchmarks are made of."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.base import Capacity, PublicKey, Scheme, SecretKey, SlotScheme
from taciturn.protocol.mutual import cut
from taciturn.rng import Entropy

TRIALS = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """What one iteration took.

    ``seconds`` is the critical path (encrypt, product, mask, decrypt), ``ahead`` what was made
    before it, while a party would wait for the other.
    """

    seconds: float
    ahead: float
    bytes_to_alice: int
    bytes_to_bob: int
    error: int


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Both halves of a key, the public one as Alice reads it from the wire."""

    secret: SecretKey
    public: PublicKey

    @classmethod
    def of(cls, scheme: Scheme, bits: int, capacity: Capacity, entropy: Entropy) -> KeyPair:
        """A fresh pair."""
        secret = scheme.generate(bits, capacity, entropy)
        return cls(secret, scheme.read_public(secret.public.to_bytes(), bits, capacity))

    def trial(self, matrix: IntArray, vector: IntArray, entropy: Entropy) -> Trial:
        """One iteration, Bob's and Alice's work together."""
        rows, length = matrix.shape
        start = time.perf_counter()
        self.secret.stock(rows, length, entropy)
        prepared = self.public.prepare(matrix)
        mask = self.public.draw_mask(rows, entropy)
        self.public.stock(prepared, mask, entropy)
        ready = time.perf_counter()
        sent = self.secret.encrypt(vector, rows, entropy)
        answer = self.public.masked_product(prepared, sent, mask, entropy)
        product = self.public.unmask(self.secret.decrypt(answer, length), mask)
        end = time.perf_counter()
        error = int(np.abs(product - matrix @ vector).max())
        return Trial(end - ready, ready - start, len(sent.data), len(answer.data), error)


@dataclass(frozen=True, slots=True)
class SlotsTrial:
    """What the products number by number of some rows took.

    Args:
        seconds: Of both sides.
        messages: Each way.
        bytes_to_alice: Of Bob's numbers.
        bytes_to_bob: Of her answers.
        key_bytes: Of his public key.
    """

    seconds: float
    messages: int
    bytes_to_alice: int
    bytes_to_bob: int
    key_bytes: int

    @classmethod
    def of(
        cls, slots: SlotScheme, bits: int, rows: int, entries: int, entropy: Entropy
    ) -> SlotsTrial:
        """From a few ciphertexts of each size that ``rows`` of ``entries`` numbers take."""
        key = slots.generate(bits, entropy)
        sizes = Counter((part.stop - part.start) * entries for part in cut(slots, rows, entries))
        seconds, sent, answered = 0.0, 0, 0
        for size, count in sizes.items():
            numbers, times = np.ones(size, dtype=np.int64), []
            for _ in range(TRIALS):
                start = time.perf_counter()
                vector = key.encrypt(numbers, entropy)
                answer = key.public.product(numbers, vector, numbers, entropy)
                key.decrypt(answer)
                times.append(time.perf_counter() - start)
            seconds += count * statistics.median(times)
            sent, answered = sent + count * len(vector.data), answered + count * len(answer.data)
        return cls(seconds, sizes.total(), sent, answered, len(key.public.to_bytes()))
