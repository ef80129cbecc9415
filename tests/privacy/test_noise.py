"""Discrete Laplace noise: the exact distribution, the stock's order, and every limit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import dlaplace, kstest, laplace

from taciturn.arrays import FloatArray, WordArray
from taciturn.errors import ConfigError
from taciturn.privacy.noise import (
    SMALLEST_DIVISOR,
    UNIT_BITS,
    LaplaceDraws,
    Stock,
    bernoulli_exp,
    continuous_laplace,
    divisor,
    draw,
    geometric,
    scale,
)
from taciturn.rng import KeyedEntropy, SystemEntropy
from tests.expected import refused
from tests.modules import module_of
from tests.privacy.odds import draws_of, fits, happens

UNIT = 1 << UNIT_BITS
SIZE = 40_000


def entropy(purpose: str) -> KeyedEntropy:
    return KeyedEntropy.from_seed(2024).fork(purpose)


# --- divisors ----------------------------------------------------------------------------------


@given(st.floats(2.0**-7, 2.0 ** (UNIT_BITS - 16)))
def test_the_scale_is_never_below_the_one_asked_for_and_above_it_by_a_part_in_the_divisor(sigma):
    by = divisor(sigma)
    real = scale(by)
    # The division and the quotient round once each, by 2^-53.
    assert sigma * (1 - 2.0**-52) <= real <= sigma * (1 + 1 / by) * (1 + 2.0**-52)


def test_the_largest_scale_is_the_one_of_the_smallest_divisor():
    largest = 2.0**UNIT_BITS / SMALLEST_DIVISOR
    assert divisor(largest) == SMALLEST_DIVISOR
    beyond = float(np.nextafter(largest, math.inf)) * (1 + 1e-9)
    for sigma in (beyond, 0.0, -1.0, math.nan, math.inf, -math.inf):
        with refused(ConfigError, setting="epsilon"):
            divisor(sigma)


# --- coins -------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [1e-12, 1e-3, 0.5, 1.0, 1.5, 3.7, 12.0])
def test_decaying_coins_show_heads_as_often_as_stated_with_false_alarm_rate_1e_minus_6(exponent):
    heads = bernoulli_exp(exponent, SIZE, entropy(f"coins {exponent}"))
    assert heads.dtype == np.bool_
    assert heads.shape == (SIZE,)
    assert happens(int(heads.sum()), SIZE, math.exp(-exponent))


def test_decaying_coins_at_the_ends():
    assert bernoulli_exp(0.0, 1000, entropy("zero")).all()
    # Below the resolution of 2^-56 the exponent is rounded down to zero.
    assert bernoulli_exp(2.0**-57, 1000, entropy("nearly")).all()
    assert not bernoulli_exp(1e9, 1000, entropy("never")).any()
    assert bernoulli_exp(1.0, 0, entropy("none")).shape == (0,)


# --- unit draws --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def units() -> WordArray:
    return geometric(SIZE, entropy("units"))


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.0, 3.7, 20.0])
def test_every_quotient_is_geometric_with_false_alarm_rate_1e_minus_6(units, sigma):
    """``P(G // s = k) = (1 - q) q^k`` with ``q = exp(-s / 2^56)``, whatever the divisor."""
    by = divisor(sigma)
    quotients = (units // np.uint64(by)).astype(np.int64)
    q = math.exp(-by / UNIT)
    reach = int(quotients.max()) + 1
    cells = (1 - q) * q ** np.arange(reach)
    counts = np.bincount(quotients, minlength=reach + 1)
    assert fits(counts, np.append(cells, q**reach))


def test_the_fraction_is_cut_from_the_same_curve_with_false_alarm_rate_1e_minus_6(units):
    """Whole part and fraction are independent, and the fraction's law is ``exp(-u)`` on [0, 1)."""
    high = ((units >> np.uint64(UNIT_BITS - 4)) & np.uint64(15)).astype(np.int64)
    whole = np.minimum((units >> np.uint64(UNIT_BITS)).astype(np.int64), 2)
    cells = np.exp(-np.arange(16) / 16) * (1 - math.exp(-1 / 16)) / (1 - math.exp(-1))
    wholes = np.array([1 - math.exp(-1), math.exp(-1) - math.exp(-2), math.exp(-2)])
    joint = np.bincount(whole * 16 + high, minlength=48)
    assert fits(joint, np.outer(wholes, cells).ravel())


def test_the_low_bits_are_uniform_with_false_alarm_rate_1e_minus_6(units):
    """Over 2^56 values the decay across one cell of 256 is 2^-48: not visible."""
    low = (units & np.uint64(255)).astype(np.int64)
    assert fits(np.bincount(low, minlength=256), np.full(256, 1 / 256))


def test_draws_are_cut_below_two_to_the_63():
    class AlwaysOn(SystemEntropy):
        """Every exp(-1) coin shows heads: it fails at k = 3, which is odd."""

        def integers(self, bound: int, count: int) -> WordArray:
            return np.full(count, 0 if bound == 2 * UNIT else bound - 1, dtype=np.uint64)

    wholes = module_of(divisor)._whole(5, AlwaysOn())
    assert wholes.tolist() == [127] * 5
    assert (127 << UNIT_BITS) + UNIT - 1 < 1 << 63


# --- Laplace -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.4, 1.0, 5.3, 30.0])
def test_noise_is_discrete_laplace_with_false_alarm_rate_1e_minus_6(sigma):
    by = divisor(sigma)
    noise = draw(SIZE, entropy(f"laplace {sigma}")).noise(by)
    reach = math.ceil(6 * sigma)
    cells = dlaplace.pmf(np.arange(-reach, reach + 1), by / UNIT)
    beyond = 1 - cells.sum()
    inside = noise[np.abs(noise) <= reach]
    counts = np.append(np.bincount(inside + reach, minlength=2 * reach + 1), SIZE - len(inside))
    assert fits(counts, np.append(cells, beyond))


def test_each_number_can_have_a_scale_of_its_own():
    drawn = draw(200, entropy("own scales"))
    sigmas = np.geomspace(0.1, 1e9, 200)
    divisors = np.array([divisor(float(sigma)) for sigma in sigmas], dtype=np.uint64)
    together = drawn.noise(divisors)
    alone = [int(drawn[i : i + 1].noise(int(divisors[i]))[0]) for i in range(200)]
    assert together.tolist() == alone
    assert together.dtype == np.int64


def test_noise_of_given_draws_is_known():
    by = divisor(12.5)
    assert draws_of([0, 3, -4, 1000], by).noise(by).tolist() == [0, 3, -4, 1000]
    # Quotients are rounded down: a draw just below the next multiple stays.
    last = LaplaceDraws(np.array([3 * by - 1], np.uint64), np.array([by], np.uint64))
    assert last.noise(by).tolist() == [1]


def test_the_largest_draw_at_the_smallest_divisor_fits():
    top = np.array([(1 << 63) - 1], dtype=np.uint64)
    drawn = LaplaceDraws(np.zeros(1, np.uint64), top)
    assert drawn.noise(SMALLEST_DIVISOR).tolist() == [-(((1 << 63) - 1) // SMALLEST_DIVISOR)]


def test_draws_are_determined_by_the_coins_and_hidden_in_their_repr():
    first, second, other = (draw(50, entropy(name)) for name in ("a", "a", "b"))
    assert first.left.tolist() == second.left.tolist()
    assert first.right.tolist() == second.right.tolist()
    assert first.left.tolist() != other.left.tolist()
    assert first.left.tolist() != first.right.tolist()
    assert repr(first) == "LaplaceDraws()"


def taken(stock: Stock[LaplaceDraws], iteration: int, count: int) -> tuple[list[int], list[int]]:
    part = stock.take(iteration, count)
    return part.left.tolist(), part.right.tolist()


@settings(max_examples=12)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.sampled_from([500, 1000, 5000]))
def test_an_iteration_gets_the_same_draws_whichever_were_asked_for_before(order, batch_size):
    """A resumed run starts anywhere; a fresh stock asked for that one iteration agrees."""
    stock = Stock(draw, entropy("stock"), batch_size)
    for iteration in order:
        fresh = Stock(draw, entropy("stock"), batch_size)
        assert taken(stock, iteration, 7) == taken(fresh, iteration, 7)


def test_iterations_share_no_draw():
    stock = Stock(draw, entropy("stock"), 64)
    # 64 iterations fill a block: the 65th starts the next.
    draws = [value for number in range(70) for value in taken(stock, number, 64)[0]]
    assert len(set(draws)) == len(draws) == 70 * 64


def test_a_short_batch_gets_the_head_of_its_draws():
    stock = Stock(draw, entropy("stock"), 64)
    whole, short = taken(stock, 3, 64), taken(stock, 3, 10)
    assert short == (whole[0][:10], whole[1][:10])
    assert len(taken(Stock(draw, entropy("stock"), 9000), 2, 9000)[0]) == 9000


# --- continuous --------------------------------------------------------------------------------


def test_continuous_noise_is_laplace_with_false_alarm_rate_1e_minus_6():
    noise = continuous_laplace(2.5, 20_000, entropy("continuous"))
    assert kstest(noise, laplace(scale=2.5).cdf).pvalue > 1e-6


def test_continuous_noise_is_finite_at_the_ends_of_the_uniform():
    class Ends(SystemEntropy):
        def uniform(self, shape: tuple[int, ...]) -> FloatArray:
            return np.array([[0.0, 1 - 2**-53], [0.0, 0.5]])

    noise = continuous_laplace(1.0, 2, Ends())
    assert noise.tolist() == [0.0, 53 * math.log(2)]
