"""Calibration run: time and size of one encrypted product, for machine checks and benchmarks."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.base import (
    Capacity,
    PublicKey,
    Scheme,
    SecretKey,
)
from taciturn.rng import Entropy


@dataclass(frozen=True, slots=True)
class CalibrationRun:
    """Cost of one iteration, and the largest ``error`` of its product.

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
    def generate(cls, scheme: Scheme, bits: int, capacity: Capacity, entropy: Entropy) -> KeyPair:
        """A fresh pair."""
        secret = scheme.generate(bits, capacity, entropy)
        return cls(secret, scheme.read_public(secret.public.to_bytes(), bits, capacity))

    def calibrate(self, matrix: IntArray, vector: IntArray, entropy: Entropy) -> CalibrationRun:
        """Cost of one iteration, Bob's and Alice's work together."""
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
        return CalibrationRun(end - ready, ready - start, len(sent.data), len(answer.data), error)
