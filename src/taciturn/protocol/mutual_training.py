"""A ``mutual`` training on the shares of one party: what both sides do alike.

The chart of messages stands in ``taciturn.protocol.mutual_table``. A side brings its half of the
products number by number (``SlotSide``), its keys, and its table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, TypeVar

import numpy as np

from taciturn.arrays import FloatArray, IntArray, WordArray
from taciturn.crypto.base import SlotPublicKey, SlotScheme, SlotSecretKey, Wrapping
from taciturn.numerics.shared_fraction import Carried, Carry, Widening
from taciturn.protocol.events import Boundary, Progress
from taciturn.protocol.mutual import Numbers, ring_words, shares_modulo_power
from taciturn.protocol.mutual_sums import SharedSums
from taciturn.protocol.mutual_table import Anchor, Point, TablePlan, Tables
from taciturn.protocol.state import MutualState, TrainingState
from taciturn.protocol.steps import Program, emit
from taciturn.rng import Entropy

K = TypeVar("K", SlotPublicKey, SlotSecretKey)
NO_LOSSES: WordArray = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class SlotSide(ABC, Generic[K]):
    """One side of the exchanges number by number, under Bob's keys.

    ``key`` is for all numbers, ``narrow`` for those modulo a small prime. ``is_alice`` tells which
    of the two subtracts the modulus.
    """

    is_alice: ClassVar[bool]

    plan: TablePlan
    key: K
    narrow: K
    ring: Wrapping
    entropy: Entropy

    def residues(
        self, number: int, scores: IntArray, halves: FloatArray
    ) -> Program[tuple[IntArray, WordArray]]:
        """This side's share of a step's residues: the labels less the shared sigmoid.

        ``halves`` are the residues of scores of zero: half the weight of a row's class, with the
        label's sign; zeros at Alice. In a step that sums the loss also this side's shares of the
        rows' losses, modulo p.
        """
        plan = self.plan
        labels = np.rint(halves * plan.sigmoid.step).astype(np.int64)
        if plan.at_zero(number):
            return labels, NO_LOSSES
        if plan.linear:
            words = ring_words(scores, plan.scales.modulus_bits)
            scaled = yield from self._widened(number, words, plan.score_scaling(self.is_alice))
            return self.ring.centred(labels - scaled), NO_LOSSES
        if not plan.is_narrow(number):
            sums, losses = yield from self._waves(number, scores, halves, self.key, plan.slots)
            return self.ring.centred(self._whole(sums) + labels), losses
        sums, losses = yield from self._waves(number, scores, halves, self.narrow, plan.narrow)
        widened = yield from self._widened(number, sums, plan.widening(self.is_alice))
        return self.ring.centred(widened + labels), losses

    def _widened(self, number: int, words: WordArray, widening: Widening) -> Program[IntArray]:
        parts = widening.parts(words)
        carries = yield from self.carries("residues", number, widening.carry, parts)
        return widening.widened(Carried(parts, carries))

    def carries(
        self, purpose: str, number: int, carry: Carry, parts: IntArray
    ) -> Program[IntArray]:
        """This side's share of the carries of parts."""
        factors = carry.factors(parts)
        products = yield from self.shared_products(
            purpose, number, factors.shape, lambda rows: factors[rows]
        )
        return carry.completed(self._whole(products), parts)

    def _whole(self, sums: WordArray) -> IntArray:
        return shares_modulo_power(sums, self.plan.slots.modulus, self.ring, negate=self.is_alice)

    @abstractmethod
    def _waves(
        self, number: int, scores: IntArray, halves: FloatArray, key: K, slots: SlotScheme
    ) -> Program[tuple[WordArray, WordArray]]:
        """This side's shares of the sigmoids, and of losses, modulo the prime."""

    @abstractmethod
    def shared_products(
        self, purpose: str, number: int, shape: tuple[int, ...], numbers: Numbers
    ) -> Program[WordArray]:
        """This side's shares, modulo the prime, of each row's sum of products of both's numbers.

        ``shape`` has the rows and the numbers of each. ``purpose`` is one of its kind in a step.
        """


def first_state(
    plan: TablePlan, state: TrainingState, key: bytes, waves: bytes, narrow: bytes
) -> TrainingState:
    """The state before the first pass: keys, and shares of zero weights."""
    hers, start = plan.alice.count, Point.start(plan.alice.count + plan.bob.count)
    mutual = MutualState(
        plan.bob.bits,
        start.ahead[hers:],
        waves,
        narrow,
        start.products,
        start.carries,
        start.slope,
        start.sums,
    )
    return replace(state, key=key, share=start.ahead[:hers], mutual=mutual)


@dataclass(frozen=True, slots=True)
class SharedTraining(Generic[K]):
    """One side's training: its tables, its products number by number, and the opened sums."""

    plan: TablePlan
    tables: Tables
    slots: SlotSide[K]
    sums: SharedSums

    def run(self, state: TrainingState, halves: FloatArray) -> Program[Point]:
        """Run all steps from a state on; return the shares at the end. Frees the tables.

        ``halves`` are the residues of scores of zero, in the public order of the rows.
        """
        plan, slots, sums = self.plan, self.slots, self.sums
        ring, fraction, schedule = slots.ring, sums.fraction, plan.schedule
        point, anchor = Point.from_state(state), Anchor.start(schedule, ring)
        try:
            for number in range(schedule.first_step(state.iteration), plan.steps):
                done = schedule.resumes_after(number)
                if done is not None:
                    yield from emit(Boundary(point.kept(state, done)))
                scores = yield from self.tables.shared_scores(number, point.ahead)
                due = halves[schedule.rows_of(number)]
                residues, even = yield from slots.residues(number, scores, due)
                rows, points = anchor.changes(number, residues, point.ahead)
                products = yield from self.tables.shared_steps(number, rows, points)
                anchor, products = anchor.following(number, residues, point.ahead, products)
                divided = point.divided(fraction, products)
                carries = yield from slots.carries("weights", number, fraction.carry, divided)
                point = yield from point.summed(number, sums, products, carries, scores, even)
                momentum = schedule.momentum(number)
                point = point.following(fraction, ring, momentum, products, carries)
                passes = schedule.passes_done(number + 1)
                if not slots.is_alice and passes > schedule.passes_done(number):
                    yield from emit(Progress(passes, plan.terms.rounds))
        finally:
            self.tables.close()
        return point
