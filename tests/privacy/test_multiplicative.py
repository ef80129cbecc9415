"""``mult``: the three variants against the equations, their clips, and the divisibility attack."""

from __future__ import annotations

import functools
import math
from typing import Any, Literal

import numpy as np
import pytest
from scipy.stats import dlaplace

from taciturn.arrays import BoolArray, FloatArray, IntArray
from taciturn.privacy.multiplicative import VARIANTS, Multiplicative
from taciturn.privacy.noise import divisor, draw
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Variant
from tests.privacy.odds import draws_of, happens, pushed_forward

BITS = 8
ONE = 1 << BITS
NAMES: tuple[Variant, ...] = ("printed", "one-sided", "mean-one")

# With these the noise's scale is a whole number of steps: 2 b2 / (b1 eps) = 16 times |c|.
EPS, B1, B2 = 1.0, 0.25, 2.0
INNER, OUTER, FACTOR = 64, 512, 16


def mult(
    name: Variant, eps: float = EPS, b1: float = B1, b2: float = B2, bits: int = BITS
) -> Multiplicative:
    return VARIANTS[name](eps, b1, b2, bits)


def entropy(purpose: str) -> KeyedEntropy:
    return KeyedEntropy.from_seed(2024).fork(purpose)


# --- the equations, word by word ---------------------------------------------------------------


def clip1(r: float, b1: float, *, keeps_sign: bool) -> float:
    """[Tan22, Eq. 8]; the two variants that learn keep the sign."""
    if abs(r) <= b1:
        return -b1 if keeps_sign and r < 0 else b1
    return r


def clip2(z: float, b2: float, *, keeps_sign: bool) -> float:
    """[Tan22, Eq. 9]."""
    if abs(z) >= b2:
        return -b2 if keeps_sign and z < 0 else b2
    return z


def output(name: Variant, r: float, product_noise: float, b1: float, b2: float) -> float:
    """One release; ``product_noise`` is the noise that the product with clip1(r) has."""
    if name == "printed":
        return clip2(product_noise, b2, keeps_sign=False)
    c = clip1(r, b1, keeps_sign=True)
    if name == "one-sided":
        return clip2(math.copysign(abs(product_noise), c), b2, keeps_sign=True)
    return clip2(c + product_noise, b2, keeps_sign=True)


def test_the_printed_output_depends_on_the_size_of_the_residue_only():
    """Why ``printed`` needs no sign of clip1: the product with symmetric noise has none."""
    for r in (-0.7, -0.1, 0.0, 0.1, 0.7):
        assert abs(clip1(r, B1, keeps_sign=False)) == abs(clip1(r, B1, keeps_sign=True))
    mechanism = mult("printed")
    outputs = np.arange(-OUTER, OUTER + 1)
    for r in (0, 30, 64, 65, 200, 256):
        left, right = (
            mechanism.log_probability(outputs, np.full_like(outputs, s)) for s in (r, -r)
        )
        np.testing.assert_array_equal(left, right)


@functools.cache
def exact(name: Variant, residue: int, eps: float, b1: float, b2: float) -> dict[int, float]:
    """The distribution of the output on the grid: every noise number through the equations."""
    inner, outer = math.ceil(b1 * ONE), math.ceil(b2 * ONE)
    size = max(abs(residue), inner)
    by = math.floor(2.0**56 / (2 * outer / (inner * eps) * size))
    sigma = 2.0**56 / by
    return pushed_forward(
        lambda k: np.asarray(dlaplace.pmf(k, 1 / sigma)),
        int(40 * sigma) + 2 * outer + 2 * ONE,
        lambda k: round(output(name, residue, k, inner, outer)),
    )


SMALL = [
    # residue, eps, b1, b2
    (0, 4.0, 0.05, 0.08),
    (12, 4.0, 0.05, 0.08),
    (-13, 4.0, 0.05, 0.08),
    (-20, 4.0, 0.05, 0.08),
    (256, 9.0, 0.1, 0.05),
    (-256, 9.0, 1.0, 0.5),
    (-100, 1.0, 2.0**-6, 0.01),
    (70, 30.0, 0.25, 0.5),
]


