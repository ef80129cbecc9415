"""A peer that does not keep to the protocol: altered messages, altered programs, mutated bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, TypeVar, cast

import numpy as np

from taciturn.crypto.base import EncryptedAnswer, EncryptedVector
from taciturn.privacy.base import Released
from taciturn.protocol.messages import Hello, Message, PublicBytes
from taciturn.protocol.steps import Emit, Persist, Program, Receive, Send
from taciturn.rng import KeyedEntropy

R = TypeVar("R")
Step = Send | Receive | Emit | Persist
Change = Callable[[Message], Message]
TURNS = ("iteration", "turn", "part", "number")
"""The fields that say which turn a message belongs to."""


def stepped(program: Program[R], change: Callable[[Step], Step]) -> Program[R]:
    """The same program; each of its steps passes through ``change``."""
    answer: Any = None
    while True:
        try:
            step = program.send(answer)
        except StopIteration as done:
            return cast(R, done.value)
        answer = yield change(step)


def altered(program: Program[R], change: Change) -> Program[R]:
    """The same program; what it sends passes through ``change``."""

    def changed(step: Step) -> Step:
        return replace(step, message=change(step.message)) if isinstance(step, Send) else step

    return stepped(program, changed)


def only(kind: type[Message], change: Callable[[Any], Message]) -> Change:
    """The change of messages of one kind; the others stay as they are."""
    return lambda message: change(message) if isinstance(message, kind) else message


def instead(message: Message) -> Change:
    """The change of any message into this one."""
    return lambda _: message


def faults(message: Message) -> Iterator[tuple[str, Message]]:
    """The message of another turn, and with one entry more, one less or none in each list."""
    if isinstance(message, Hello):
        return  # tests/protocol/test_handshake.py
    for field in fields(message):
        value = getattr(message, field.name)
        if field.name in TURNS:
            others = {"before": -1, "next": value + 1, "last": 2**63 - 1}
        else:
            others = dict(_resized(value))
        for name, other in others.items():
            # What was empty is no shorter.
            if not np.array_equal(_list(other), _list(value)):
                changes: dict[str, Any] = {field.name: other}
                yield f"{type(message).__name__}.{field.name} {name}", replace(message, **changes)


def _resized(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, EncryptedVector | EncryptedAnswer):
        kind, data, length = type(value), value.data, value.length
        yield "one more", kind(data + bytes(8), length + 1)
        yield "one less", kind(data[:-8], length - 1)
        yield "none", kind(b"", 0)
        yield "cut", kind(data[:-1], length)
        yield "a huge length", kind(data, 2**32 - 1)
    elif isinstance(value, Released):
        for name, other in _resized(value.value):
            yield name, Released(other, value.event)
    elif isinstance(value, np.ndarray):
        # Row numbers ascend, or they are no frame.
        more = value[-1] + 1 if len(value) and value.dtype == np.int64 else 0
        yield "one more", np.append(value, value.dtype.type(more))
        yield "one less", value[:-1]
        yield "none", value[:0]
    elif isinstance(value, tuple):
        yield "one more", (*value, 0)
        yield "one less", value[:-1]
        yield "none", ()
    elif isinstance(value, bytes):
        yield "one more", PublicBytes(value + b"\1")
        yield "one less", PublicBytes(value[:-1])
        yield "none", PublicBytes(b"")


def _list(value: Any) -> Any:
    if isinstance(value, Released):
        return value.value
    if isinstance(value, EncryptedVector | EncryptedAnswer):
        return np.frombuffer(value.data + value.length.to_bytes(8, "little"), np.uint8)
    return np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value


class Mutator:
    """Changes bytes of frames: set, flip, cut, repeat, splice; repeatable."""

    def __init__(self, seed: int) -> None:
        self._entropy = KeyedEntropy.from_seed(seed)
        self._draws: Iterator[int] = iter(())

    def _below(self, bound: int) -> int:
        try:
            return next(self._draws) % bound
        except StopIteration:
            self._draws = iter(self._entropy.words(1 << 16).tolist())
            return next(self._draws) % bound

    def __call__(self, frames: list[bytes]) -> bytes:
        data = bytearray(frames[self._below(len(frames))])
        for _ in range(1 + self._below(3)):
            kind, at = self._below(6), self._below(len(data) + 1)
            if kind == 0 and at < len(data):
                data[at] = self._below(256)
            elif kind == 1 and at < len(data):
                data[at] ^= 1 << self._below(8)
            elif kind == 2:
                del data[at:]
            elif kind == 3:
                data[at:at] = data[: self._below(9)]
            elif kind == 4:
                data[at : at + 4] = (2**32 - 1 - self._below(3)).to_bytes(4, "little")
            else:
                data[at:] = frames[self._below(len(frames))][at:]
        return bytes(data)
