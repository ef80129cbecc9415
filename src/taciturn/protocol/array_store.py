"""Stores of a state's long arrays: in its text, or in separate files."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from taciturn.arrays import FloatArray, IntArray

Load: TypeAlias = Callable[[], FloatArray]


class ArrayStore(Protocol):
    """Store of a state's long arrays: in its text, or in separate files."""

    def put(self, name: str, values: FloatArray) -> Any:  # noqa: ANN401 - JSON
        """Store an array; returns its reference for the text.

        A name stands for one array as long as the training lasts.
        """

    def get(self, reference: Any) -> Load:  # noqa: ANN401 - JSON
        """Loader of an array, by its reference from ``put``; ``StateError`` if it has changed."""


class InlineArrays:
    """Arrays in the state's own text.

    >>> store = InlineArrays()
    >>> store.get(store.put("scores", np.array([0.5, -2.0])))().tolist()
    [0.5, -2.0]
    """

    def put(self, name: str, values: FloatArray) -> str:
        """The array as text, in two thirds of the room that hexadecimal digits take."""
        return base64.b64encode(values.astype("<f8").tobytes()).decode("ascii")

    def get(self, reference: Any) -> Load:  # noqa: ANN401 - JSON
        """Reads it back."""
        values = np.frombuffer(base64.b64decode(reference, validate=True), "<f8").astype(np.float64)
        return lambda: values


INLINE = InlineArrays()


class LazyArrays(Sequence[FloatArray]):
    """Arrays that are read when they are asked for, one at a time."""

    def __init__(self, loads: Sequence[Load]) -> None:
        self._loads = loads

    def __len__(self) -> int:
        return len(self._loads)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - an array, or some of them
        if isinstance(index, slice):
            return LazyArrays(self._loads[index])
        return self._loads[index]()


def bits_of(values: IntArray) -> FloatArray:
    """Integers of 64 bits as floats with the same bits, which an array store keeps.

    >>> integers_of(bits_of(np.array([2**58 + 1, -3]))).tolist()
    [288230376151711745, -3]
    """
    return values.view(np.float64)


def integers_of(bits: FloatArray) -> IntArray:
    """The integers whose bits these are."""
    return bits.view(np.int64)


def integers_loader(load: Load) -> Callable[[], Any]:
    """The loader of integers that ``bits_of`` made floats."""
    return lambda: integers_of(load())


def hex_of(values: FloatArray) -> str:
    """Reals as hexadecimal digits."""
    return values.astype("<f8").tobytes().hex()


def floats_of(text: str) -> FloatArray:
    """The reals that these digits are."""
    return np.frombuffer(bytes.fromhex(text), "<f8").astype(np.float64)
