"""Prices against the largest logarithm of a ratio that can be found, on reals and on the grid."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.arrays import FloatArray
from taciturn.errors import ConfigError, PrivacyError
from taciturn.privacy.events import (
    AdditiveNoise,
    BatchResponse,
    HiddenBatchGradient,
    MeanOneFactor,
    MultiplicativeNoise,
    NonPrivate,
    OneSidedFactor,
    PrintedFactor,
    PrivacyEvent,
)
from taciturn.privacy.multiplicative import VARIANTS, MeanOne, Multiplicative, Printed
from taciturn.privacy.noise import divisor
from taciturn.privacy.prices import EVENTS, Price, price, printed_label_price
from tests.expected import refused

EPSILONS = (0.01, 0.1, 1.0, 10.0)
INNER = (2.0**-6, 0.1, 0.5, 1.0)
OUTER = (0.01, 0.5, 1.0, 10.0, 1000.0)
GRID = list(itertools.product(EPSILONS, INNER, OUTER))
HAIR = 1e-13


@dataclass(frozen=True, slots=True)
class Unheard(PrivacyEvent):
    name = "unheard"


# --- reals -------------------------------------------------------------------------------------


def residues_to_try(b1: float) -> FloatArray:
    """Sizes from b1 to 1, ends included, with either sign."""
    sizes = np.unique([*np.geomspace(b1, 1, 15), *np.linspace(b1, 1, 15)])
    return np.concatenate([-sizes, sizes])


def outputs_to_try(b2: float, residues: FloatArray) -> FloatArray:
    """Both atoms, both sides of each corner of the densities, and all orders of size between."""
    sizes = np.geomspace(1e-9, 1, 25) * b2
    near = np.concatenate([residues, residues * (1 - HAIR), residues * (1 + HAIR)])
    edges = [-b2, b2, -b2 * (1 - HAIR), b2 * (1 - HAIR), 0.0]
    outputs = np.concatenate([near, sizes, -sizes, np.linspace(-1, 1, 81) * b2, edges])
    return np.unique(outputs[np.abs(outputs) <= b2])


def log_densities(
    mechanism: Multiplicative, residues: FloatArray, outputs: FloatArray
) -> FloatArray:
    shape = (len(residues), len(outputs))
    return mechanism.log_density(
        np.broadcast_to(outputs, shape), np.broadcast_to(residues[:, None], shape)
    )


def largest_ratio(logs: FloatArray) -> float:
    """Over pairs of rows; an output that no row can have says nothing."""
    most, least = logs.max(axis=0), logs.min(axis=0)
    possible = np.isfinite(most)
    return float((most[possible] - least[possible]).max())


def largest_residue_ratio(mechanism: Multiplicative) -> float:
    residues = residues_to_try(mechanism.event.b1)
    outputs = outputs_to_try(mechanism.event.b2, residues)
    return largest_ratio(log_densities(mechanism, residues, outputs))


def largest_label_ratio(mechanism: Multiplicative, scores: FloatArray) -> float:
    """At the worst of the scores: the residue is 1 - f or -f."""
    ends = residues_to_try(mechanism.event.b1)
    outputs = outputs_to_try(mechanism.event.b2, ends)
    one, zero = (log_densities(mechanism, r, outputs) for r in (1 - scores, -scores))
    possible = np.isfinite(np.maximum(one, zero))
    return float(np.abs(np.subtract(one, zero, where=possible, out=np.zeros_like(one))).max())


# The worst score is at the ends, where one residue is nearly ±1 and the other one clipped.
SCORES = np.unique([*np.geomspace(1e-12, 0.5, 30), *(1 - np.geomspace(1e-12, 0.5, 30))])


@pytest.mark.parametrize(("eps", "b1", "b2"), GRID)
def test_printed_costs_the_largest_ratio_of_densities_for_residue_and_label(eps, b1, b2):
    mechanism = VARIANTS["printed"](eps, b1, b2, 8)
    cost = price(mechanism.event)
    assert cost.claimed == eps
    assert cost.residue == pytest.approx(largest_residue_ratio(mechanism), rel=1e-6, abs=1e-9)
    assert cost.label == pytest.approx(largest_label_ratio(mechanism, SCORES), rel=1e-6, abs=1e-9)
    # The formula of the design, in its own words; the bounds are the grid's.
    b1 = mechanism.event.b1
    assert cost.label == pytest.approx(max(math.log(1 / b1), eps * (1 - b1) / 2))


@pytest.mark.parametrize(("eps", "b1", "b2"), [case for case in GRID if case[2] >= 1])
def test_mean_one_costs_the_largest_ratio_of_densities_where_b2_is_one_or_more(eps, b1, b2):
    mechanism = VARIANTS["mean-one"](eps, b1, b2, 8)
    cost = price(mechanism.event)
    assert cost.residue == pytest.approx(largest_residue_ratio(mechanism), rel=1e-6)
    assert cost.label == pytest.approx(largest_label_ratio(mechanism, SCORES), rel=1e-6)
    b1, b2 = mechanism.event.b1, mechanism.event.b2
    at_b1 = math.log(1 / b1) + (1 + b1) * b1 * eps / (2 * b2)
    assert cost.label == pytest.approx(max(at_b1, (1 - b1) * eps / 2 + b1 * eps / b2))


@pytest.mark.parametrize(("eps", "b1", "b2"), [case for case in GRID if case[2] < 1])
def test_mean_one_below_costs_no_less_than_the_largest_ratio(eps, b1, b2):
    mechanism = VARIANTS["mean-one"](eps, b1, b2, 8)
    bound = price(mechanism.event).label
    assert largest_residue_ratio(mechanism) <= bound * (1 + 1e-9)
    assert largest_label_ratio(mechanism, SCORES) <= bound * (1 + 1e-9)


@given(st.floats(1e-3, 20), st.floats(1e-3, 1), st.floats(1e-3, 1e3), st.booleans())
def test_no_pair_of_residues_exceeds_the_price_at_any_parameters(eps, b1, b2, printed):
    mechanism = VARIANTS["printed" if printed else "mean-one"](eps, b1, b2, 8)
    assert largest_residue_ratio(mechanism) <= price(mechanism.event).residue * (1 + 1e-9) + 1e-9


@given(st.floats(1e-3, 20), st.floats(1e-3, 1), st.floats(1e-3, 1e3))
def test_the_papers_claim_for_printed_fails_exactly_where_epsilon_is_below_ln_one_over_b1(
    eps, b1, b2
):
    cost = price(PrintedFactor(eps, b1, b2))
    assert (cost.label > cost.claimed) == (math.log(1 / b1) > eps)


# --- a known score -----------------------------------------------------------------------------


@pytest.mark.parametrize("score", [1e-9, 0.02, 0.1, 0.3, 0.499, 0.5, 0.7, 0.9, 0.95, 1 - 1e-9])
@pytest.mark.parametrize("b1", INNER)
@pytest.mark.parametrize("eps", [0.1, 1.0, 10.0])
def test_at_a_known_score_printed_costs_the_largest_ratio_there(eps, b1, score):
    mechanism = Printed(PrintedFactor(eps, b1, 2.0), 8)
    b1 = mechanism.event.b1
    cost = printed_label_price(PrintedFactor(eps, b1, 2.0), score)
    numeric = largest_label_ratio(mechanism, np.array([score]))
    assert cost == pytest.approx(numeric, rel=1e-6, abs=1e-9)
    # Of the design, 2.4: a and a' are the sizes of the two clipped residues.
    a, smaller = max(b1, score, 1 - score), max(b1, min(score, 1 - score))
    formula = max(math.log(a / smaller), b1 * eps / 2 * (1 / smaller - 1 / a))
    assert cost == pytest.approx(formula, abs=1e-12)


@given(st.floats(0, 1), st.floats(0.01, 20), st.floats(1e-3, 1))
def test_a_known_score_costs_no_more_than_the_worst_and_mirrors(score, eps, b1):
    event = PrintedFactor(eps, b1, 1.0)
    cost = printed_label_price(event, score)
    assert 0 <= cost <= price(event).label * (1 + 1e-12)
    assert cost == pytest.approx(printed_label_price(event, 1 - score), abs=1e-9)


# --- the grid ----------------------------------------------------------------------------------


def largest_ratio_on_the_grid(mechanism: Multiplicative, bits: int) -> float:
    """All outputs, all residues."""
    one = 1 << bits
    outer = math.ceil(mechanism.event.b2 * one)
    outputs = np.arange(-outer, outer + 1)
    most = np.full(len(outputs), -np.inf)
    least = np.full(len(outputs), np.inf)
    # Residues up to b1 have the law of b1: zero stands for them, and -1 for the negative ones.
    inner = math.ceil(mechanism.event.b1 * one)
    sizes = np.arange(inner, one + 1)
    tried = np.concatenate([[0, -1], sizes, -sizes])
    for residues in np.array_split(tried, 1 + len(tried) // 64):
        shape = (len(residues), len(outputs))
        logs = mechanism.log_probability(
            np.broadcast_to(outputs, shape), np.broadcast_to(residues[:, None], shape)
        )
        most = np.maximum(most, logs.max(axis=0))
        least = np.minimum(least, logs.min(axis=0))
    possible = np.isfinite(most)
    return float((most[possible] - least[possible]).max())


def rounding_of_divisors(event: MultiplicativeNoise, bits: int) -> float:
    """By how much rounding a divisor down can move a logarithm: twice a part in the smallest.

    Once in the factor 1/sigma, and once in the exponent, which is a part of the price.
    """
    part = 1 / divisor(event.scale * 2.0**bits)
    return part * (2 + price(event).label)


@pytest.mark.sampled(32)
@pytest.mark.parametrize("name", ["printed", "mean-one"])
@pytest.mark.parametrize(
    ("eps", "b1", "b2"), [*itertools.product(EPSILONS, INNER, (0.01, 0.5, 1.0)), (1.0, 0.5, 10.0)]
)
def test_on_the_grid_no_ratio_exceeds_the_price_but_for_the_divisors(name, eps, b1, b2):
    mechanism = VARIANTS[name](eps, b1, b2, 8)
    slack = rounding_of_divisors(mechanism.event, 8)
    assert slack < 1e-4
    ratio = largest_ratio_on_the_grid(mechanism, 8)
    assert ratio <= price(mechanism.event).residue + slack + 1e-9


def coarse_extremes(mechanism: Multiplicative, bits: int, outputs: list[int]) -> float:
    """The largest ratio between the two clipped residues of each sign, at a few outputs."""
    inner, one = math.ceil(mechanism.event.b1 * 2**bits), 1 << bits
    at = np.array(outputs)
    logs = [mechanism.log_probability(at, np.full_like(at, r)) for r in (inner, -inner, one, -one)]
    return largest_ratio(np.stack(logs))


@pytest.mark.parametrize("eps", [0.98, 0.985, 0.99, 1.0])
def test_close_to_the_largest_scale_the_price_holds_to_a_part_in_two_to_the_16(eps):
    bits, excess = 28, []
    for b1 in (0.5, 0.51, 0.53):
        mechanism = VARIANTS["printed"](eps, b1, 500.0, bits)
        ratio = coarse_extremes(mechanism, bits, [0])
        excess.append(ratio / price(mechanism.event).label - 1)
    assert max(excess) <= 2.0**-15


@pytest.mark.parametrize(("b1", "bits"), [(25.1 / 256, 8), (102.05 / 1024, 10)])
def test_rounding_b1_to_the_grid_does_not_lift_mean_one_above_its_price(b1, bits):
    mechanism = MeanOne(MeanOneFactor(10.0, b1, 1.0), bits)
    ratio = coarse_extremes(mechanism, bits, [-(1 << bits), 1 << bits])
    slack = rounding_of_divisors(mechanism.event, bits)
    assert ratio <= price(mechanism.event).label + slack


# --- all events --------------------------------------------------------------------------------


def test_each_kind_of_event_has_its_price():
    inf = math.inf
    assert price(NonPrivate()) == Price(inf, inf, inf)
    assert price(AdditiveNoise(3.0)) == Price(3.0, 3.0, 1.5)
    assert price(OneSidedFactor(1.0, 0.1, 10.0)) == Price(1.0, inf, inf)
    assert price(HiddenBatchGradient(1.0)) == Price(1.0, inf, inf)
    assert price(BatchResponse(1.0)) == Price(1.0, 0.0, 0.0)


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_every_event_that_can_cross_the_wire_has_a_price(name):
    kind = EVENTS[name]
    made = kind(*[0.5] * len(fields(kind)))
    cost = price(made)
    assert min(cost.claimed, cost.residue, cost.label) >= 0


@pytest.mark.parametrize("event", [Unheard(), PrivacyEvent(), MultiplicativeNoise(1.0, 0.5, 1.0)])
def test_an_unknown_event_is_refused_never_guessed(event):
    with refused(PrivacyError, names=type(event).__name__):
        price(event)


@pytest.mark.parametrize(
    ("kind", "values", "setting"),
    [
        (AdditiveNoise, (0.0,), "epsilon"),
        (AdditiveNoise, (-1.0,), "epsilon"),
        (AdditiveNoise, (math.inf,), "epsilon"),
        (AdditiveNoise, (math.nan,), "epsilon"),
        (PrintedFactor, (1.0, 0.0, 1.0), "b1"),
        (PrintedFactor, (1.0, 1.5, 1.0), "b1"),
        (MeanOneFactor, (1.0, 0.5, math.inf), "b2"),
        (BatchResponse, (0.0,), "epsilon"),
        (HiddenBatchGradient, (math.nan,), "epsilon"),
    ],
)
def test_parameters_are_checked_when_an_event_is_made(kind, values, setting):
    with pytest.raises(ConfigError) as caught:
        kind(*values)
    assert caught.value.setting == setting
