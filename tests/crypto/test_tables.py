"""Products with whole tables: exact modulo a power of two, whatever lies in the vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.arrays import IntArray
from taciturn.crypto.base import Capacity, EncryptedVector, Scheme, TableSize, Wrapping
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.bfv.layout import Tiling
from taciturn.crypto.bfv.parameters import DEGREE
from taciturn.crypto.clear import ClearScheme
from taciturn.crypto.paillier import PaillierScheme
from taciturn.errors import CryptoError
from taciturn.rng import Entropy, KeyedEntropy, SystemEntropy
from tests.crypto.schemes import key_pair, transposed_product
from tests.expected import refused

NAMES = ["bfv", "clear"]
RING = Wrapping.with_modulus(modulus_bits=59, matrix_bits=20, terms=DEGREE)
NARROW = Wrapping.with_modulus(modulus_bits=50, matrix_bits=16, terms=DEGREE)
COINS = SystemEntropy()


def entries(ring: Wrapping, size: TableSize, entropy: Entropy) -> IntArray:
    limit = 1 << ring.matrix_bits
    drawn = entropy.integers(2 * limit + 1, size.rows * size.columns).astype(np.int64) - limit
    return drawn.reshape(size.rows, size.columns)


def oracle(table: IntArray, vector: IntArray, mask: IntArray, bits: int) -> list[int]:
    """By Python's integers."""
    half = 1 << (bits - 1)
    sums = table.astype(object) @ vector.astype(object) + mask.astype(object)
    return [(int(entry) + half) % (1 << bits) - half for entry in sums]


def passed(
    name: str, ring: Wrapping, whole: IntArray, vectors: tuple[IntArray, IntArray], memory: int
) -> None:
    """Both products with one table, twice: what is kept serves again."""
    secret, public = key_pair(name, ring)
    table, size = public.table(whole, memory), TableSize(*whole.shape)
    assert table.size == size
    rows, columns = vectors
    for _ in range(2):
        mask = ring.draw(size.columns, COINS)
        sent = secret.encrypt_rows(rows, size, COINS)
        answer = transposed_product(table, sent, mask, COINS)
        sums = secret.decrypt_columns(answer, size)
        assert sums.tolist() == oracle(whole.T, rows, mask, ring.modulus_bits)
        mask = ring.draw(size.rows, COINS)
        sent = secret.encrypt_columns(columns, size, COINS)
        answer = table.product(sent, mask, COINS)
        sums = secret.decrypt_rows(answer, size)
        assert sums.dtype == np.int64
        assert sums.tolist() == oracle(whole, columns, mask, ring.modulus_bits)
    table.close()


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=6, deadline=None)
@given(
    ring=st.sampled_from([RING, NARROW]),
    rows=st.integers(1, 200) | st.sampled_from([1, DEGREE + 1]),
    columns=st.sampled_from([1, 2, 3, 17]),
    seed=st.integers(0, 2**32),
    memory=st.sampled_from([0, 400_000, 1 << 30]),
)
@pytest.mark.sampled(1)
def test_products_with_uniform_vectors_are_exact_modulo_the_power(
    name, ring, rows, columns, seed, memory
):
    entropy = KeyedEntropy.from_seed(seed)
    whole = entries(ring, TableSize(rows, columns), entropy)
    passed(name, ring, whole, (ring.draw(rows, entropy), ring.draw(columns, entropy)), memory)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 9000), (9000, 1), (8200, 3), (300, 100)])
def test_shapes_of_several_tiles(name, rows, columns):
    entropy = KeyedEntropy.from_seed(rows)
    whole = np.asfortranarray(entries(RING, TableSize(rows, columns), entropy))
    passed(name, RING, whole, (RING.draw(rows, entropy), RING.draw(columns, entropy)), 1 << 30)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_of_everything_is_exact(name, sign):
    whole = np.full((2000, 5), sign << RING.matrix_bits)
    lowest = -(1 << RING.vector_bits)
    passed(name, RING, whole, (np.full(2000, lowest), np.full(5, lowest)), 1 << 30)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("filled", [False, True])
