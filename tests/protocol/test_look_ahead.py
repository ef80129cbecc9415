"""One exchange in place of two: the block product, its digits, and the public rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.crypto import ClearScheme, PaillierScheme, Scheme, Wrapping
from taciturn.crypto.bfv import LEAST_FAILURE_BITS, STANDARD, BfvScheme, Layout
from taciturn.protocol import Scales, Terms, Turns
from taciturn.rng import KeyedEntropy
from tests.protocol.parties import agreement

COINS = KeyedEntropy.from_seed(3)


def turns_of(
    columns: int, batch: int, rows: int, size: int, scheme: Scheme | None = None, **changes: Any
) -> tuple[Turns, Scales]:
    chosen = scheme or ClearScheme()
    agreed = agreement(
        mechanism="sealed",
        scheme=chosen.name,
        key_bits=chosen.key_bits[0],
        batch_size=batch,
        **changes,
    )
    scales = Scales.of(agreed, rows, size)
    return Turns.of(Terms(agreed, chosen), scales, rows, columns, size), scales


@given(
    columns=st.integers(1, 12),
    batch=st.integers(1, 12),
    short=st.integers(1, 12),
    size=st.integers(0, 20),
    seed=st.integers(0, 1000),
)
def test_the_block_product_is_the_step_and_the_next_scores(columns, batch, short, size, seed):
    """Modulo t, for values at their largest, where products of features wrap as well."""
    turns, scales = turns_of(columns, batch, 1000, size)
    ring, coins = turns.ring, COINS.fork(str(seed))
    assert turns.ahead
    largest = float(1 << (scales.feature_bits + size))
    signs = [np.sign(coins.uniform((n, columns)) - 0.5) for n in (batch, short)]
    rows, following = (largest * sign for sign in signs)
    step, share = ring.draw(batch, coins.fork("step")), ring.draw(columns, coins.fork("share"))
    matrix = turns.matrix(rows, following)
    ring.check_matrix(matrix)
    vector = turns.vector(step, share)
    ring.check_vector(vector)
    answer = ring.product(matrix, vector)
    moved = ring.product(rows.T, step)
    assert answer[:columns].tolist() == moved.tolist()
    scores = ring.product(following, ring.centred(share + moved))
    assert answer[columns:].tolist() == scores.tolist()


@given(columns=st.integers(1, 90), size=st.integers(0, 12), rate=st.sampled_from([1.0, 0.01]))
def test_digits_are_hardly_larger_than_features(columns, size, rate):
    """By half of what a sum over columns adds: that much more noise is to be drowned."""
    turns, scales = turns_of(columns, 8, 1000, size, learning_rate=rate)
    features = scales.feature_bits + size
    assert features <= turns.ring.matrix_bits <= features + (columns - 1).bit_length() // 2
    assert turns.ring.matrix_bits >= turns.low_bits - 1


# Columns at Alice, rows in a batch, bits of her largest value: what the datasets have, and beyond.
SHAPES = {
    "breast-cancer": (30, 16, 4),
    "breast-cancer, half, 32": (15, 32, 4),
    "digits": (64, 32, 4),
    "census-income": (81, 32, 7),
    "give-me-some-credit": (10, 8, 8),
    "far values": (10, 8, 12),
    "as wide as one exchange goes": (100, 20, 12),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_what_bob_learns_beside_the_answer_is_bounded_for_the_shapes_that_occur(shape):
    """The layout as it is used, entries as large as they may be."""
    columns, batch, size = SHAPES[shape]
    turns, _ = turns_of(columns, batch, 1000, size, BfvScheme())
    rows, length = columns + batch, 2 * batch + columns
    chosen, layout = STANDARD, Layout.of(rows, length)
    assert turns.ahead
    leak = chosen.leak_bits(turns.ring, rows, layout.pieces)
    print(f"{shape}: {turns.ring.matrix_bits} bits, {layout}, leak 2^-{leak:.1f}")
    assert leak >= 60
    assert chosen.failure_bits(turns.ring) > max(126, LEAST_FAILURE_BITS)


def effort(scheme: Scheme, columns: int, batch: int) -> tuple[int, int]:
    one = scheme.effort(columns + batch, 2 * batch + columns)
    return one, scheme.effort(columns, batch) + scheme.effort(batch, columns)


@pytest.mark.parametrize(
    ("columns", "batch", "ahead"),
    [
        (15, 32, True),
        (30, 16, True),
        (64, 32, True),
        (81, 32, True),
        (10, 8, True),
        (1, 1, True),
        (81, 256, False),
        (30, 455, False),
        (81, 1024, False),
    ],
)
def test_bfv_looks_ahead_where_it_takes_no_more_ciphertexts(columns, batch, ahead):
    turns, _ = turns_of(columns, batch, 2000, 4, BfvScheme())
    one, two = effort(BfvScheme(), columns, batch)
    assert turns.ahead == ahead == (one <= two)
    # The clear scheme stands for it in simulations.
    assert turns_of(columns, batch, 2000, 4)[0] == turns


@given(columns=st.integers(1, 300), batch=st.integers(1, 300))
def test_paillier_never_does_a_larger_product_has_more_powers(columns, batch):
    turns, scales = turns_of(columns, batch, 1000, 2, PaillierScheme(), learning_rate=1.0)
    assert not turns.ahead
    assert turns.ring == scales.ring(2, max(columns, batch))


def test_a_batch_beyond_the_rows_counts_as_the_rows():
    turns, _ = turns_of(5, 1000, 18, 2)
    assert turns.ahead
    assert turns.ring.terms == 2 * 18 + 5


def test_products_of_features_beyond_the_modulus_are_reduced():
    """Values of a million: X' X^T has more bits than t, and 64 more than enough."""
    turns, scales = turns_of(3, 4, 1000, 24, learning_rate=1.0)
    assert 2 * (scales.feature_bits + 24) > scales.modulus_bits == 59
    assert turns.ring.matrix_bits == scales.feature_bits + 24
    assert isinstance(turns.ring, Wrapping)
