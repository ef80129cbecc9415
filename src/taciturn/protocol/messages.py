"""One frozen class per message.

A field of a message that Bob sends is public (a number, a text, public bytes), ``Released`` or
encrypted. A bare array may come from Alice only: the codec refuses to register any other class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, Literal, NewType

from taciturn.arrays import FloatArray, IndexArray, IntArray
from taciturn.crypto.base import EncryptedAnswer, EncryptedVector
from taciturn.privacy.base import MaskedProduct, Released

Role = Literal["alice", "bob"]
OTHER: Mapping[Role, Role] = MappingProxyType({"alice": "bob", "bob": "alice"})
MAX_MAGNITUDE_BITS = 40
MAX_COLUMNS = 1 << 20
PublicBytes = NewType("PublicBytes", bytes)
"""Bytes that say nothing about a label: a public key, a seed for the batches."""

RowNumbers = NewType("RowNumbers", IndexArray)
"""Rows by their place in the agreed order, ascending; which they are depends on no label."""


ShareNumbers = NewType("ShareNumbers", IntArray)
"""Numbers modulo t, which alone say nothing: Alice's part of weights that are shared, or a score
under a mask."""


GroupElements = NewType("GroupElements", bytes)
"""Elements of a group, one after the other; they hide what they are made from."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message between parties. ``code`` is sent and never changes its meaning.

    A class that is only a parent keeps these values, which no registered message has.
    """

    code: ClassVar[int] = 0
    senders: ClassVar[tuple[Role, ...]] = ()


@dataclass(frozen=True, slots=True)
class NumberedMessage(Message):
    """Base class of messages that belong to an iteration, which the receiver knows too."""

    iteration: int


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
class KeyOffer(Message):
    """The sender's public key; Alice has one where nobody sees scores."""

    code = 2
    senders = ("alice", "bob")

    public_key: PublicBytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class PartialScores(NumberedMessage):
    """``X_A w_A`` for the rows that are due: in clear, from Alice to Bob."""

    code = 3
    senders = ("alice",)

    scores: FloatArray = field(repr=False)


@dataclass(frozen=True, slots=True)
class EncryptedResidues(NumberedMessage):
    """The batch's residues under Bob's key."""

    code = 4
    senders = ("bob",)

    residues: EncryptedVector


@dataclass(frozen=True, slots=True)
class MaskedGradient(NumberedMessage):
    """``X_A^T r + xi``, re-randomised, under Bob's key."""

    code = 5
    senders = ("alice",)

    answer: EncryptedAnswer


@dataclass(frozen=True, slots=True)
class RevealedGradient(NumberedMessage):
    """``X_A^T r + xi`` decrypted: only Alice can take the mask off, and she does."""

    code = 6
    senders = ("bob",)

    gradient: Released[MaskedProduct]


@dataclass(frozen=True, slots=True)
class ResidueReply(NumberedMessage):
    """Base class of replies to Alice's scores where residues are sent in clear."""


@dataclass(frozen=True, slots=True)
class NoisyResidues(ResidueReply):
    """The batch's residues with noise, on the residues' grid."""

    code = 8
    senders = ("bob",)

    residues: Released[IntArray]


@dataclass(frozen=True, slots=True)
class RealResidues(ResidueReply):
    """The batch's residues with noise in floating point: for simulations only."""

    code = 9
    senders = ("bob",)

    residues: Released[FloatArray]


@dataclass(frozen=True, slots=True)
class BudgetSpent(ResidueReply):
    """The budget does not pay for this iteration: the training ends here.

    It depends on how often rows were released, never on a label.
    """

    code = 10
    senders = ("bob",)


@dataclass(frozen=True, slots=True)
class HiddenBatchOffer(NumberedMessage):
    """The subset and the randomised response about which of its rows are meant."""

    code = 11
    senders = ("bob",)

    subset: RowNumbers = field(repr=False)
    response: Released[IntArray]


@dataclass(frozen=True, slots=True)
class BatchCommitment(Message):
    """Binds Bob to his share of the batches' seed before he sees Alice's."""

    code = 12
    senders = ("bob",)

    digest: PublicBytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class BatchShare(Message):
    """A party's share of the seed from which both derive the batches."""

    code = 13
    senders = ("alice", "bob")

    share: PublicBytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class EpochVerdict(NumberedMessage):
    """Whether the training ends here, by the held-out labels: a release."""

    code = 15
    senders = ("bob",)

    stop: Released[IntArray]


@dataclass(frozen=True, slots=True)
class SealedWeights(NumberedMessage):
    """Bob's share of Alice's weights under his key."""

    code = 16
    senders = ("bob",)

    weights: EncryptedVector


@dataclass(frozen=True, slots=True)
class SealedScores(NumberedMessage):
    """Alice's part of the scores, from both shares of her weights, under Bob's key."""

    code = 17
    senders = ("alice",)

    answer: EncryptedAnswer


