"""Results of the programs of a training, as far as each party knows them.

Events (``taciturn.protocol.events``) are for what happens on the way. Whatever is true at the end
is here, so that nobody has to gather it while a program runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Self

from taciturn.arrays import FloatArray, IntArray
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.numerics.symmetry import OpenedPasses
from taciturn.numerics.whitening import Whitening
from taciturn.protocol.masks import ALONE, GroupShape, PairwiseMasks
from taciturn.protocol.scales import Scales
from taciturn.protocol.state import TrainingState


class StopReason(Enum):
    """Reason why a training ended before its last iteration; the value is a description."""

    LOSS = "the held-out loss has stopped falling"
    BUDGET = "the privacy budget is spent"
    PEER = "the peer ended the training"


@dataclass(frozen=True, slots=True)
class WeightShare:
    """One party's share of one side's weights: integers modulo ``2^scales.modulus_bits``.

    Alone they say nothing. ``whitening`` has the coordinates of the weights, which Alice alone
    knows; None where they are those of her columns, and at Bob. No value of the training table in
    them exceeded ``2^magnitude_bits``.
    """

    values: IntArray = field(repr=False)
    scales: Scales
    whitening: Whitening | None = field(default=None, repr=False)
    magnitude_bits: int = 0


@dataclass(frozen=True, slots=True)
class Trained:
    """One party's training at its end.

    ``weights`` is empty at an Alice whose weights stay shared. ``iterations`` count those before a
    resumption too. ``stopped`` is None where the training went to its end. ``share`` and
    ``bob_share`` are the party's shares of Alice's and of Bob's weights. ``pairwise_masks`` is what
    one of several Alices knows of the others: scores of her model need masks too. ``means`` are
    those of this party's training columns, where it centred them. ``further`` are the models of the
    other penalties, where several share one search.
    """

    weights: FloatArray = field(repr=False)
    iterations: int
    stopped: StopReason | None = None
    share: WeightShare | None = None
    bob_share: WeightShare | None = None
    pairwise_masks: PairwiseMasks | None = field(default=None, repr=False)
    group_shape: GroupShape = ALONE
    further: tuple[Trained, ...] = ()
    means: FloatArray | None = field(default=None, repr=False)

    @classmethod
    def from_state(
        cls,
        state: TrainingState,
        weights: FloatArray,
        iterations: int,
        stopped: StopReason | None = None,
    ) -> Self:
        """A training's end, with what its state knows of other Alices."""
        return cls(
            weights,
            iterations,
            stopped,
            pairwise_masks=state.pairwise_masks,
            group_shape=state.group_shape,
        )


@dataclass(frozen=True, slots=True)
class BobTrained(Trained):
    """Bob's training at its end.

    ``suspected_wraps`` counts decrypted scores near the end of their range, so that some may have
    wrapped. It depends on labels: only he may know. ``redraws`` counts the draws of hidden batches
    that were too short, since the program was started. ``opened`` is what he asked and was answered
    in all passes, in exact integers; he tests it after the last message. None where nothing is
    exact. ``losses`` are mean training losses where several penalties share one search: those after
    the turns of its penalty, and at the end. ``opened_change`` is the decrease of the mean training
    loss between the last two passes, and ``scores_beyond_range`` the least number of scores that
    may not have fitted; each is opened with noise where nobody sees scores, and None where it is
    not.
    """

    suspected_wraps: int = 0
    redraws: int = 0
    opened: OpenedPasses | None = field(default=None, repr=False, compare=False)
    losses: tuple[float, ...] = field(default=(), repr=False)
    opened_change: float | None = None
    scores_beyond_range: int | None = None


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Bob's part of the held-out rows."""

    features: FeatureTable
    labels: LabelTable
