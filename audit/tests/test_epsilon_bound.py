"""The bound on epsilon comes close to mechanisms of known epsilon, and seldom above them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from taciturn.errors import ConfigError, DataError, ShapeError
from taciturn.rng import Entropy, KeyedEntropy
from taciturn_audit.epsilon_bound import (
    EpsilonBound,
    Sampler,
    epsilon_lower_bound,
    epsilon_lower_bound_over,
)
from tests.expected import refused

Mechanism = Callable[[float, float], Sampler]


def seeded(seed: int) -> KeyedEntropy:
    return KeyedEntropy.from_seed(seed)


def randomised_response(secret: float, eps: float) -> Sampler:
    def draw(count: int, entropy: Entropy):
        honest = entropy.uniform((count,)) < 1 / (1 + math.exp(-eps))
        return np.where(honest, int(secret), 1 - int(secret))

    return draw


def laplace(secret: float, eps: float) -> Sampler:
    def draw(count: int, entropy: Entropy):
        u = entropy.uniform((count,)) - 0.5
        return secret - np.sign(u) * np.log1p(-2 * np.abs(u) + 2.0**-60) / eps

    return draw


def discrete_laplace(secret: float, eps: float) -> Sampler:
    def draw(count: int, entropy: Entropy):
        u = 1 - entropy.uniform((2, count))
        steps = np.floor(-np.log(u) / eps).astype(np.int64)
        return int(secret) + steps[0] - steps[1]

    return draw


def clipped_geometric(secret: float, eps: float) -> Sampler:
    """Atoms at both ends of 0..3: the secrets are 0 and 1, the epsilon is the geometric's."""
    whole = discrete_laplace(1 + secret, eps)
    return lambda count, entropy: np.asarray(whole(count, entropy)).clip(0, 3)


def multiplied(secret: float, eps: float) -> Sampler:
    """Only |output| <= 1 tells: P is 0.1 or 0.1 e^eps, either side of 0, and the rest is beyond."""

    def draw(count: int, entropy: Entropy):
        u = entropy.uniform((3, count))
        small = u[0] < 0.1 * math.exp(eps if secret else 0)
        return np.where(u[1] < 0.5, -1, 1) * np.where(small, u[2], 1 + u[2])

    return draw


def disclosing(delta: float) -> Mechanism:
    """A response that gives up with probability delta and tells the secret, above 1."""

    def mechanism(secret: float, eps: float) -> Sampler:
        honest = randomised_response(secret, eps)

        def draw(count: int, entropy: Entropy):
            plain = honest(count, entropy.fork("response"))
            return np.where(entropy.uniform((count,)) < delta, 2 + secret, plain)

        return draw

    return mechanism


KNOWN: list[Mechanism] = [
    randomised_response,
    laplace,
    discrete_laplace,
    clipped_geometric,
    multiplied,
]


def most_alarms(repetitions: int, failure: float) -> int:
    """What a right bound exceeds with a chance below 1e-6."""
    from scipy import stats

    return int(stats.binom.isf(1e-6, repetitions, failure))


def bound_of(mechanism: Mechanism, eps: float, seed: int, **options: Any) -> EpsilonBound:
    return epsilon_lower_bound(
        mechanism(0, eps), mechanism(1, eps), entropy=seeded(seed), **options
    )


@pytest.mark.parametrize("eps", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("mechanism", KNOWN, ids=lambda mechanism: mechanism.__name__)
@pytest.mark.sampled(4)
def test_with_many_samples_the_bound_is_close_below_the_truth(mechanism: Mechanism, eps: float):
    """A bound above the truth is a false alarm of at most 1e-4 for each case; the seed is fixed."""
    bound = bound_of(mechanism, eps, seed=1, failure=1e-4)
    assert eps - 0.1 < bound.epsilon <= eps


@pytest.mark.parametrize("eps", [0.1, 4.0])
def test_very_small_and_large_epsilons_are_seen(eps: float):
    assert 0.5 * eps < bound_of(laplace, eps, seed=2).epsilon <= eps


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("mechanism", "eps", "delta"),
    [
        *((mechanism, 1.0, 0.0) for mechanism in KNOWN),
        (laplace, 5.0, 0.0),
        (discrete_laplace, 1e-9, 0.0),
        (disclosing(0.05), 1.0, 0.05),
    ],
)
def test_the_bound_exceeds_the_truth_no_more_often_than_it_says(
    mechanism: Mechanism, eps: float, delta: float
):
    """300 repetitions; a right bound fails this with a chance below 1e-6 for each case."""
    failure, repetitions = 0.2, 300
    above = sum(
        bound_of(mechanism, eps, seed, samples=800, failure=failure, delta=delta).epsilon > eps
        for seed in range(repetitions)
    )
    assert above <= most_alarms(repetitions, failure)


def test_the_bound_is_the_exact_one_of_its_hits_and_corrected_for_all_that_was_tried():
    """By hand: 4 candidates, 2 bounds each, 3 pairs."""
    from scipy import stats

    delta, failure = 0.01, 0.05
    pairs = {
        name: (laplace(0, eps), laplace(1, eps)) for name, eps in (("a", 1), ("b", 2), ("c", 0.5))
    }
    bound = epsilon_lower_bound_over(
        pairs, samples=10_001, failure=failure, delta=delta, entropy=seeded(3)
    )
    assert (bound.pair, bound.samples, bound.judged) == ("b", 10_001, 5001)
    hits = sorted((bound.first_hits, bound.second_hits))
    tail = failure / (4 * 2 * 3)
    low = stats.beta.ppf(tail, hits[1], bound.judged - hits[1] + 1)
    high = stats.beta.isf(tail, hits[0] + 1, bound.judged - hits[0])
    assert bound.epsilon == pytest.approx(math.log((low - delta) / high))
    assert bound.to_dict()["epsilon"] == bound.epsilon


