"""Entropy: the module that draws the random values of Taciturn's own code.

Keys, masks, obfuscators, batch seeds, splits and noise come from an ``Entropy`` that is handed in;
SEAL draws the noise of its ciphertexts from the operating system by itself. There are two:

- ``SystemEntropy`` asks the operating system for every byte.
- ``KeyedEntropy`` derives from a 32-byte key, by HMAC-SHA256 under distinct labels, the key of its
  own ChaCha20 stream [RFC8439, §2.4] and the keys of its forks, so that streams for different
  purposes are independent. Keyed by the operating system it serves real sessions, which resume with
  the same draws, and simulations whose draws must be replayed. Keyed by a seed it makes a run
  repeatable, which is no protection at all: the output says so, and whatever connects two real
  parties must refuse it.

**Guarantee.** ``below`` is exactly uniform (rejection), whatever the bound.

**Assumes.** HMAC-SHA256 is a pseudorandom function and ChaCha20 a pseudorandom generator;
``os.urandom`` is seeded.
"""

from __future__ import annotations

import hashlib
import hmac
import operator
import os
from functools import cached_property
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from taciturn.arrays import FloatArray, IndexArray, WordArray
from taciturn.errors import ConfigError

KEY_BYTES = 32
_FIRST_REFILL, _REFILL = 64, 4096
_PACKED_BITS = 20
_POSITION = np.uint64((1 << _PACKED_BITS) - 1)


class Entropy(Protocol):
    """A source of random values with named, independent forks."""

    def token(self, size: int) -> bytes:
        """Random bytes."""

    def below(self, bound: int) -> int:
        """One integer, exactly uniform in [0, bound)."""

    def uniform(self, shape: tuple[int, ...]) -> FloatArray:
        """Reals in [0, 1), multiples of 2^-53."""

    def words(self, count: int) -> WordArray:
        """Uniform 64-bit words, read-only."""

    def integers(self, bound: int, count: int) -> WordArray:
        """Integers, each exactly uniform in [0, bound); bound is at most 2^64."""

    def permutation(self, count: int) -> IndexArray:
        """A random order of 0..count-1."""

    def fork(self, purpose: str) -> Entropy:
        """An independent source for one purpose; its draws do not disturb this one's."""


class _ByteSource:
    """The draws that need nothing but ``token``."""

    def token(self, size: int) -> bytes:
        raise NotImplementedError

    def below(self, bound: int) -> int:
        if bound <= 0:
            raise ValueError("bound must be positive")
        bits = (bound - 1).bit_length()
        size, spare = (bits + 7) // 8, -bits % 8
        while True:
            value = int.from_bytes(self.token(size), "little") >> spare
            if value < bound:
                return value

    def uniform(self, shape: tuple[int, ...]) -> FloatArray:
        count = int(np.prod(shape, dtype=np.int64))
        high = (self.words(count) >> np.uint64(11)).astype(np.float64)
        return (high * 2.0**-53).reshape(shape)

    def words(self, count: int) -> WordArray:
        return np.frombuffer(self.token(8 * count), dtype="<u8").astype(np.uint64, copy=False)

    def integers(self, bound: int, count: int) -> WordArray:
        if not 1 <= bound <= 1 << 64:
            raise ValueError("bound must be between 1 and 2^64")
        bits = (bound - 1).bit_length()
        if not bits:
            return np.zeros(count, dtype=np.uint64)
        shift = np.uint64(64 - bits)
        values = self.words(count) >> shift
        while (over := np.flatnonzero(values > np.uint64(bound - 1))).size:
            values[over] = self.words(len(over)) >> shift
        return values

    def permutation(self, count: int) -> IndexArray:
        # Sorting by random keys is exactly uniform as long as no two keys tie; redraw then.
        while True:
            order = _sorted_by_keys(self.words(count))
            if order is not None:
                return order


def _sorted_by_keys(keys: WordArray) -> IndexArray | None:
    if len(keys) <= 1 << _PACKED_BITS:
        # A key's low bits make room for its position: sorting numbers takes half of the time of
        # sorting positions. With up to 2^20 positions 44 bits remain, and a tie has 3 % at most.
        packed = keys & ~_POSITION | np.arange(len(keys), dtype=np.uint64)
        packed.sort()
        tied = (packed[1:] ^ packed[:-1]) <= _POSITION
        return None if tied.any() else (packed & _POSITION).astype(np.int64)
    order = np.argsort(keys)
    ranked = keys[order]
    return None if (ranked[1:] == ranked[:-1]).any() else order


class SystemEntropy(_ByteSource):
    """Entropy of the operating system, for every byte."""

    def token(self, size: int) -> bytes:
        """Random bytes from the operating system."""
        return os.urandom(size)

    def fork(self, purpose: str) -> SystemEntropy:
        """The operating system again: its draws are independent anyway."""
        return self

    def __repr__(self) -> str:
        return "SystemEntropy()"


class KeyedEntropy(_ByteSource):
    """A ChaCha20 stream under a 32-byte key; the same key gives the same draws."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ConfigError(f"an entropy key has {KEY_BYTES} bytes, not {len(key)}")
        self._key = bytes(key)
        self._buffer = b""
        self._position = 0
        self._refill = _FIRST_REFILL

    @cached_property
    def _stream(self) -> CipherContext:
        # Made when first drawn from: many forks are handed out that never are.
        stream_key = hmac.digest(self._key, b"stream", "sha256")
        return Cipher(ChaCha20(stream_key, bytes(16)), mode=None).encryptor()

    @classmethod
    def from_system(cls) -> KeyedEntropy:
        """A fresh stream keyed by the operating system: private, and replayable by its holder."""
        return cls(os.urandom(KEY_BYTES))

    @classmethod
    def from_seed(cls, seed: int) -> KeyedEntropy:
        """A repeatable stream for simulations; anyone who knows the seed knows every draw."""
        return cls(hashlib.sha256(b"taciturn seed %d" % operator.index(seed)).digest())

    @property
    def key(self) -> bytes:
        """The key: its holder can replay every draw."""
        return self._key

    def token(self, size: int) -> bytes:
        """The next bytes of the stream."""
        if size < 0:
            # A negative size would step back and hand the same bytes out twice.
            raise ValueError("size must not be negative")
        if size > _REFILL:
            head = self._buffer[self._position :]
            self._buffer, self._position = b"", 0
            return head + self._stream.update(bytes(size - len(head)))
        if self._position + size > len(self._buffer):
            # Little at first: most streams serve a single draw.
            self._refill = min(4 * max(self._refill, size), _REFILL)
            self._buffer = self._buffer[self._position :] + self._stream.update(bytes(self._refill))
            self._position = 0
        start, self._position = self._position, self._position + size
        return self._buffer[start : self._position]

    def fork(self, purpose: str) -> KeyedEntropy:
        """A stream with a new key, derived from this stream's key and the purpose."""
        return KeyedEntropy(hmac.digest(self._key, b"fork " + purpose.encode(), "sha256"))

    def __repr__(self) -> str:
        return "KeyedEntropy(<hidden>)"