@dataclass(frozen=True, slots=True)
class SealedResidues(NumberedMessage):
    """A number of each row, or of a part of the rows, under Bob's key."""

    code = 18
    senders = ("bob",)

    residues: EncryptedVector


@dataclass(frozen=True, slots=True)
class SealedGradient(NumberedMessage):
    """``X_A^T a + xi`` under Bob's key: he keeps what he decrypts, as his share of the weights."""

    code = 19
    senders = ("alice",)

    answer: EncryptedAnswer


@dataclass(frozen=True, slots=True)
class RevealedShare(Message):
    """Bob's share of Alice's weights in clear, after the last iteration: a release."""

    code = 20
    senders = ("bob",)

    share: Released[IntArray]


@dataclass(frozen=True, slots=True)
class Phases(NumberedMessage):
    """Of his share of each score, the numbers of all waves, under Bob's key."""

    code = 25
    senders = ("bob",)

    phases: EncryptedVector


@dataclass(frozen=True, slots=True)
class ResidueShares(NumberedMessage):
    """What Alice's numbers make of them, under a mask for each row: his share of the residues."""

    code = 26
    senders = ("alice",)

    answer: EncryptedAnswer


@dataclass(frozen=True, slots=True)
class LossShares(NumberedMessage):
    """What another table of hers makes of ``Phases``, masked: his shares of the rows' losses."""

    code = 45
    senders = ("alice",)

    answer: EncryptedAnswer


@dataclass(frozen=True, slots=True)
class OpenedSums(Message):
    """Alice's shares of a few sums over all rows in clear, after the last pass, with noise.

    The losses of the last two passes, and how many scores lie beyond their range.
    """

    code = 46
    senders = ("alice",)

    shares: ShareNumbers = field(repr=False)


@dataclass(frozen=True, slots=True)
class SharedVector(NumberedMessage):
    """The sender's share of a vector, under its key, for a product with the receiver's columns.

    ``iteration`` is twice the pass for scores, and one more for the step.
    """

    code = 27
    senders = ("alice", "bob")

    vector: EncryptedVector


@dataclass(frozen=True, slots=True)
class SharedProduct(NumberedMessage):
    """The sender's columns times a ``SharedVector``, every entry under a mask."""

    code = 28
    senders = ("alice", "bob")

    answer: EncryptedAnswer


@dataclass(frozen=True, slots=True)
class Segments(NumberedMessage):
    """Numbers of Bob's shares under his key: whether a part lies in the middle half of its ring.

    They are of weights, and of residues modulo a small prime. Where a loss is opened also digits of
    shares, and the segments of scores: ``iteration`` is the number of passes more then, and twice
    that.
    """

    code = 30
    senders = ("bob",)

    marks: EncryptedVector


@dataclass(frozen=True, slots=True)
class CarryShares(NumberedMessage):
    """What Alice's shares make of ``Segments``, masked: his shares of carries or products."""

    code = 31
    senders = ("alice",)

    answer: EncryptedAnswer


@dataclass(frozen=True, slots=True)
class HeldOutScoring(Message):
    """Whether Alice opens scores of the held-out rows at the end: 1, or 0 beyond her limit."""

    code = 47
    senders = ("alice",)

    opened: int


@dataclass(frozen=True, slots=True)
class HeldOutQuality(Message):
    """Metrics of the model on the held-out rows, in whole per cent: a release."""

    code = 32
    senders = ("bob",)

    quality: Released[IntArray]


@dataclass(frozen=True, slots=True)
class GivenShare(Message):
    """Alice's share of Bob's weights in clear, after the last iteration."""

    code = 29
    senders = ("alice",)

    share: ShareNumbers = field(repr=False)


@dataclass(frozen=True, slots=True)
class Introduction(Message):
    """One of several Alices: her half of the keys with the others, and what binds her nonce.

    ``spread_bits`` is the size of her columns together, as a power of two, where that is needed.
    """

    code = 33
    senders = ("alice",)

    exchange_key: PublicBytes = field(repr=False)
    commitment: PublicBytes = field(repr=False)
    public_key: PublicBytes = field(repr=False)
    spread_bits: int


@dataclass(frozen=True, slots=True)
class Roster(Message):
    """All introductions, as Bob hands them to each Alice: one text for all."""

    code = 34
    senders = ("bob",)

    text: str


@dataclass(frozen=True, slots=True)
class Endorsement(Message):
    """An Alice's nonce, and her signature of the roster."""

    code = 35
    senders = ("alice",)

    nonce: PublicBytes = field(repr=False)
    signature: PublicBytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Endorsements(Message):
    """All nonces and signatures, in the roster's order."""

    code = 36
    senders = ("bob",)

    text: str


@dataclass(frozen=True, slots=True)
class MaskedScores(NumberedMessage):
    """``X_A w_A`` of one of several Alices, modulo 2^64, under masks that the others' cancel."""

    code = 37
    senders = ("alice",)

    scores: ShareNumbers = field(repr=False)