@pytest.mark.parametrize("case", SMALL)
@pytest.mark.parametrize("name", NAMES)
def test_probabilities_are_those_of_the_equations(name, case):
    residue, *parameters = case
    expected = exact(name, residue, *parameters)
    mechanism = mult(name, *parameters)
    outputs = np.arange(-400, 401)
    probabilities = np.exp(mechanism.log_probability(outputs, np.full_like(outputs, residue)))
    wanted = np.array([expected.get(int(z), 0.0) for z in outputs])
    np.testing.assert_allclose(probabilities, wanted, rtol=1e-9, atol=1e-14)
    assert probabilities.sum() == pytest.approx(1.0)


# --- known answers and the clips' edges --------------------------------------------------------


def released(name: Variant, residues: list[int], noise: list[int]) -> list[int]:
    mechanism, clipped = mult(name), [max(INNER, abs(r)) for r in residues]
    by = np.array([divisor(float(FACTOR * c)) for c in clipped], dtype=np.uint64)
    out = mechanism.release(np.array(residues), draws_of(noise, by))
    assert out.value.dtype == np.int64
    assert out.event == mechanism.event
    return [int(value) for value in out.value]


INSIDE = OUTER - 1


def test_printed_turns_every_product_beyond_the_bound_into_plus_the_bound():
    residues = [0, 64, -64, 65, -256, 0, 1, -1]
    noise = [0, 5, 5, -5, INSIDE, OUTER, -OUTER, -INSIDE]
    expected = [0, 5, 5, -5, INSIDE, OUTER, OUTER, -INSIDE]
    assert released("printed", residues, noise) == expected
    assert released("printed", [256, -256], [-5000, 5000]) == [OUTER, OUTER]


def test_one_sided_keeps_the_residues_sign_and_zero_is_positive():
    residues = [0, 0, 1, -1, 64, -64, 256, -256]
    noise = [7, -7, -7, -7, OUTER, OUTER, -INSIDE, INSIDE]
    expected = [7, 7, 7, -7, OUTER, -OUTER, INSIDE, -INSIDE]
    assert released("one-sided", residues, noise) == expected
    assert released("one-sided", [3, -3], [9999, 9999]) == [OUTER, -OUTER]


def test_mean_one_adds_the_clipped_residue_and_clips_on_either_side():
    residues = [0, 1, -1, 64, -64, 65, -65, 256]
    noise = [0, 0, 0, 0, 0, 0, 0, 10]
    expected = [64, 64, -64, 64, -64, 65, -65, 266]
    assert released("mean-one", residues, noise) == expected
    # At the bound exactly, one inside, one beyond; from either side.
    edge = [OUTER - 100, OUTER - 101, OUTER - 99, -OUTER - 100, -OUTER - 99, -OUTER - 101]
    assert released("mean-one", [100] * 6, edge) == [OUTER, INSIDE, OUTER, -OUTER, -INSIDE, -OUTER]


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_residues_up_to_b1_are_one(name, real):
    """Zero and everything up to |r| = b1 has the law of b1, with its sign; beyond it has not."""
    mechanism = mult(name)
    step = 1 / ONE if real else 1
    outputs = np.arange(-OUTER, OUTER + 1) * step
    law: Any = mechanism.log_density if real else mechanism.log_probability

    def logs(r: int) -> FloatArray:
        log_law: FloatArray = law(outputs, np.full_like(outputs, r * step))
        return log_law

    for r in (0, 1, 63, 64):
        np.testing.assert_array_equal(logs(r), logs(64))
    for r in (-1, -63, -64):
        np.testing.assert_array_equal(logs(r), logs(-64))
    assert np.abs(np.exp(logs(65)) - np.exp(logs(64))).max() > 1e-6


