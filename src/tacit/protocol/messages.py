"""One frozen class per message.

A field of a message that Bob sends is public (a number, a text, public bytes), ``Released`` or
encrypted. A bare array may come from Alice only: the codec refuses to register any other class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, NewType

from tacit.arrays import FloatArray
from tacit.crypto.base import EncryptedAnswer, EncryptedVector
from tacit.privacy.base import MaskedProduct, Released

Role = Literal["alice", "bob"]
PublicBytes = NewType("PublicBytes", bytes)
"""Bytes that say nothing about a label: a public key, a seed for the batches."""


@dataclass(frozen=True, slots=True)
class Message:
    """What one party tells the other. ``code`` stands on the wire and never changes meaning."""

    code: ClassVar[int]
    senders: ClassVar[tuple[Role, ...]]


@dataclass(frozen=True, slots=True)
class Hello(Message):
    """Both send it first: who, in what version, with which settings, about which rows."""

    code = 1
    senders = ("alice", "bob")

    version: int
    role: str
    terms: str
    rows: int
    ids_digest: str
    magnitude_bits: int
    columns: int


@dataclass(frozen=True, slots=True)
class Setup(Message):
    """Bob's public key, and the seed from which both derive the batches."""

    code = 2
    senders = ("bob",)

    public_key: PublicBytes = field(repr=False)
    batch_seed: PublicBytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class PartialScores(Message):
    """``X_A w_A`` for the rows that are due: in clear, from Alice to Bob."""

    code = 3
    senders = ("alice",)

    iteration: int
    scores: FloatArray = field(repr=False)


@dataclass(frozen=True, slots=True)
class EncryptedResidues(Message):
    """The batch's residues under Bob's key."""

    code = 4
    senders = ("bob",)

    iteration: int
    residues: EncryptedVector


@dataclass(frozen=True, slots=True)
class MaskedGradient(Message):
    """``X_A^T r + xi``, re-randomised, under Bob's key."""

    code = 5
    senders = ("alice",)

    iteration: int
    answer: EncryptedAnswer


@dataclass(frozen=True, slots=True)
class RevealedGradient(Message):
    """``X_A^T r + xi`` decrypted: only Alice can take the mask off, and she does."""

    code = 6
    senders = ("bob",)

    iteration: int
    gradient: Released[MaskedProduct]
