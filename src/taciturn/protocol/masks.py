"""Masks of several Alices that cancel in their sum; none where there is one Alice."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from taciturn.arrays import IntArray
from taciturn.errors import (
    LocalProtocolError,
)
from taciturn.rng import KeyedEntropy

_SESSION = b"taciturn session"


@dataclass(frozen=True, slots=True)
class ZeroSum:
    """One Alice's masks: those of all Alices, drawn for the same purpose, add up to zero.

    Streams are forked by purpose, as entropy is. A purpose is one request of Bob's: iteration and
    part stand in it, so that no two values leave under one mask.

    ``added`` are the streams in common with Alices after her, and ``subtracted`` with those before.

    >>> common = KeyedEntropy.from_seed(1)
    >>> one, two = ZeroSum(added=(common,)), ZeroSum(subtracted=(common,))
    >>> pair = [masks.fork("scores 3").over(np.array([5, 7])) for masks in (one, two)]
    >>> (pair[0] + pair[1]).tolist()
    [10, 14]
    """

    added: tuple[KeyedEntropy, ...] = ()
    subtracted: tuple[KeyedEntropy, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.subtracted)

    def fork(self, purpose: str) -> ZeroSum:
        """The masks for one purpose."""
        return ZeroSum(
            tuple(stream.fork(purpose) for stream in self.added),
            tuple(stream.fork(purpose) for stream in self.subtracted),
        )

    def over(self, values: IntArray) -> IntArray:
        """Values under masks, modulo 2^64; as they are where there is one Alice."""
        if not self:
            return values
        masked = values.astype(np.int64)
        for stream in self.added:
            masked += stream.words(len(values)).view(np.int64)
        for stream in self.subtracted:
            masked -= stream.words(len(values)).view(np.int64)
        return masked


NO_MASKS = ZeroSum()
"""For a single Alice, whose answers are hers alone."""


@dataclass(frozen=True, slots=True)
class GroupShape:
    """Shape of a group of Alices, known to all sides; ``widths`` are in the agreement's order."""

    widths: tuple[int, ...] = ()
    seed: bytes = field(default=b"", repr=False)

    @property
    def session(self) -> str:
        """One name of the session for all sides."""
        return hashlib.sha256(_SESSION + self.seed).hexdigest()[:32]

    def of_model(self, number: int) -> GroupShape:
        """That of one of the models of a session, from 0 on, under another name."""
        if not self.widths or not number:
            return self
        seed = hashlib.sha256(f"model {number}".encode() + self.seed).digest()
        return replace(self, seed=seed)


ALONE = GroupShape()
"""Where there is one Alice."""


@dataclass(frozen=True, slots=True, repr=False)
class PairwiseMasks:
    """Pairwise keys of one of several Alices with the others, from which their masks follow.

    ``widths`` are in the agreement's order, and ``place`` is her own among them. ``pair_keys`` has
    the key in common with each other Alice, and nothing in her own place. ``sizes`` has for each
    Alice the size of her values, and that of her columns together.
    """

    widths: tuple[int, ...]
    place: int
    magnitude_bits: int
    seed: bytes = field(repr=False)
    pair_keys: tuple[bytes, ...] = field(repr=False)
    sizes: tuple[tuple[int, int], ...] = ()

    @property
    def masks(self) -> ZeroSum:
        """Hers."""
        streams = [KeyedEntropy(key) if key else None for key in self.pair_keys]
        before, after = streams[: self.place], streams[self.place + 1 :]
        return ZeroSum(
            tuple(stream for stream in after if stream is not None),
            tuple(stream for stream in before if stream is not None),
        )

    def to_json(self) -> dict[str, Any]:
        """JSON for a state; anyone who reads it can remove her masks."""
        return {
            "widths": list(self.widths),
            "place": self.place,
            "magnitude_bits": self.magnitude_bits,
            "seed": self.seed.hex(),
            "pair_keys": [key.hex() for key in self.pair_keys],
            "sizes": [list(pair) for pair in self.sizes],
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> PairwiseMasks:
        """Reads it back."""
        return cls(
            tuple(map(int, values["widths"])),
            int(values["place"]),
            int(values["magnitude_bits"]),
            bytes.fromhex(values["seed"]),
            tuple(bytes.fromhex(key) for key in values["pair_keys"]),
            tuple((int(size), int(spread)) for size, spread in values["sizes"]),
        )


def masks_of(pairwise_masks: PairwiseMasks | None, parties: Mapping[str, str] | None) -> ZeroSum:
    """An Alice's masks; none where she is the only one."""
    if pairwise_masks is not None:
        return pairwise_masks.masks
    if parties is not None:
        # Without this her scores would leave as they are, and nobody would notice.
        raise LocalProtocolError("one of several Alices does not know the others")
    return NO_MASKS
