"""Matrix-vector products in the coefficients of polynomials: exact, complete, and the fewest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.arrays import IntArray
from taciturn.crypto.bfv.layout import Layout
from taciturn.crypto.bfv.parameters import DEGREE, MOST_EXTRA_PIECES, most_pieces

LIMIT = 1 << 20
"""Entries: a sum of 8192 products of two of them is exact in int64."""
EXTREMES = [
    (1, 1),
    (1, DEGREE),
    (DEGREE, 1),
    (1, DEGREE + 1),
    (DEGREE + 1, 1),
    (3, 9000),
    (10_000, 1),
    (10_000, 3),
    (2, DEGREE),
    (2, DEGREE // 2),
    (2, DEGREE // 2 + 1),
    (40, 16),
    (81, 1024),
    (1024, 81),
]
shapes = st.tuples(st.integers(1, 400), st.integers(1, 400)) | st.sampled_from(EXTREMES)


def negacyclic(one: IntArray, two: IntArray) -> IntArray:
    """The product modulo x^N + 1, by the definition."""
    whole = np.zeros(2 * DEGREE, dtype=np.int64)
    full = np.convolve(one, two)
    whole[: len(full)] = full
    folded: IntArray = whole[:DEGREE] - whole[DEGREE:]
    return folded


def by_polynomials(layout: Layout, matrix: IntArray, vector: IntArray) -> IntArray:
    """The product as the coefficients at the places, of sums of products of polynomials."""
    products = []
    for rows in layout.groups():
        total = np.zeros(DEGREE, dtype=np.int64)
        for terms in layout.slices():
            polynomial = layout.polynomial(matrix[rows, terms])
            assert len(polynomial) <= DEGREE
            total += negacyclic(polynomial, vector[terms])
        products.append(total[layout.places(rows.stop - rows.start)])
    return np.concatenate(products)


@given(shapes, st.integers(0, 2**32 - 1))
def test_the_places_hold_the_exact_products(shape, seed):
    rows, length = shape
    draw = np.random.default_rng(seed)
    matrix = draw.integers(-LIMIT, LIMIT, shape, endpoint=True)
    vector = draw.integers(-LIMIT, LIMIT, length, endpoint=True)
    product = by_polynomials(Layout.for_shape(rows, length), matrix, vector)
    assert np.array_equal(product, np.einsum("ij,j->i", matrix, vector))


@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_every_number_of_pieces_is_exact(rows, length, pieces, seed):
    """Also those that ``of`` does not choose."""
    layout = Layout(rows, length, min(pieces, length))
    draw = np.random.default_rng(seed)
    matrix = draw.integers(-LIMIT, LIMIT, (rows, length), endpoint=True)
    vector = draw.integers(-LIMIT, LIMIT, length, endpoint=True)
    total = np.zeros(rows, dtype=np.int64)
    for terms in layout.slices():
        if vector[terms].size:
            polynomial = layout.polynomial(matrix[:, terms])
            total += negacyclic(polynomial, vector[terms])[layout.places(rows)]
    assert np.array_equal(total, np.einsum("ij,j->i", matrix, vector))


@given(
    shapes
    | st.tuples(st.integers(1, 20_000), st.integers(1, 300))
    | st.tuples(st.integers(1, 300), st.integers(1, 20_000))
)
def test_no_other_cut_needs_fewer_ciphertexts(shape):
    """By brute force over every length of a piece; of those that tie the fewest pieces.

    Cuts into more pieces than the noise was bounded for are not allowed.
    """
    rows, length = shape
    spans = np.arange(1, min(length, DEGREE) + 1)
    pieces = -(-length // spans)
    answers = -(-rows // (DEGREE // spans))
    pairs = zip((pieces + answers).tolist(), pieces.tolist(), strict=True)
    best = min(pair for pair in pairs if pair[1] <= most_pieces(length))
    layout = Layout.for_shape(rows, length)
    assert (layout.pieces + layout.answers, layout.pieces) == best
    # Every term and every row once, in order; every place of its own and below the degree.
    terms = [at for piece in layout.slices() for at in range(length)[piece]]
    assert terms == list(range(length))
    assert [at for group in layout.groups() for at in range(rows)[group]] == list(range(rows))
    assert len(list(layout.slices())) == layout.pieces
    assert all(piece.start < piece.stop for piece in layout.slices())
    assert len(list(layout.groups())) == layout.answers
    places = layout.places(min(rows, layout.rows_per_answer))
    assert len(set(places.tolist())) == len(places)
    assert 0 <= places.min() <= places.max() < DEGREE


@pytest.mark.parametrize("length", [1, 81, DEGREE, DEGREE + 1, 1 << 20])
def test_the_most_pieces_are_a_few_more_than_the_least(length):
    assert most_pieces(length) == -(-length // DEGREE) + MOST_EXTRA_PIECES
    assert Layout.for_shape(10**6, length).pieces <= most_pieces(length)
