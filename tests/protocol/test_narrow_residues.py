"""Residues from an exchange modulo a small prime: their error, the model, and what is sent."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest

from taciturn.crypto.base import Scheme
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.bfv.parameters import DEGREE
from taciturn.crypto.clear import ClearScheme
from taciturn.numerics.likelihood import label_likelihood, weighted_likelihood
from taciturn.numerics.shared_fraction import Carried, Widening
from taciturn.numerics.whole_table import fit_on_schedule
from taciturn.privacy.row_noise import OPENING_ROWS
from taciturn.protocol.messages import (
    CarryShares,
    LossShares,
    Phases,
    ResidueShares,
    Segments,
    SharedVector,
)
from taciturn.protocol.mutual import Columns
from taciturn.protocol.mutual_table import TablePlan
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from tests.protocol.parties import Tables
from tests.protocol.stars import Star, StarTalk, converse
from tests.protocol.test_conversations import agreed, complement

CLEAR, BFV = ClearScheme(), BfvScheme()
MANY = Tables.make(rows=400, alice=3, bob=2, intercept=True)


def plan_of(rows: int, scheme: Scheme = CLEAR, **changes: Any) -> TablePlan:
    terms = Terms(agreed("mutual-table", scheme, **changes), scheme)
    return TablePlan.from_terms(terms, rows, Columns(4, 4), Columns(4, 4))


def train(tables: Tables, scheme: Scheme = CLEAR, **changes: Any) -> StarTalk:
    terms = agreed("mutual-table", scheme, batch_size=tables.labels.rows, **changes)
    return converse(Star.of(tables, terms, 1, scheme))


def test_the_first_pass_needs_no_sigmoid_and_summed_losses_and_few_rows_the_large_prime():
    few, many = plan_of(400, epochs=6), plan_of(OPENING_ROWS, epochs=6)
    assert [few.is_narrow(number) for number in range(6)] == [False] + [True] * 5
    assert [many.is_narrow(number) for number in range(6)] == [False] + [True] * 3 + [False] * 2
    for plan in (few, many):
        assert [plan.at_zero(number) for number in range(6)] == [True] + [False] * 5
    assert not any(plan_of(255, epochs=6).is_narrow(number) for number in range(6))
    summed_at_once = plan_of(OPENING_ROWS, epochs=2)
    assert not summed_at_once.at_zero(0)


def test_a_light_class_has_the_large_prime_whose_digits_it_needs():
    assert plan_of(400, epochs=6, class_weight=(0.25, 1.0)).is_narrow(2)
    assert not plan_of(400, epochs=6, class_weight=(0.01, 1.0)).is_narrow(2)


def test_linear_scores_have_twice_the_ring():
    """The carry that scales them down is exact in half of it."""
    plan = plan_of(400, epochs=6, family="gaussian")
    assert plan.scales.score_bound / 2 > plan.sums.score_range


def residues(plan: TablePlan, scores: np.ndarray, factor: float) -> np.ndarray:
    """Both sides' integers, from random shares of scores to the sum of shares of residues."""
    coins, sigmoid, bits = KeyedEntropy.from_seed(4), plan.sigmoid_in(1), plan.scales.modulus_bits
    left = np.int64(64 - bits)
    hers = (coins.words(len(scores)).view(np.int64) << left) >> left
    whole = np.rint(scores / plan.scales.score_unit).astype(np.int64)
    his = ((whole - hers) << left) >> left
    phases = sigmoid.phases(his, np.full(len(scores), factor))
    products = (phases * sigmoid.table(hers, coins.fork("table"))).sum(axis=1)
    modulus = plan.narrow.modulus
    assert np.abs(products).max() < modulus // 4
    mask = coins.integers(modulus, len(scores))
    sides = [plan.widening(raises=raises) for raises in (True, False)]
    other = ((products - mask.view(np.int64)) % modulus).view(np.uint64)
    parts = [side.parts(one) for side, one in zip(sides, (mask, other), strict=True)]
    factors = [side.carry.factors(part) for side, part in zip(sides, parts, strict=True)]
    carried = [np.zeros(len(scores), dtype=np.int64), (factors[0] * factors[1])[:, 0]]
    shares = [
        side.widened(Carried(part, side.carry.completed(carry, part)))
        for side, part, carry in zip(sides, parts, carried, strict=True)
    ]
    return (shares[0] + shares[1]) / plan.sigmoid.step


