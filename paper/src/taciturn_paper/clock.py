"""A scheme on the clock: how long each kind of call of its keys and tables takes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from taciturn.arrays import IntArray
from taciturn.crypto.base import (
    DEFAULT_TABLE_MEMORY,
    Capacity,
    PublicKey,
    RowSum,
    Scheme,
    SecretKey,
    SlotScheme,
    Table,
    TableSize,
    Wrapping,
)
from taciturn.rng import Entropy

# Which calls of a key or a table make up a stage; what is left of a side's time is its own work.
STAGES = {
    "encrypt": ("encrypt", "encrypt_rows", "encrypt_columns"),
    "decrypt": ("decrypt", "decrypt_shares", "decrypt_rows", "decrypt_columns"),
    "products": ("table", "prepare", "masked_product", "product", "add", "result"),
}


class Clock:
    """Sums up the time spent in each call of a scheme."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def timed(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """The same function, on the clock under this name."""

        def run(*arguments: Any) -> Any:  # noqa: ANN401 - passes on whatever the scheme takes
            start = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                self.seconds[name] += time.perf_counter() - start

        return run

    @property
    def total(self) -> float:
        """The seconds of all calls."""
        return sum(self.seconds.values())

    def stage(self, name: str) -> float:
        """The seconds of a stage."""
        return sum(self.seconds[call] for call in STAGES[name])


class _TimedKey:
    """A key or a table whose every call is on the clock."""

    def __init__(self, key: Any, clock: Clock) -> None:  # noqa: ANN401
        self._key, self._clock = key, clock

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        attribute = getattr(self._key, name)
        return self._clock.timed(attribute, name) if callable(attribute) else attribute

    def table(self, whole: IntArray, memory: int = DEFAULT_TABLE_MEMORY) -> Table:
        """A table whose products are on the clock too."""
        made = self._clock.timed(self._key.table, "table")(whole, memory)
        return _TimedKey(made, self._clock)

    def sum_over_rows(self, mask: IntArray, entropy: Entropy) -> RowSum:
        """A sum whose parts are on the clock too."""
        return _TimedKey(self._key.sum_over_rows(mask, entropy), self._clock)


class TimedScheme:
    """A scheme whose keys are on the clock."""

    def __init__(self, inner: Scheme) -> None:
        self.clock = Clock()
        self._inner = inner
        self.name, self.protects, self.key_bits = inner.name, inner.protects, inner.key_bits
        self.whole_tables = inner.whole_tables

    @property
    def number_by_number(self) -> SlotScheme | None:
        """The scheme's own; nothing of it is timed."""
        return self._inner.number_by_number

    def row_parts(self, size: TableSize) -> list[slice]:
        """The scheme's own."""
        return self._inner.row_parts(size)

    def check_tables(self, capacity: Wrapping, size: TableSize, products: int) -> float:
        """The scheme's own."""
        return self._inner.check_tables(capacity, size, products)

    def generate(
        self, bits: int, capacity: Capacity, entropy: Entropy, seed: bytes | None = None
    ) -> SecretKey:
        """A key on the clock; making it is not."""
        return _TimedKey(self._inner.generate(bits, capacity, entropy, seed), self.clock)

    def read_public(
        self, data: bytes, bits: int, capacity: Capacity, seed: bytes | None = None
    ) -> PublicKey:
        """A key on the clock."""
        return _TimedKey(self._inner.read_public(data, bits, capacity, seed), self.clock)

    def read_secret(self, data: bytes, bits: int, capacity: Capacity) -> SecretKey:
        """A kept key on the clock."""
        return _TimedKey(self._inner.read_secret(data, bits, capacity), self.clock)
