"""A fraction of a shared number: the carry is exact, and the result is off by a few units."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.numerics.shared_fraction import UNIT_BITS, Carried, Momentum, SharedFraction, Widening

BITS = 59
RING = st.integers(0, 2**BITS - 1)
WITHIN = st.integers(-(2 ** (BITS - 2)) + 1, 2 ** (BITS - 2) - 1)
MOMENTS = st.integers(0, 1 << UNIT_BITS)


def centred(values: np.ndarray, bits: int) -> np.ndarray:
    left = np.int64(64 - bits)
    return (values << left) >> left


def carried(number: np.ndarray, mask: np.ndarray, sides, carry_mask: int = 0):
    """Both sides' shares of numbers and of their carries, the second as one exchange gives them."""
    alice, bob = sides
    hers, his = alice.parts(mask), bob.parts(number - mask)
    return tuple(shared_carries(sides, (hers, his), carry_mask))


def shared_carries(sides, parts, carry_mask: int = 0):
    """Both sides' parts with their shares of the carries, from one product each."""
    (alice, bob), (hers, his) = sides, parts
    products = (alice.carry.factors(hers) * bob.carry.factors(his)).sum(axis=1)
    yield Carried(hers, alice.carry.completed(np.full(len(hers), carry_mask), hers))
    yield Carried(his, bob.carry.completed(products - carry_mask, his))


def both(bits: int, shift: int):
    return tuple(SharedFraction(bits, shift, raises=raises) for raises in (True, False))


def test_every_number_below_a_quarter_of_a_small_ring_has_its_carry_with_every_mask():
    bits, shift = 12, 2
    sides = both(bits, shift)
    mask = np.arange(1 << bits)
    for number in range(-(1 << bits - 2) + 1, 1 << bits - 2):
        hers, his = carried(np.full(1 << bits, number), mask, sides)
        whole = hers.parts + his.parts - (1 << bits - 1) - (his.carries << bits)
        assert (whole == number).all()


@given(
    numbers=st.tuples(WITHIN, WITHIN, WITHIN),
    masks=st.tuples(RING, RING, RING, RING),
    momentum=st.builds(Momentum, MOMENTS, MOMENTS),
    shift=st.integers(8, 30),
)
def test_a_step_with_momentum_is_off_by_less_than_ten_units(numbers, masks, momentum, shift):
    sides = both(BITS, shift)
    pairs = [
        carried(np.array([number]), np.array([mask]), sides, masks[3] // place)
        for place, number, mask in zip((1, 3, 5), numbers, masks, strict=False)
    ]
    shares = [
        side.accelerated(*(pair[at] for pair in pairs), momentum) for at, side in enumerate(sides)
    ]
    (x, before, start), (b, g) = numbers, momentum
    unit = 1 << UNIT_BITS
    # In exact fractions: 59 digits are more than a float has.
    exact = Fraction((unit + b + g) * x - b * before, unit * 2**shift) - Fraction(g * start, unit)
    got = (int(shares[0][0]) + int(shares[1][0]) - exact) % 2**BITS
    assert min(got, 2**BITS - got) < 10


@given(x=WITHIN, mask=RING)
def test_a_bare_fraction_is_the_number_shifted_or_one_less(x, mask):
    sides = both(BITS, 16)
    now = carried(np.array([x]), np.array([mask]), sides)
    got = sum(int(side.scaled_down(one)[0]) for side, one in zip(sides, now, strict=True))
    assert int(centred(np.array([got % 2**BITS]), BITS)[0]) - (x >> 16) in (-1, 0)


def test_beyond_a_quarter_of_the_ring_a_carry_may_be_wrong():
    sides = both(BITS, 16)
    number, mask = np.array([-3 << BITS - 3]), np.array([15 << BITS - 4])
    now = carried(number, mask, sides)
    got = [side.scaled_down(one) for side, one in zip(sides, now, strict=True)]
    assert abs(int(centred(got[0] + got[1], BITS)[0]) - (int(number[0]) >> 16)) > 2**40


@pytest.mark.parametrize("prime", [97, 193, 65_537])
@pytest.mark.parametrize("factor", [0.01, 1.0, 3.7, 12_345.678])
def test_every_number_below_a_quarter_of_a_prime_is_widened_with_every_share(prime, factor):
    """All shares of all numbers; of a large prime, of numbers at the ends and around zero."""
    sides = tuple(Widening(prime, factor, raises=raises) for raises in (True, False))
    quarter = prime // 4
    ends = {-quarter + 1, -1, 0, 1, 5, quarter - 1}
    share = np.arange(prime + 1, dtype=np.uint64)
    for number in range(-quarter + 1, quarter) if prime < 200 else ends:
        other = (number - share.astype(np.int64)) % prime
        both = share, other.view(np.uint64)
        parts = [side.parts(one) for side, one in zip(sides, both, strict=True)]
        pairs = zip(sides, shared_carries(sides, parts, 987_654_321), strict=True)
        wide = sum(side.widened(one) for side, one in pairs)
        assert np.abs(wide - factor * number).max() <= 2.0


def test_beyond_a_quarter_of_a_prime_a_number_may_be_off_by_the_prime_and_by_nothing_else():
    sides = tuple(Widening(97, 1.0, raises=raises) for raises in (True, False))
    share = np.arange(97, dtype=np.uint64)
    for number in (30, 48):
        other = ((number - share.astype(np.int64)) % 97).view(np.uint64)
        parts = [side.parts(one) for side, one in zip(sides, (share, other), strict=True)]
        pairs = zip(sides, shared_carries(sides, parts), strict=True)
        off = set(np.sum([side.widened(one) - number // 2 for side, one in pairs], axis=0).tolist())
        assert 0 in off
        assert len(off) > 1
        assert off <= {-97, 0, 97}


@pytest.mark.parametrize("raises", [True, False])
def test_zero_has_the_parts_from_which_a_training_starts(raises):
    side = SharedFraction(BITS, 16, raises=raises)
    zero = np.zeros(3, dtype=np.int64)
    start = Carried(side.parts(zero), zero)
    momentum = Momentum(512, 700)
    assert side.accelerated(start, start, start, momentum).tolist() == [0, 0, 0]
    assert side.scaled_down(start).tolist() == [0, 0, 0]
