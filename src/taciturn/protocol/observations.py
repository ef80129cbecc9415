"""Alice's observations: their kinds, and the values of those that she receives.

Her programs emit the values; the view collects them, an attack declares the kinds that it needs,
and an audit names them by the same words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from taciturn.arrays import BoolArray, FloatArray, IndexArray, IntArray
from taciturn.privacy.events import PrivacyEvent
from taciturn.privacy.quality_release import ToldQuality
from taciturn.protocol.events import Event


class Signal(Enum):
    """Kind of Alice's observation; its value is a description."""

    FEATURES = "her own columns"
    WEIGHTS = "her own weights in clear"
    GRADIENTS = "the gradient of each batch in clear"
    RESIDUES = "a noisy residue of each row in clear"
    RESPONSE = "a randomised response about the rows of each batch"
    MOMENTS = "a sum over all rows in clear, once a pass"
    QUALITY = "how good the model is on held-out rows, in whole per cent"


@dataclass(frozen=True, slots=True)
class Observation(Event):
    """An observation of Alice's; ``signal`` is its kind."""

    signal: ClassVar[Signal]

    iteration: int


@dataclass(frozen=True, slots=True)
class GradientSeen(Observation):
    """Alice has unmasked the gradient of a batch: the heart of her view.

    ``gradient`` is ``X^T r`` summed over the rows (not averaged), in exact fixed-point integers:
    the real value is ``gradient / 2^(feature_bits + residue_bits)``. ``weights`` are those with
    which the rows were scored, and ``largest`` bounds the size of an r.
    """

    signal = Signal.GRADIENTS

    epoch: int
    rows: IndexArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    gradient: IntArray = field(repr=False)
    largest: float = 1.0


@dataclass(frozen=True, slots=True)
class HiddenBatchSeen(Observation):
    """Alice was shown a subset of rows and a randomised response about which are meant."""

    signal = Signal.RESPONSE

    subset: IndexArray = field(repr=False)
    response: BoolArray = field(repr=False)


@dataclass(frozen=True, slots=True)
class ResiduesSeen(Observation):
    """Alice received a noisy residue for each row of a batch, at their real scale."""

    signal = Signal.RESIDUES

    epoch: int
    rows: IndexArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    residues: FloatArray = field(repr=False)
    event: PrivacyEvent


@dataclass(frozen=True, slots=True)
class MomentsSeen(Observation):
    """Alice has unmasked a product of her whole table: ``T^T a``, d exact integers.

    ``iteration`` is the number of the pass. ``table`` is T, her whitened columns as integers at
    scale ``2^table_bits``, the same array in every pass; a is Bob's number for each row at scale
    ``2^vector_bits``. The last product, ``final``, is the model: her weights in whitened columns.
    Those of one of several Alices are not whitened, but divided by a public number.
    """

    signal = Signal.MOMENTS

    table: IntArray = field(repr=False)
    product: IntArray = field(repr=False)
    table_bits: int
    vector_bits: int
    final: bool = False


@dataclass(frozen=True, slots=True)
class ShareRevealed(Observation):
    """Bob has revealed his share of Alice's weights: she has them in clear."""

    signal = Signal.WEIGHTS

    weights: FloatArray = field(repr=False)


@dataclass(frozen=True, slots=True)
class QualityTold(Observation):
    """Bob has told how good the model is; ``iteration`` is beyond the last one."""

    signal = Signal.QUALITY

    quality: ToldQuality