@pytest.mark.parametrize("rows", [400, 39_073, 120_000, 1_000_000])
@pytest.mark.parametrize("factor", [1.0, -0.25])
def test_the_error_of_a_residue_is_that_of_the_formula(rows, factor):
    plan = plan_of(rows, epochs=28, class_weight=(0.25, 1.0))
    scores = np.linspace(-64.0, 64.0, 20_001)
    sigmoid = plan.sigmoid_in(1)
    error = residues(plan, scores, factor) - factor * (sigmoid.sigmoid(scores) - 0.5)
    # Hers grow with the factor, his do not; the widening is off by two units at most.
    stated = sigmoid.rounding
    unit = 2.0 / plan.sigmoid.step
    assert error.std() < 1.1 * stated + unit
    if factor == 1.0:
        assert error.std() > stated / 2
    assert abs(error.mean()) < 5 * stated / np.sqrt(len(scores)) + unit
    assert stated < 0.02


@pytest.mark.parametrize("weights", [None, (0.3, 1.0)], ids=["alike", "weighted"])
def test_the_model_is_that_of_the_schedule_in_clear_and_the_same_under_both_schemes(weights):
    changes = {"epochs": 12, "l2": 0.01, "sigmoid_error": 1e-5, "class_weight": weights}
    clear, encrypted = (train(MANY, scheme, **changes) for scheme in (CLEAR, BFV))
    assert clear.weights.tolist() == encrypted.weights.tolist()
    likelihood = label_likelihood(
        MANY.labels.values, partial(weighted_likelihood, class_weight=weights)
    )
    alice, own, heaviest = MANY.alice.values, MANY.bob.values, max(weights or (1.0,))
    fit = fit_on_schedule(alice, own, likelihood, 0.01, MANY.free, 12, heaviest)
    assert clear.weights == pytest.approx(np.concatenate([fit.alice, fit.own]), abs=2e-3)


def test_messages_are_counted_and_sized_as_planned():
    tables = Tables.make(rows=700, alice=4, bob=3, intercept=True)
    talk = train(tables, BFV, epochs=3)
    plan = plan_of(700, BFV, epochs=3)
    kinds = Counter(type(message) for message in talk.said_by("alice"))
    # Carries of weights in all passes, of residues in the two narrow ones.
    assert kinds[ResidueShares] == 2
    # What tells nothing is not counted in what is told.
    answers = sum(kinds[kind] for kind in (ResidueShares, LossShares, CarryShares))
    assert len(plan.slot_answers) == answers - 2
    sizes = Counter(len(m.phases.data) for m in talk.said_by("bob") if isinstance(m, Phases))
    assert sizes[12 * DEGREE + 32] == 2 * -(-plan.sigmoid.entries // (DEGREE // 700))
    marks = [m.marks.length for m in talk.said_by("bob") if isinstance(m, Segments)]
    assert marks.count(700) == 2


def test_alice_s_shares_are_the_same_with_complementary_labels():
    """Bit by bit, in the clear scheme: her vectors hold her shares of residues and of points."""
    said = [
        [
            m.vector.data
            for m in train(tables, epochs=6).said_by("alice")
            if isinstance(m, SharedVector)
        ]
        for tables in (MANY, complement(MANY))
    ]
    assert len(said[0]) == 11
    assert said[0] == said[1]
    # From the second pass on they are masks of hers, and not zeros.
    assert len(set(said[0])) == len(said[0])


def test_what_bob_decrypts_of_residues_and_their_carries_is_uniform():
    talk = train(MANY, epochs=12)
    plan = plan_of(400, epochs=12)
    said = list(talk.said_by("alice"))
    narrow = [m.answer for m in said if isinstance(m, ResidueShares)][:9]
    carries = [m.answer for m in said if isinstance(m, CarryShares) and m.answer.length == 400]
    for answers, modulus in ((narrow, plan.narrow.modulus), (carries, plan.slots.modulus)):
        words = np.concatenate([np.frombuffer(one.data, dtype="<u8") for one in answers])
        counts = np.bincount((words * (8.0 / modulus)).astype(np.int64), minlength=8)
        expected = counts.sum() / 8
        # Chi-squared with 7 degrees of freedom: above 30 once in 10,000 times.
        assert ((counts - expected) ** 2 / expected).sum() < 30


def test_a_widening_keeps_the_whole_residue_of_the_largest_ring():
    widening = plan_of(1_000_000, epochs=28).widening(raises=True)
    assert isinstance(widening, Widening)
    assert widening.factor * widening.modulus < 2.0**52
