"""Sums over rows of a bounded function of shared scores, against the same in the clear."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from taciturn.arrays import FloatArray
from taciturn.crypto.base import Scheme
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.clear import ClearScheme
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.engine.pair import run_pair
from taciturn.errors import AgreementError, RemoteProtocolError
from taciturn.numerics.bounded_waves import CAP, RowFunctions, capped_loss
from taciturn.privacy.noise import log_mass, scale
from taciturn.privacy.openings import STUDY_SUM_BITS
from taciturn.protocol.alice import row_sums as alices
from taciturn.protocol.bob import row_sums as bobs
from taciturn.protocol.codec import decode
from taciturn.protocol.messages import CarryShares, Message, OpenedSums, SharedProduct
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.row_sums import RowSumPlan, noisy_shares, opened_losses
from taciturn.protocol.scales import Scales
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from tests.protocol.parties import ALICE, BOB
from tests.protocol.test_conversations import agreed

CLEAR, BFV = ClearScheme(), BfvScheme()
NOISE_ROWS = 16


@dataclass(frozen=True)
class Setup:
    """Random weights in shares, and rows with labels."""

    terms: Terms
    plan: RowSumPlan
    alice: FeatureTable
    bob: FeatureTable
    labels: LabelTable
    shares: dict[str, WeightShare]
    scores: FloatArray

    @classmethod
    def make(
        cls, rows: int = 300, scheme: Scheme = CLEAR, size: float = 1.0, family: str = "binomial"
    ) -> Setup:
        rng = np.random.default_rng(5)
        agreement = agreed("mutual-table", scheme, family=family)
        terms = Terms(agreement, scheme)
        plan, scales = RowSumPlan.from_terms(terms, rows), Scales.for_shared_table(agreement, rows)
        hers, his = rng.normal(size=(rows, 3)), rng.normal(size=(rows, 2))
        weights = [rng.normal(size=3) * size, rng.normal(size=2) * size]
        unit = scales.factor * 2.0**-scales.weight_bits
        shares = dict[str, WeightShare]()
        for name, values in zip(("alice's", "bob's"), weights, strict=True):
            whole = np.rint(values / unit).astype(np.int64)
            mask = scales.ring(1, 1).draw(len(whole), KeyedEntropy.from_seed(len(whole)))
            left = scales.ring(1, 1).centred(whole - mask)
            shares |= {
                f"{name} at alice": WeightShare(mask, scales, None, 3),
                f"{name} at bob": WeightShare(left, scales, None, 3),
            }
        scores = hers @ weights[0] + his @ weights[1]
        if family == "binomial":
            labels = LabelTable.from_data((scores + rng.normal(size=rows) > 0).astype(np.int8))
        else:
            labels = LabelTable.from_data(scores + rng.normal(size=rows), family=family)
        alice, bob = (
            FeatureTable.from_data(values, columns=[f"{name}{j}" for j in range(values.shape[1])])
            for name, values in (("a", hers), ("b", his))
        )
        return cls(terms, plan, alice, bob, labels, shares, scores)

    def programs(self, shift: float = 0.0, plan: RowSumPlan | None = None) -> tuple[Any, Any]:
        functions = RowFunctions.from_losses(self.plan.waves, self.labels, shift)
        shares = self.shares
        return (
            alices.shared_sum(
                self.plan,
                shares["alice's at alice"],
                shares["bob's at alice"],
                self.terms,
                self.alice,
                ALICE,
            ),
            bobs.shared_sum(
                plan or self.plan,
                shares["alice's at bob"],
                shares["bob's at bob"],
                self.terms,
                self.bob,
                functions,
                BOB,
            ),
        )

    def total(self, shift: float = 0.0) -> tuple[float, list[tuple[str, Message]]]:
        """The sum that both shares make, without noise, and all messages."""
        said = list[tuple[str, Message]]()
        hers, his = run_pair(
            *self.programs(shift), tap=lambda who, frame: said.append((who, decode(frame)))
        )
        whole = (hers + his) % self.plan.slots.modulus
        half = self.plan.slots.modulus // 2
        whole = whole - self.plan.slots.modulus if whole > half else whole
        return whole / self.plan.numbers.unit, said


@pytest.mark.parametrize("scheme", [CLEAR, BFV], ids=["clear", "bfv"])
def test_the_sum_is_that_of_the_capped_losses_in_the_clear(scheme):
    setup = Setup.make(300 if scheme is CLEAR else 40, scheme)
    total, _ = setup.total()
    waves, signs = setup.plan.waves, 2.0 * setup.labels.values - 1.0
    # Roundings: far below one row. The waves themselves: below a hundredth a row, alternating.
    assert total == pytest.approx(float(waves(signs * setup.scores).sum()), abs=0.01)
    exact = float(capped_loss(setup.scores, setup.labels).sum())
    assert abs(total - exact) < 0.01 * len(setup.scores)


def test_scores_that_wrap_leave_the_sum_within_its_bounds():
    setup = Setup.make(size=400.0)
    total, _ = setup.total()
    assert np.abs(setup.scores).max() > 200
    assert 0 < total < CAP * len(setup.scores)


def test_squared_residues_are_capped_too():
    setup = Setup.make(family="gaussian")
    total, _ = setup.total()
    exact = float(capped_loss(setup.scores, setup.labels).sum())
    assert abs(total - exact) < 0.01 * len(setup.scores)


def test_a_shift_of_class_weights_is_subtracted_from_the_scores():
    setup = Setup.make()
    total, _ = setup.total(0.8)
    exact = float(capped_loss(setup.scores, setup.labels, 0.8).sum())
    assert abs(total - exact) < 0.01 * len(setup.scores)


def test_more_rows_than_a_piece_or_a_block_has():
    setup = Setup.make(rows=8192 + 700)
    total, said = setup.total()
    exact = float(capped_loss(setup.scores, setup.labels).sum())
    assert abs(total - exact) < 0.01 * len(setup.scores)
    # One exchange of scores in each direction for each 4,096 rows.
    assert Counter(type(message) for _, message in said)[SharedProduct] == 2 * 3


def test_nothing_is_opened_by_the_exchange_itself():
    """What Bob decrypts of the products is uniform, and no message has a sum or a score."""
    setup = Setup.make(rows=2000)
    _, said = setup.total()
    assert not any(isinstance(message, OpenedSums) for _, message in said)
    words = [
        np.frombuffer(message.answer.data, dtype="<u8")
        for _, message in said
        if isinstance(message, CarryShares)
    ]
    drawn = np.concatenate(words)
    assert len(drawn) >= 2000
    counts = np.bincount((drawn >> np.uint64(56)).astype(np.int64), minlength=8)
    expected = counts.sum() / 8
    # Chi-squared with 7 degrees of freedom: above 30 once in 10,000 times.
    assert ((counts - expected) ** 2 / expected).sum() < 30


def test_sides_with_other_units_refuse_each_other():
    setup = Setup.make()
    other = RowSumPlan.from_terms(setup.terms, 70_000_000)
    with pytest.raises(AgreementError):
        run_pair(*setup.programs(plan=other))


# --- noise and opening ----------------------------------------------------------------------------


def plan_of(rows: int) -> RowSumPlan:
    return RowSumPlan.from_terms(Terms(agreed("mutual-table"), CLEAR), rows)


@pytest.mark.parametrize("rows", [1, 600, 8192, 60_000, 500_000, 10_000_000])
def test_sums_with_their_noise_fit_the_modulus(rows):
    plan = plan_of(rows)
    unit, modulus = plan.numbers.unit, plan.slots.modulus
    # The sampler cuts a draw at 128 scales.
    assert (CAP + 0.1) * rows * unit + 128 * NOISE_ROWS * unit < modulus / 2
    # Roundings of all rows together, in rows, by one standard deviation.
    digits = min(plan.numbers.alice_bits, plan.numbers.bob_bits)
    assert math.sqrt(rows * plan.numbers.waves / 2) * 2.0**-digits < 1.0
    # The bits of one opened number, whatever Bob sends in place of waves.
    assert 16 < plan.bits < STUDY_SUM_BITS


def test_the_noise_is_discrete_laplace_of_exactly_sixteen_rows():
    plan = plan_of(8192)
    unit = plan.numbers.unit
    assert scale(plan.noise_divisor) == NOISE_ROWS * unit
    drawn = noisy_shares(plan, [0] * 20_000, KeyedEntropy.from_seed(3))
    half = plan.slots.modulus // 2
    centred = np.where(drawn > half, drawn - plan.slots.modulus, drawn)
    # Bins of 8 rows: the mass of the discrete distribution in each, by its closed form.
    sigma = float(NOISE_ROWS * unit)
    edges = np.array([0, 1, 2, 4, 8, 16, 32]) * 8
    sizes = np.abs(centred) / unit
    counts = np.histogram(sizes, [*edges, np.inf])[0]
    tails = np.exp(-edges * unit / sigma)
    expected = (tails - np.append(tails[1:], 0.0)) * len(sizes)
    # Chi-squared with 6 degrees of freedom: above 28 once in 10,000 times.
    assert ((counts - expected) ** 2 / expected).sum() < 28
    assert abs(np.count_nonzero(centred > 0) - len(sizes) / 2) < 4 * math.sqrt(len(sizes)) / 2
    # Single units: neighbours are as likely as the law says, no digit is without noise.
    steps = log_mass(np.array([0, 1]), sigma)
    assert steps[0] - steps[1] == pytest.approx(1 / sigma, rel=1e-3)
    parity = np.count_nonzero(centred % 2 == 0)
    assert abs(parity - len(sizes) / 2) < 4 * math.sqrt(len(sizes)) / 2


def test_sums_are_opened_together_and_folds_are_added_before():
    plan = plan_of(1000)
    modulus, unit = plan.slots.modulus, plan.numbers.unit
    folds = [(modulus - 5 * unit, 12 * unit), (3 * unit, modulus - 1 * unit)]
    hers, his = (sum(fold[at] for fold in folds) % modulus for at in (0, 1))
    said = list[Message]()
    _, opened = run_pair(
        alices.open_sums(plan, [hers, modulus - 4 * unit], ALICE.fork("opened")),
        bobs.read_sums(plan, [his, 0]),
        tap=lambda _, frame: said.append(decode(frame)),
    )
    assert [type(message) for message in said] == [OpenedSums]
    noise = noisy_shares(plan, [0, 0], ALICE.fork("opened"))
    assert [one.noise_rows for one in opened] == [NOISE_ROWS, NOISE_ROWS]
    for one, exact, drawn in zip(opened, (9, -4), noise.tolist(), strict=True):
        drawn = drawn - modulus if drawn > modulus // 2 else drawn
        assert one.total == pytest.approx(exact + drawn / unit)


def test_another_number_of_sums_is_refused():
    plan = plan_of(1000)
    with pytest.raises(RemoteProtocolError):
        opened_losses(plan, [1, 2], np.array([3], dtype=np.int64))


def test_a_run_again_opens_the_same_numbers():
    """The journal keeps the entropy: a resumed study draws no second noise."""
    plan, shares = plan_of(1000), [5, 6, 7]
    first = noisy_shares(plan, shares, ALICE.fork("opened"))
    assert np.array_equal(first, noisy_shares(plan, shares, ALICE.fork("opened")))