def test_only_fresh_outputs_are_judged():
    """A mechanism that tells everything while the event is chosen, and nothing afterwards."""

    def sampler(secret: int) -> Sampler:
        calls = iter(["choose", "judge"])

        def draw(count: int, entropy: Entropy):
            return np.full(count, secret if next(calls) == "choose" else 1)

        return draw

    bound = epsilon_lower_bound(sampler(0), sampler(1), samples=2000, entropy=seeded(1))
    assert bound.epsilon == 0
    assert bound.first_hits == bound.second_hits


def test_the_halves_and_the_sides_get_coins_of_their_own():
    seen: list[bytes] = []

    def draw(count: int, entropy: Entropy):
        seen.append(entropy.token(16))
        return np.zeros(count)

    pairs = {"a": (draw, draw), "b": (draw, draw)}
    epsilon_lower_bound_over(pairs, samples=10, entropy=seeded(1))
    assert len(seen) == len(set(seen)) == 8


def test_a_broken_mechanism_is_caught():
    """It claims an epsilon of 1 and forgets that the sensitivity is 2."""
    claim = 1.0
    bound = epsilon_lower_bound(laplace(-1, claim), laplace(1, claim), entropy=seeded(1))
    assert claim < bound.epsilon <= 2 * claim


def test_noise_that_misses_its_tail_is_caught_by_a_rare_event():
    """Clipped noise gives a few secrets in a thousand away; the rest is private."""
    limit = math.log(500)

    def clipped(secret: int) -> Sampler:
        plain = laplace(0, 1.0)
        return lambda count, entropy: secret + np.asarray(plain(count, entropy)).clip(-limit, limit)

    bound = epsilon_lower_bound(clipped(0), clipped(1), entropy=seeded(1))
    assert bound.epsilon > 3
    assert 0 == min(bound.first_hits, bound.second_hits) < bound.judged / 100
    assert bound.event[:11] in ("output <= -", "output >= 6")


def test_a_secret_that_slips_out_costs_its_probability():
    mechanism, eps = disclosing(0.01), 1.0
    assert bound_of(mechanism, eps, seed=1).epsilon > 4
    assert 0.9 < bound_of(mechanism, eps, seed=1, delta=0.01).epsilon <= eps


def test_disjoint_outputs_show_all_that_so_many_samples_can():
    bound = epsilon_lower_bound(
        lambda count, _: np.zeros(count), lambda count, _: np.ones(count), entropy=seeded(1)
    )
    assert bound.epsilon == bound.ceiling
    assert 9 < bound.ceiling < math.log(bound.judged)
    assert sorted((bound.first_hits, bound.second_hits)) == [0, bound.judged]


def test_equal_mechanisms_a_constant_and_a_delta_near_1_show_nothing():
    bound = epsilon_lower_bound(laplace(0, 1), laplace(0, 1), failure=1e-6, entropy=seeded(1))
    assert bound.epsilon == 0

    def same(count: int, _: Entropy):
        return np.full(count, np.inf)

    assert epsilon_lower_bound(same, same, samples=2, entropy=seeded(1)).epsilon == 0
    bound = bound_of(randomised_response, 3.0, seed=1, samples=10_000, delta=0.99)
    assert bound.epsilon == 0
    assert bound.ceiling > 0


def test_the_pair_that_shows_most_is_named_and_more_pairs_weaken_it_a_little():
    near, far = (laplace(0, 1), laplace(0.2, 1)), (laplace(0, 1), laplace(2, 1))
    alone = epsilon_lower_bound_over({"far": far}, entropy=seeded(1))
    pairs = {"near": near, "far": far, "nearer": near}
    among = epsilon_lower_bound_over(pairs, entropy=seeded(1))
    assert among.pair == "far"
    assert alone.epsilon - 0.05 < among.epsilon < alone.epsilon <= 2


@pytest.mark.slow  # many bounds
def test_several_pairs_together_fail_no_more_often_than_one():
    """200 repetitions of 10 equal pairs; a right bound fails with a chance below 1e-6."""
    pairs = {str(k): (randomised_response(0, 1.0), randomised_response(1, 1.0)) for k in range(10)}
    failure, repetitions = 0.3, 200
    above = sum(
        epsilon_lower_bound_over(pairs, samples=200, failure=failure, entropy=seeded(k)).epsilon > 1
        for k in range(repetitions)
    )
    assert above <= most_alarms(repetitions, failure)


@pytest.mark.parametrize(
    "options",
    [
        *({"samples": value} for value in (1, -5)),
        *({"failure": value} for value in (0.0, 1.0, math.nan)),
        *({"delta": value} for value in (-0.1, 1.0, math.nan)),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any]):
    with refused(ConfigError) as raised:
        bound_of(laplace, 1.0, 1, **options)
    assert raised.value.where == next(iter(options))


def test_no_pairs_and_bad_samples_are_refused():
    with refused(ConfigError) as raised:
        epsilon_lower_bound_over({}, entropy=seeded(1))
    assert raised.value.where == "pairs"
    good = laplace(0, 1)
    with refused(ShapeError):
        epsilon_lower_bound(good, lambda count, _: np.zeros((count, 1)), entropy=seeded(1))
    with refused(DataError):
        epsilon_lower_bound(lambda count, _: np.full(count, np.nan), good, entropy=seeded(1))
