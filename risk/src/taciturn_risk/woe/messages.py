"""The messages of a weight of evidence."""

from __future__ import annotations

from dataclasses import dataclass, field

from taciturn.crypto.base import EncryptedAnswer, EncryptedVector
from taciturn.protocol.messages import Message


@dataclass(frozen=True, slots=True)
class BinnedColumn(Message):
    """One of ``columns`` columns of Alice's that are cut into bins: its name, its bins' sizes."""

    code = 39
    senders = ("alice",)

    number: int
    columns: int
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SealedLabels(Message):
    """The labels of a part of the rows, 0 or 1, under Bob's key."""

    code = 40
    senders = ("bob",)

    part: int
    labels: EncryptedVector


@dataclass(frozen=True, slots=True)
class BinSums(Message):
    """Number of positive labels in each bin, under Bob's key; shares of it for parts of rows."""

    code = 41
    senders = ("alice",)

    part: int
    answer: EncryptedAnswer
