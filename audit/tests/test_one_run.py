"""The one-run bound against the paper's figures, a slow oracle, and runs of known epsilon."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from audit.tests.test_epsilon_bound import most_alarms
from scipy import special

from taciturn.errors import ConfigError
from taciturn.rng import KeyedEntropy

# private: the p-value for itself, against exact binomials
from taciturn_audit.evidence import _fair_p_value, one_run_epsilon
from tests.expected import refused


def naive_p_value(
    correct: int, chances: list[float], canaries: int, delta: float, prior: float
) -> float:
    """The formulas word by word: the law of W guess by guess, alpha by its definition."""
    law = [1.0]
    for q in chances:
        law = [
            (law[k] * (1 - q) if k < len(law) else 0.0) + (law[k - 1] * q if k else 0.0)
            for k in range(len(law) + 1)
        ]
    beta = math.fsum(law[correct:])
    if prior != 0.5:
        return beta + 2 * prior * (1 - prior) * canaries * delta
    alpha = max(
        (math.fsum(law[correct - i : correct]) / i for i in range(1, correct + 1)), default=0.0
    )
    return beta + alpha * delta * 2 * canaries


def naive_epsilon(
    correct: int,
    guesses: int,
    canaries: int,
    delta: float = 0.0,
    failure: float = 0.05,
    prior: float = 0.5,
    ones: int = 0,
) -> float:
    """The first epsilon, in steps of 0.005, that the guesses do not refute."""
    eps = 0.0
    while True:
        q_1 = prior * math.exp(eps) / (prior * math.exp(eps) + 1 - prior)
        q_0 = (1 - prior) * math.exp(eps) / ((1 - prior) * math.exp(eps) + prior)
        chances = [q_1] * ones + [q_0] * (guesses - ones)
        if naive_p_value(correct, chances, canaries, delta, prior) >= failure:
            return eps
        eps += 0.005


@pytest.mark.parametrize(
    ("correct", "guesses", "canaries", "delta", "printed"),
    [(75, 100, 1000, 1e-4, 0.673), (1439, 1510, 100_000, 1e-5, 2.675)],
)
def test_the_figures_of_the_paper(
    correct: int, guesses: int, canaries: int, delta: float, printed: float
):
    """[SteinkeNJ23, v1]: App. D, and Sec. 7, which cuts 2.6759 off after three digits."""
    bound = one_run_epsilon(correct, guesses, canaries=canaries, delta=delta)
    assert bound == pytest.approx(printed, abs=1e-3)


@pytest.mark.parametrize(
    "case",
    [
        {"correct": 30, "guesses": 40, "canaries": 40},
        {"correct": 40, "guesses": 40, "canaries": 50, "failure": 0.01},
        {"correct": 30, "guesses": 40, "canaries": 100, "delta": 1e-3},
        {"correct": 33, "guesses": 40, "canaries": 60, "delta": 0.01},
        {"correct": 58, "guesses": 60, "canaries": 200, "delta": 0.01, "failure": 0.2},
        {"correct": 1, "guesses": 1, "canaries": 1, "failure": 0.6},
        {"correct": 30, "guesses": 40, "canaries": 40, "prior": 0.3, "ones": 12},
        {"correct": 38, "guesses": 40, "canaries": 40, "prior": 0.8, "ones": 31},
        {"correct": 38, "guesses": 40, "canaries": 60, "prior": 0.8, "ones": 31, "delta": 1e-4},
        {"correct": 12, "guesses": 12, "canaries": 60, "prior": 0.1, "ones": 12},
        {"correct": 39, "guesses": 40, "canaries": 60, "prior": 0.1, "ones": 0},
    ],
)
def test_a_slow_oracle_agrees(case: dict[str, Any]):
    bound = one_run_epsilon(**case)
    assert bound == pytest.approx(naive_epsilon(**case), abs=0.0051)


def test_pure_and_fair_has_a_closed_form():
    q = special.betaincinv(80, 21, 0.05)
    bound = one_run_epsilon(80, 100, canaries=300)
    assert bound == pytest.approx(math.log(q / (1 - q)), abs=1e-9)
    almost = one_run_epsilon(80, 100, canaries=300, prior=math.nextafter(0.5, 1), ones=30)
    assert almost == pytest.approx(bound, abs=1e-9)


def test_the_p_value_is_the_formula_and_grows_with_epsilon():
    """So that bisection finds the one crossing; where it says 1, the formula is beyond 1/3."""
    for guesses in range(1, 10):
        for correct, spread in itertools.product(range(guesses + 1), (0, 0.01, 0.3, 1, 2.5, 6)):
            before = 0.0
            for eps in np.linspace(0, 6, 13):
                chances = [float(special.expit(eps))] * guesses
                formula = naive_p_value(correct, chances, 1, spread / 2, 0.5)
                p = _fair_p_value(correct, guesses, float(eps), spread)
                assert p == pytest.approx(min(1, formula)) or (p == 1 and formula > 1 / 3)
                assert p >= before - 1e-12
                before = p


def test_the_commoner_label_needs_no_epsilon_to_be_guessed():
    assert one_run_epsilon(900, 1000, canaries=1000, prior=0.9, ones=1000) == 0
    assert one_run_epsilon(900, 1000, canaries=1000, prior=0.1, ones=0) == 0
    assert one_run_epsilon(900, 1000, canaries=1000) > 1.9
    assert one_run_epsilon(900, 1000, canaries=1000, prior=0.1, ones=1000) > 4


def test_unknown_guesses_count_as_the_commoner_label():
    for prior, ones in ((0.8, 50), (0.2, 0)):
        options: dict[str, Any] = {"canaries": 50, "prior": prior}
        cautious = one_run_epsilon(48, 50, **options)
        assert cautious == one_run_epsilon(48, 50, ones=ones, **options)
        assert cautious < one_run_epsilon(48, 50, ones=25, **options)


@pytest.mark.parametrize(("correct", "guesses"), [(0, 0), (0, 10), (5, 10), (1, 1)])
def test_chance_shows_nothing(correct: int, guesses: int):
    assert one_run_epsilon(correct, guesses, canaries=10) == 0
    assert one_run_epsilon(correct, guesses, canaries=10, delta=1e-3) == 0
    assert one_run_epsilon(correct, guesses, canaries=10, prior=0.6) == 0


@cache
def bound(correct: int, guesses: int, ones: int, canaries: int, delta: float, prior: float):
    return one_run_epsilon(
        correct, guesses, canaries=canaries, delta=delta, prior=prior, ones=ones, failure=0.1
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("eps", "prior", "delta", "abstains"),
    [
        (1.0, 0.5, 0.0, False),
        (1.0, 0.5, 0.0, True),
        (0.7, 0.2, 0.0, False),
        (2.0, 0.7, 0.0, True),
        (1.0, 0.5, 0.002, False),
        (1.0, 0.25, 0.002, False),
    ],
)
def test_the_bound_exceeds_the_truth_no_more_often_than_it_says(
    eps: float, prior: float, delta: float, abstains: bool
):
    """1000 runs; a right bound fails this with a chance below 1e-6 for each case.

    Each label goes through a response of this epsilon, and is told outright with probability delta;
    the attack believes what it hears. It may abstain from every canary but those where it heard the
    commoner answer. Without delta the theorem is tight here, so that bounds do exceed the truth.
    """
    runs, canaries, failure = 1000, 100, 0.1
    entropy = KeyedEntropy.from_seed(8).uniform((3, runs, canaries))
    labels = entropy[0] < prior
    honest = (entropy[1] < 1 / (1 + math.exp(-eps))) | (entropy[2] < delta)
    heard = np.where(honest, labels, ~labels)
    above = 0
    for truth, answers in zip(labels, heard, strict=True):
        commoner = 2 * answers.sum() > canaries
        guessed = answers == commoner if abstains else np.ones(canaries, dtype=bool)
        correct = int((truth == answers)[guessed].sum())
        ones = int(answers[guessed].sum()) if prior != 0.5 else 0
        above += bound(correct, int(guessed.sum()), ones, canaries, delta, prior) > eps
    assert above <= most_alarms(runs, failure)
    if delta == 0:
        assert above > 0.03 * runs


@pytest.mark.parametrize(
    ("case", "where"),
    [
        *(({"correct": correct}, "") for correct in (6, -1)),
        ({"guesses": 10}, ""),
        *(({"delta": delta}, "delta") for delta in (1.0, -1e-9, math.nan)),
        *(({"failure": failure}, "failure") for failure in (0.0, 1.0)),
        *(({"prior": prior}, "prior") for prior in (0.0, 1.0)),
        ({"ones": 6}, "ones"),
        ({"prior": 0.2, "ones": -1}, "ones"),
    ],
)
def test_bad_arguments_are_refused(case: dict[str, Any], where: str):
    with refused(ConfigError) as raised:
        one_run_epsilon(**{"correct": 5, "guesses": 5, "canaries": 9, **case})
    assert raised.value.where == where