@pytest.mark.parametrize("b1", [0.1, 25.2 / 256])
def test_bounds_are_rounded_up_to_the_grid_and_the_scale_follows(b1):
    """25.6 steps are 26; the noise of a residue of b1 has 2 b2 / eps as its scale."""
    mechanism = mult("printed", 1.0, b1, 0.3)
    outputs = np.arange(-100, 101)
    logs = mechanism.log_probability(outputs, np.full_like(outputs, 26))
    np.testing.assert_array_equal(logs, mechanism.log_probability(outputs, np.zeros_like(outputs)))
    # 0.3 is 76.8 steps, rounded up to 77: the atom stands there, and nothing beyond.
    assert logs[100 + 77] > logs[100 + 76]
    assert np.isinf(logs[100 + 78 :]).all()
    slope = logs[100 + 10] - logs[100 + 60]
    assert slope == pytest.approx(50 / (2 * 77), rel=1e-6)


# --- the divisibility attack -------------------------------------------------------------------

ATTACKED_BITS, ATTACKED = 12, 1 << 12
Sampler = Literal["wrong", "ours"]


def attacked(sampler: Sampler, residues: IntArray, seed: str) -> IntArray:
    """Residues through ``mult printed``: sampled as it must not be, or by the package."""
    eps, b1, b2 = 1.0, 0.1, 10.0
    drawn = draw(len(residues), entropy(seed))
    if sampler == "ours":
        return mult("printed", eps, b1, b2, ATTACKED_BITS).release(residues, drawn).value
    # Whole noise of scale 2 b2 / (b1 eps), times clip1(r), clipped: all as the equations say.
    inner, outer = math.ceil(b1 * ATTACKED), math.ceil(b2 * ATTACKED)
    clipped = np.where(np.abs(residues) <= inner, inner, residues)
    products = clipped * drawn.noise(divisor(2 * b2 / (b1 * eps)))
    return np.where(np.abs(products) >= outer, outer, products)


def informative(outputs: IntArray) -> BoolArray:
    """Outputs that are neither zero nor clipped."""
    inside: BoolArray = (outputs != 0) & (np.abs(outputs) < math.ceil(10 * ATTACKED))
    return inside


@pytest.mark.parametrize("sampler", ["wrong", "ours"])
def test_one_output_tells_the_label_of_the_wrong_sampler_only(sampler):
    """Alice knows the score: the residue is 1 - f or -f. Which of the two divides the output?"""
    size = 60_000
    labels = (entropy("labels").words(size) & np.uint64(1)).astype(np.int64)
    # Scores of 0.1 to 0.9 but for the middle: both candidates are beyond b1 and differ in size.
    scores = np.round((0.55 + 0.33 * entropy("scores").uniform((size,))) * ATTACKED).astype(
        np.int64
    )
    scores = np.where(entropy("side").uniform((size,)) < 0.5, scores, ATTACKED - scores)
    outputs = attacked(sampler, labels * ATTACKED - scores, f"attack {sampler}")
    kept = informative(outputs)
    by_one, by_zero = (outputs[kept] % c[kept] == 0 for c in (ATTACKED - scores, scores))
    truth = labels[kept] == 1
    decided = by_one != by_zero
    right = int((by_one[decided] == truth[decided]).sum())
    if sampler == "wrong":
        # The true candidate always divides; the other one hardly ever.
        assert np.where(truth, by_one, by_zero).all()
        assert decided.mean() > 0.95
        assert right == decided.sum()
        return
    # By chance a candidate of some thousand steps divides one output in some thousand.
    assert decided.mean() < 0.01
    # Where it does, the true one does as often as the other: at chance, with false alarm 1e-6.
    guesses = np.where(decided, by_one, entropy("guess").uniform((len(truth),)) < 0.5)
    assert happens(int((guesses == truth).sum()), len(truth), 0.5)


@pytest.mark.parametrize("sampler", ["wrong", "ours"])
def test_several_outputs_tell_the_residue_of_the_wrong_sampler_only(sampler):
    """The greatest common divisor of a few outputs is the residue itself; no score is needed."""
    recovered = 0
    for residue in range(1500, 1540):
        outputs = attacked(sampler, np.full(400, residue), f"several {residue}")
        several = outputs[informative(outputs)][:8].tolist()
        assert len(several) == 8
        recovered += math.gcd(*several) == residue
    assert recovered == 40 if sampler == "wrong" else recovered == 0
