"""Bob's symmetry check: exact, silent on the wire, and what it finds of an Alice who deviates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taciturn
from taciturn.arrays import IntArray
from taciturn.engine.pair import run_pair
from taciturn.numerics.symmetry import OpenedPasses
from tests.deviating import SEALED_ALICES, Answers, Setup, answering_alice, symmetry_of


@pytest.fixture(scope="module")
def setup() -> Setup:
    return Setup.of(mechanism="sealed", solver="newton")


@pytest.mark.parametrize("name", SEALED_ALICES)
def test_which_alices_it_finds(setup, name):
    answers, passes = SEALED_ALICES[name]
    tested = symmetry_of(answers, setup)
    assert tested.passed is passes
    assert (tested.largest == 0) is passes


@pytest.mark.parametrize(
    "options",
    [
        {"mechanism": "sealed"},
        {"mechanism": "sealed", "scheme": "bfv", "passes": 3},
        {"mechanism": "label-rr", "epsilon": 1.0, "base_mechanism": "sealed"},
    ],
    ids=str,
)
def test_it_passes_those_who_keep_to_the_protocol(options):
    setup = Setup.of(solver="newton", **options)
    _, bob = run_pair(setup.alice(), setup.bob())
    assert bob.opened is not None
    assert bob.opened.symmetry().largest == 0


@pytest.mark.parametrize(
    "options",
    [
        {"mechanism": "none"},
        {"mechanism": "mutual"},
        {"mechanism": "sealed", "passes": 1},
        {"mechanism": "sealed", "reveal": True, "reveal_epsilon": 1.0},
    ],
    ids=str,
)
def test_where_nothing_is_exact_nothing_is_tested(options):
    setup = Setup.of(solver="newton", **options)
    _, bob = run_pair(setup.alice(), setup.bob())
    assert bob.opened is None


def frames(setup: Setup, answers: Answers) -> list[tuple[str, int]]:
    """Who sent how much, in order."""
    sent: list[tuple[str, int]] = []

    def tap(sender: str, frame: bytes) -> None:
        sent.append((sender, len(frame)))

    run_pair(answering_alice(setup.alice_inputs(), answers), setup.bob(), tap=tap)
    return sent


def test_bob_sends_the_same_whatever_he_will_find(setup):
    honest, altered = (
        frames(setup, SEALED_ALICES[name][0])
        for name in ("keeps to the protocol", "adds one unit to one score of one row in one pass")
    )
    assert honest == altered


def opened(modulus_bits: int) -> tuple[IntArray, IntArray]:
    """Directions and scores of a random table, so large that scores wrap."""
    generator = np.random.default_rng(3)
    table = generator.integers(-(2**18), 2**18, (300, 5))
    asked = generator.integers(-(2**22), 2**22, (6, 300))
    exact = asked.astype(object) @ table @ table.T
    half = 1 << (modulus_bits - 1)
    wrapped = (exact + half) % (2 * half) - half
    assert np.count_nonzero(wrapped != exact) > 100
    return asked, wrapped.astype(np.int64)


@pytest.mark.parametrize("modulus_bits", [50, 59])
def test_scores_that_wrapped_raise_no_alarm_and_one_unit_does(modulus_bits):
    asked, answered = opened(modulus_bits)
    directions = tuple(asked / 2.0**20)
    assert OpenedPasses(directions, tuple(answered), 20, modulus_bits).symmetry().largest == 0
    answered[2, 17] += 1
    others = np.delete(asked[:, 17], 2)
    tested = OpenedPasses(directions, tuple(answered), 20, modulus_bits).symmetry()
    assert tested.largest == np.abs(others).max()


@pytest.mark.parametrize("even", [True, False])
def test_half_of_the_modulus_shows_where_a_row_has_an_odd_number_in_another_pass(even):
    generator = np.random.default_rng(4)
    table, asked = generator.integers(-9, 9, (30, 5)), generator.integers(-9, 9, (6, 30))
    asked[:, 17] = 4 if even else 5
    answered = asked @ table @ table.T
    answered[2, 17] += 1 << 49
    tested = OpenedPasses(tuple(asked / 1.0), tuple(answered), 0, 50).symmetry()
    assert tested.passed is even


def test_the_masks_of_several_alices_cancel():
    options: dict[str, Any] = {"dataset": "breast-cancer", "scheme": "clear", "seed": 1}
    run = taciturn.train(**options, mechanism="sealed", solver="newton", parties=3)
    assert run.to_dict()["symmetry"] == {"largest": 0, "passed": True}
