"""The messages of an alignment."""

from __future__ import annotations

from dataclasses import dataclass, field

from taciturn.protocol.messages import GroupElements, Message, PublicBytes


@dataclass(frozen=True, slots=True)
class AlignmentHello(Message):
    """Both begin an alignment with it. No digest of ids: ids must stay hidden."""

    code = 21
    senders = ("alice", "bob")

    version: int
    role: str
    terms: str
    rows: int
    share: PublicBytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class BlindedIds(Message):
    """``H(id)^k`` for some of the sender's ids, in a random order."""

    code = 22
    senders = ("alice", "bob")

    turn: int
    elements: GroupElements = field(repr=False)


@dataclass(frozen=True, slots=True)
class TwiceBlinded(Message):
    """The receiver's own elements, in its order, raised to the sender's scalar."""

    code = 23
    senders = ("alice", "bob")

    turn: int
    elements: GroupElements = field(repr=False)


@dataclass(frozen=True, slots=True)
class AlignmentEnd(Message):
    """Number of common ids, and a digest of their twice blinded elements in order."""

    code = 24
    senders = ("alice", "bob")

    common: int
    digest: PublicBytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class CommonToAll(Message):
    """Bitmap of the ids that an Alice shares with Bob: whether all Alices have them.

    The first id has the highest bit of the first byte. They are in the order of the pair's twice
    blinded elements, which both have: a list of rows is no shorter unless few remain, and its
    length would tell an eavesdropper how many do.
    """

    code = 38
    senders = ("bob",)

    bits: PublicBytes = field(repr=False)
