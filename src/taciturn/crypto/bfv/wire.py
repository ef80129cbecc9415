"""Coefficients as bytes: each takes as many as its prime has, the lowest first.

Lengths are checked here, before anything is read; ranges by SEAL, when it loads the words.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import ByteArray, WordArray
from taciturn.errors import CryptoError


def width(prime: int) -> int:
    """Bytes of a number modulo a prime."""
    return (prime.bit_length() + 7) // 8


def widths(primes: tuple[int, ...]) -> int:
    """Bytes of a number modulo all of some primes."""
    return sum(map(width, primes))


def bytes_of(values: WordArray) -> ByteArray:
    """Words as rows of eight bytes, the lowest first."""
    return np.ascontiguousarray(values, dtype="<u8").view(np.uint8).reshape(-1, 8)


def trimmed(values: WordArray, prime: int) -> bytes:
    """The low bytes of each word: as many as its prime has."""
    return bytes_of(values)[:, : width(prime)].tobytes()


def _widened(data: memoryview, prime: int) -> WordArray:
    size = width(prime)
    if size == 8:
        return np.frombuffer(data, "<u8").astype(np.uint64, copy=False)
    whole = np.zeros((len(data) // size, 8), dtype=np.uint8)
    whole[:, :size] = np.frombuffer(data, np.uint8).reshape(-1, size)
    return whole.view("<u8").reshape(-1)


class Parts:
    """Reads fields from the front of some bytes."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._rest = memoryview(data)

    def words(self, count: int, prime: int) -> WordArray:
        """The next numbers modulo a prime."""
        return _widened(self.bytes(count * width(prime)), prime)

    def bytes(self, size: int) -> memoryview:
        """The next bytes."""
        part, self._rest = self._rest[:size], self._rest[size:]
        return part


def exactly(data: bytes | memoryview, size: int, kind: str) -> Parts:
    """A reader of these bytes, which must be ``size``."""
    if len(data) != size:
        raise CryptoError(f"{kind} of {len(data)} bytes where {size} were expected")
    return Parts(data)