def test_tiles_of_zeros_count_as_zeros(name, filled):
    """SEAL refuses a product with a zero polynomial."""
    whole = np.zeros((DEGREE + 10, 3), dtype=np.int64)
    if filled:
        whole[-1, 1] = -7
    rows = RING.draw(len(whole), COINS)
    passed(name, RING, whole, (rows, RING.draw(3, COINS)), 1 << 30)


# The layout


def convolved(one: dict[int, int], two: dict[int, int]) -> dict[int, int]:
    """The product of sparse polynomials modulo ``x^N + 1``."""
    product: dict[int, int] = {}
    for i, a in one.items():
        for j, b in two.items():
            place, sign = (i + j) % DEGREE, -1 if i + j >= DEGREE else 1
            product[place] = product.get(place, 0) + sign * a * b
    return product


def sparse(places: slice, values: list[int]) -> dict[int, int]:
    return dict(zip(range(DEGREE)[places], values, strict=True))


@settings(max_examples=40, deadline=None)
@given(height=st.integers(1, 12), width=st.integers(1, 12), data=st.data())
def test_a_tile_holds_both_products(height, width, data):
    """In a ring of any size that holds it; also tiles that the table's end cuts off."""
    stretch = data.draw(st.sampled_from([1, DEGREE // (height * width)]))
    tiling = Tiling(TableSize(height * stretch, width), height * stretch, width)
    rows, columns = data.draw(st.integers(1, height)), data.draw(st.integers(1, width))
    block = np.arange(1, rows * columns + 1).reshape(rows, columns) ** 3
    plain = {at: int(value) for at, value in enumerate(tiling.polynomial(block)) if value}
    values = [7**i for i in range(max(rows, columns))]
    sent = sparse(tiling.rows.sent(rows), values[:rows][::-1])
    sums = convolved(plain, sent)
    places = range(DEGREE)[tiling.columns.answered(columns)]
    assert [sums[place] for place in places] == (block.T @ values[:rows]).tolist()
    sent = sparse(tiling.columns.sent(columns), values[:columns][::-1])
    sums = convolved(plain, sent)
    places = range(DEGREE)[tiling.rows.answered(rows)]
    assert [sums[place] for place in places] == (block @ values[:columns]).tolist()


@settings(max_examples=40, deadline=None)
@given(rows=st.integers(1, 100_000), columns=st.integers(1, 300))
def test_the_tiling_has_the_fewest_ciphertexts_and_covers_the_table(rows, columns):
    tiling = Tiling.for_size(TableSize(rows, columns))
    assert tiling.height * tiling.width <= DEGREE
    least = min(
        -(-rows // (DEGREE // width)) + -(-columns // width) for width in range(1, columns + 1)
    )
    assert tiling.rows.tiles + tiling.columns.tiles == least
    for side, length in ((tiling.rows, rows), (tiling.columns, columns)):
        covered = np.concatenate([np.arange(length)[tile] for tile in side.slices()])
        assert np.array_equal(covered, np.arange(length))
        assert len(side.slices()) == side.tiles


@pytest.mark.parametrize(("rows", "columns"), [(569, 30), (9000, 3)])
def test_the_bytes_are_those_of_the_ciphertexts(rows, columns):
    """21 bytes a coefficient and a seed to Alice; 13 to Bob, and of c0 the entries alone."""
    secret, public = key_pair("bfv", RING)
    size = TableSize(rows, columns)
    table, tiling = public.table(np.ones((rows, columns), dtype=np.int64)), Tiling.for_size(size)
    sent = secret.encrypt_rows(RING.draw(rows, COINS), size, COINS)
    answer = transposed_product(table, sent, RING.draw(columns, COINS), COINS)
    assert len(sent.data) == tiling.rows.tiles * (21 * DEGREE + 64)
    assert len(answer.data) == 13 * (tiling.columns.tiles * DEGREE + columns)


# Parts of rows

PARTED: dict[str, Scheme] = {"bfv": BfvScheme(part_tiles=2), "clear": ClearScheme(part_tiles=2)}


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_of_a_vector_add_up_and_each_has_an_answer(name):
    scheme, size = PARTED[name], TableSize(4 * DEGREE + 9, 2)
    secret = scheme.generate(scheme.key_bits[0], RING, COINS)
    public = scheme.read_public(secret.public.to_bytes(), scheme.key_bits[0], RING)
    whole, parts = entries(RING, size, COINS), scheme.row_parts(size)
    assert len(parts) == 3
    assert [0, *(part.stop for part in parts)] == [*(part.start for part in parts), size.rows]
    table = public.table(whole)
    rows, columns = RING.draw(size.rows, COINS), RING.draw(size.columns, COINS)
    vectors = [secret.encrypt_rows(rows[part], size, COINS, part) for part in parts]
    total = table.sum_over_rows(columns, COINS)
    for vector, part in zip(vectors, parts, strict=True):
        with refused(CryptoError):
            total.result()
        for other in (None, *(other for other in parts if other != part)):
            with refused(CryptoError):
                total.add(vector, other)
        total.add(vector, part)
    with refused(CryptoError):
        total.add(vectors[-1], parts[-1])
    sums = secret.decrypt_columns(total.result(), size)
    assert sums.tolist() == oracle(whole.T, rows, columns, 59)
    sent = secret.encrypt_columns(columns, size, COINS)
    answers = [table.product(sent, rows[part], COINS, part) for part in parts]
    sums = np.concatenate(
        [secret.decrypt_rows(one, size, part) for one, part in zip(answers, parts, strict=True)]
    )
    assert np.array_equal(sums, RING.centred(whole @ columns + rows))
    for other in (None, slice(1, 2), slice(0, size.rows)):
        with refused(CryptoError):
            table.product(sent, rows, COINS, other)
    table.close()


@pytest.mark.parametrize("rows", [1, 39_073, 1_000_000, 1_048_576, 3_000_000, 10_000_000])
def test_a_part_is_a_million_rows_and_fits_a_frame(rows):
    for columns in (1, 50, 1000):
        size = TableSize(rows, columns)
        parts, tiling = BfvScheme().row_parts(size), Tiling.for_size(size)
        assert parts == ClearScheme().row_parts(size)
        if columns <= 50:
            assert len(parts) == -(-rows // (128 * DEGREE))
        for part in parts:
            tiles = len(tiling.row_tiles(part))
            sent, answered = 21 * DEGREE + 64, 13 * (DEGREE + tiling.height)
            assert tiles * max(sent, answered) <= 32 << 20


# What is refused


@pytest.mark.parametrize("name", NAMES)
def test_other_lengths_are_refused(name):
    secret, public = key_pair(name, RING)
    size, other = TableSize(30, 4), TableSize(31, 4)
    table = public.table(np.ones((30, 4), dtype=np.int64))
    rows, columns = RING.draw(30, COINS), RING.draw(4, COINS)
    sent = secret.encrypt_rows(rows, size, COINS)
    for call in (
        lambda: secret.encrypt_rows(rows, other, COINS),
        lambda: secret.encrypt_columns(rows, size, COINS),
        lambda: secret.encrypt_rows(rows.astype(np.float64), size, COINS),
        lambda: secret.encrypt_rows(rows.reshape(30, 1), size, COINS),
        lambda: transposed_product(table, sent, rows, COINS),
        lambda: table.product(sent, rows, COINS),
        lambda: transposed_product(table, replace(sent, data=sent.data[:-1]), columns, COINS),
        lambda: transposed_product(table, replace(sent, data=sent.data + b"x"), columns, COINS),
        lambda: transposed_product(table, replace(sent, data=b""), columns, COINS),
        lambda: transposed_product(table, replace(sent, length=31), columns, COINS),
        lambda: transposed_product(table, EncryptedVector(b"", 0), columns, COINS),
    ):
        with pytest.raises(CryptoError):
            call()
    answer = transposed_product(table, sent, columns, COINS)
    for spoilt in (
        replace(answer, data=answer.data[:-1]),
        replace(answer, data=answer.data + b"x"),
        replace(answer, length=5),
        replace(answer, length=0),
    ):
        with pytest.raises(CryptoError):
            secret.decrypt_columns(spoilt, size)
    with pytest.raises(CryptoError):
        secret.decrypt_rows(answer, size)


@pytest.mark.parametrize("name", NAMES)
def test_values_out_of_range_are_refused(name):
    secret, public = key_pair(name, RING)
    beyond = (1 << RING.vector_bits) + 1
    with refused(CryptoError):
        secret.encrypt_rows(np.array([0, beyond]), TableSize(2, 1), COINS)
    with refused(CryptoError):
        public.table(np.full((2, 2), (1 << RING.matrix_bits) + 1))
    whole = np.ones((2, 2), dtype=np.int64)
    unfit: list[np.ndarray] = [whole[0], whole[:0], whole.astype(np.float64)]
    for table in unfit:
        with refused(CryptoError):
            public.table(table)


@pytest.mark.parametrize("at", [0, 8 * DEGREE, 13 * DEGREE])
def test_a_coefficient_beyond_its_prime_is_refused(at):
    secret, public = key_pair("bfv", RING)
    size = TableSize(30, 4)
    sent = secret.encrypt_rows(RING.draw(30, COINS), size, COINS)
    table = public.table(np.ones((30, 4), dtype=np.int64))
    spoilt = sent.data[:at] + b"\xff" * 8 + sent.data[at + 8 :]
    with refused(CryptoError):
        transposed_product(table, EncryptedVector(spoilt, 30), RING.draw(4, COINS), COINS)
    answer = transposed_product(table, sent, RING.draw(4, COINS), COINS)
    for place in (0, 8 * 4, len(answer.data) - 8):
        data = answer.data[:place] + b"\xff" * 8 + answer.data[place + 8 :]
        with refused(CryptoError):
            secret.decrypt_columns(replace(answer, data=data), size)


@pytest.mark.parametrize("name", NAMES)
def test_tables_need_a_key_that_wraps(name):
    secret, public = key_pair(name, Capacity(8, 8, 4))
    with refused(CryptoError):
        public.table(np.ones((2, 2), dtype=np.int64))
    with refused(CryptoError):
        secret.encrypt_rows(np.ones(2, dtype=np.int64), TableSize(2, 2), COINS)


def test_a_table_that_a_single_pass_would_not_hide_is_refused():
    _, public = key_pair("bfv", Wrapping.with_modulus(modulus_bits=59, matrix_bits=47, terms=4000))
    public.table(np.ones((10, 2), dtype=np.int64)).close()
    with refused(CryptoError, names=4000):
        public.table(np.ones((4000, 2), dtype=np.int64))


@pytest.mark.parametrize("sizes", [(0, 1), (1, 0), (-1, 3)])
def test_empty_tables_are_refused(sizes):
    with pytest.raises(CryptoError):
        TableSize(*sizes)


def test_paillier_has_no_products_of_whole_tables():
    secret, public = key_pair("paillier-small-key", Wrapping.with_modulus(50, 16, 40))
    size, ones = TableSize(2, 2), np.ones(2, dtype=np.int64)
    for call in (
        lambda: PaillierScheme().check_tables(RING, TableSize(10, 2), products=1),
        lambda: public.table(np.ones((2, 2), dtype=np.int64)),
        lambda: secret.encrypt_rows(ones, size, COINS),
        lambda: secret.encrypt_columns(ones, size, COINS),
    ):
        with refused(CryptoError, names="bfv"):
            call()
