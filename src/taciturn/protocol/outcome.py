"""What the programs of a training return: its results, as far as each party knows them.

Events (``taciturn.protocol.events``) are for what happens on the way. Whatever is true at the end
is here, so that nobody has to gather it while a program runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from taciturn.arrays import FloatArray, IntArray
from taciturn.numerics.symmetry import OpenedPasses
from taciturn.numerics.whitening import Whitening
from taciturn.protocol.circle import ALONE, Circle, Company
from taciturn.protocol.scales import Scales


class StopReason(Enum):
    """Why a training ended before its last iteration; the value says it in words."""

    LOSS = "the held-out loss has stopped falling"
    BUDGET = "the privacy budget is spent"
    PEER = "the peer ended the training"


@dataclass(frozen=True, slots=True)
class WeightShare:
    """One party's share of one side's weights, where they are shared.

    Args:
        values: Integers modulo ``2^scales.modulus_bits``; alone they say nothing.
        scales: What they count; both parties have the same.
        whitening: The coordinates of the weights, which Alice alone knows; None where they are
            those of her columns, and at Bob.
        magnitude_bits: No value of the training table in them exceeded two to this.
    """

    values: IntArray = field(repr=False)
    scales: Scales
    whitening: Whitening | None = field(default=None, repr=False)
    magnitude_bits: int = 0


@dataclass(frozen=True, slots=True)
class Trained:
    """One party's training at its end.

    Args:
        weights: The party's own, one per column; Alice has none where hers stay shared.
        iterations: How many were done in all, those before a resumption included.
        stopped: Why there were not more; None where the training went to its end.
        share: The party's share of Alice's weights, where they are shared.
        bob_share: Its share of Bob's, where those are shared too.
        circle: What one of several Alices knows of the others: scores of her model need masks too.
        company: What all sides know of several Alices.
    """

    weights: FloatArray = field(repr=False)
    iterations: int
    stopped: StopReason | None = None
    share: WeightShare | None = None
    bob_share: WeightShare | None = None
    circle: Circle | None = field(default=None, repr=False)
    company: Company = ALONE


@dataclass(frozen=True, slots=True)
class BobTrained(Trained):
    """Bob's training at its end.

    Args:
        suspected_wraps: How many decrypted scores lay near the end of their range, so that some may
            have wrapped. It depends on labels: only he may know.
        redraws: How many draws of hidden batches he threw away for being too short, counted from
            where the program was started.
        opened: What he asked and was answered in all passes, in exact integers; he tests it when
            the last word has been said. None where nothing is exact.
    """

    suspected_wraps: int = 0
    redraws: int = 0
    opened: OpenedPasses | None = field(default=None, repr=False, compare=False)
