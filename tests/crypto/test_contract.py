"""What every scheme must do, whatever it hides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from taciturn.crypto.base import Capacity, EncryptedAnswer, EncryptedVector, Mask
from taciturn.errors import CryptoError
from taciturn.rng import KeyedEntropy, SystemEntropy
from tests.crypto.schemes import (
    MOST_BITS,
    SCHEMES,
    answered,
    exchange,
    fits,
    ints,
    key_pair,
    oracle,
)
from tests.expected import refused

pytestmark = pytest.mark.parametrize("name", SCHEMES)
CAPACITY = Capacity(vector_bits=20, matrix_bits=12, terms=8)


@st.composite
def problems(draw):
    capacity = Capacity(
        vector_bits=draw(st.integers(0, 28)),
        matrix_bits=draw(st.integers(0, 28)),
        terms=draw(st.sampled_from([1, 2, 5, 8, 64])),
    )
    length, rows = draw(st.integers(1, min(capacity.terms, 6))), draw(st.integers(1, 12))

    def entry(bits: int) -> st.SearchStrategy[int]:
        limit = 1 << bits
        return st.sampled_from([-limit, limit, 0]) | st.integers(-limit, limit)

    vector = draw(st.lists(entry(capacity.vector_bits), min_size=length, max_size=length))
    row = st.lists(entry(capacity.matrix_bits), min_size=length, max_size=length)
    matrix = draw(st.lists(row, min_size=rows, max_size=rows))
    return capacity, np.array(matrix, dtype=np.int64), np.array(vector, dtype=np.int64)


@pytest.mark.sampled(1)
@given(problem=problems())
def test_product_equals_python_integers(name, problem):
    capacity, matrix, vector = problem
    assume(fits(name, capacity))
    result = exchange(*key_pair(name, capacity), matrix, vector, SystemEntropy())
    assert result.dtype == np.int64
    assert result.tolist() == oracle(matrix, vector)


@pytest.mark.parametrize(("rows", "length"), [(1, 1), (40, 1), (1, 8), (25, 8)])
def test_a_prepared_matrix_of_any_shape_and_layout_serves_any_number_of_vectors(name, rows, length):
    secret, public = key_pair(name, CAPACITY)
    entropy, limit = KeyedEntropy.from_seed(rows), 1 << CAPACITY.matrix_bits
    drawn = entropy.integers(2 * limit, rows * length).astype(np.int64) - limit
    matrix, zero = drawn.reshape(rows, length), np.zeros(length, dtype=np.int64)
    before = matrix.copy()
    for form in (matrix, np.asfortranarray(matrix), matrix.astype(np.float64), 0 * matrix):
        prepared = public.prepare(form)
        assert (prepared.rows, prepared.length) == (rows, length)
        for vector in (zero, entropy.integers(1 << 21, length).astype(np.int64) - (1 << 20)):
            mask = public.draw_mask(rows, entropy)
            encrypted = secret.encrypt(vector, rows, entropy)
            answer = public.masked_product(prepared, encrypted, mask, entropy)
            product = public.unmask(secret.decrypt(answer, length), mask)
            assert product.tolist() == oracle(form.astype(np.int64), vector)
    assert np.array_equal(matrix, before)


@pytest.mark.parametrize(
    "capacity",
    [
        Capacity(20, 12, 8),
        Capacity(24, 22, 8),  # The widest that one prime of bfv answers.
        Capacity(24, 23, 8),
        Capacity(25, 25, 8),
        Capacity(25, 25, 9),
        Capacity(30, 24, 16),  # The widest of bfv.
        Capacity(30, 28, 16),
    ],
    ids=lambda capacity: f"{capacity.product_bits}-bits",
)
@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, -1)])
def test_extremes_at_the_capacity(name, capacity, signs):
    if not fits(name, capacity):
        pytest.skip(f"{name} holds {MOST_BITS[name]} bits")
    matrix = np.full((7, capacity.terms), signs[0] << capacity.matrix_bits)
    matrix[1::2] *= -1
    vector = np.full(capacity.terms, signs[1] << capacity.vector_bits)
    result = exchange(*key_pair(name, capacity), matrix, vector, SystemEntropy())
    assert result.tolist() == oracle(matrix, vector)


def test_public_key_survives_the_wire(name):
    secret, public = key_pair(name, CAPACITY)
    assert public.capacity == secret.public.capacity == CAPACITY
    assert public.modulus == secret.public.modulus
    assert public.to_bytes() == secret.public.to_bytes()


def test_byte_counts_depend_on_lengths_only(name):
    secret, public = key_pair(name, CAPACITY)
    entropy = SystemEntropy()
    sizes = set()
    for vector in (ints(0, 0), ints(1, -1), ints(1 << 20, -(1 << 20))):
        for fill in (0, 1, -(1 << 12)):
            encrypted = secret.encrypt(vector, 9, entropy)
            matrix = public.prepare(np.full((9, 2), fill, dtype=np.int64))
            mask = public.draw_mask(9, entropy)
            answer = public.masked_product(matrix, encrypted, mask, entropy)
            sizes.add((len(encrypted.data), encrypted.length, len(answer.data), answer.length))
    assert len(sizes) == 1


def test_seeded_entropy_repeats_every_result_and_every_byte_but_those_of_bfv(name):
    """SEAL encrypts with randomness of the operating system; what is decrypted is the same."""

    def once() -> tuple[tuple[object, ...], tuple[object, ...]]:
        scheme, entropy = SCHEMES[name], KeyedEntropy.from_seed(3)
        secret = scheme.generate(scheme.key_bits[0], CAPACITY, entropy)
        mask = secret.public.draw_mask(2, entropy)
        encrypted = secret.encrypt(ints(1, 2), 2, entropy)
        prepared = secret.public.prepare(np.array([[1, 2], [3, 4]]))
        answer = secret.public.masked_product(prepared, encrypted, mask, entropy)
        masked = secret.decrypt(answer, 2)
        assert secret.public.unmask(masked, mask).tolist() == [5, 11]
        return (mask, masked, secret.public.to_bytes()), (encrypted, answer)

    (seen, sent), (seen_again, sent_again) = once(), once()
    assert seen == seen_again
    if name == "bfv":
        assert all(one != two for one, two in zip(sent, sent_again, strict=True))
    else:
        assert sent == sent_again


@pytest.mark.parametrize("ahead", ["alice", "bob", "both", "twice"])
def test_what_is_made_ahead_changes_no_result(name, ahead):
    secret, public = key_pair(name, CAPACITY)
    entropy, vector = SystemEntropy(), ints(1, -2, 3)
    matrix = np.arange(-15, 15).reshape(10, 3)
    prepared = public.prepare(matrix)
    mask = public.draw_mask(10, entropy)
    for _ in range(2 if ahead == "twice" else 1):
        if ahead != "alice":
            secret.stock(10, 3, entropy)
        if ahead != "bob":
            public.stock(prepared, mask, entropy)
    for _ in range(2):
        encrypted = secret.encrypt(vector, 10, entropy)
        answer = public.masked_product(prepared, encrypted, mask, entropy)
        product = public.unmask(secret.decrypt(answer, 3), mask)
        assert product.tolist() == oracle(matrix, vector)
    # What was made ahead and not used does no harm to what comes after.
    public.stock(prepared, mask, entropy)
    for count in (10, 1, 4):
        result = exchange(secret, public, matrix[:count], vector, entropy)
        assert result.tolist() == oracle(matrix[:count], vector)


@pytest.mark.parametrize("other", ["shape", "mask"])
def test_what_was_made_ahead_for_another_shape_or_mask_leaves_no_product_bare(name, other):
    """A mistake, which must not show Bob an unmasked product."""
    secret, public = key_pair(name, CAPACITY)
    entropy, mask = SystemEntropy(), public.draw_mask(4, SystemEntropy())
    narrow = public.prepare(np.full((4, 2), 7))
    if other == "shape":
        public.stock(public.prepare(np.full((4, 5), 3)), mask, entropy)
    else:
        public.stock(narrow, public.draw_mask(4, entropy), entropy)
    encrypted = secret.encrypt(ints(1, 2), 4, entropy)
    masked = secret.decrypt(public.masked_product(narrow, encrypted, mask, entropy), 2)
    assert 21 not in masked  # Unless a mask is zero: one run in 2^33.
    assert public.unmask(masked, mask).tolist() == [21] * 4


@pytest.mark.parametrize("ahead", [True, False])
def test_no_ciphertext_comes_twice_whether_made_ahead_or_not(name, ahead):
    """Equal vectors, matrices and masks: all that differs is what was drawn."""
    if name == "clear":
        pytest.skip("nothing is drawn")
    secret, public = key_pair(name, CAPACITY)
    entropy, prepared = SystemEntropy(), public.prepare(np.full((4, 2), 7))
    mask = public.draw_mask(4, entropy)
    vectors, answers, decrypted = set(), set(), set()
    for _ in range(4):
        if ahead:
            secret.stock(4, 2, entropy)
            public.stock(prepared, mask, entropy)
        encrypted = secret.encrypt(ints(1, 1), 4, entropy)
        half = len(encrypted.data) // 2
        vectors |= {encrypted.data[:half], encrypted.data[half:]}
        for _ in range(2):
            answer = public.masked_product(prepared, encrypted, mask, entropy)
            answers.add(answer.data)
            decrypted.add(secret.decrypt(answer, 2))
    assert (len(vectors), len(answers), len(decrypted)) == (8, 8, 1)


def test_another_key_gives_other_numbers_or_an_error(name):
    if name == "clear":
        pytest.skip("it has no key")
    (secret, public), (other, stranger) = (key_pair(name, CAPACITY, seed) for seed in (0, 1))
    assert public.to_bytes() != stranger.to_bytes()
    entropy = SystemEntropy()
    mask = public.draw_mask(8, entropy)
    answer = answered(secret, public, np.full((8, 2), 3), ints(5, 5), mask, entropy)
    right = secret.decrypt(answer, 2)
    assert public.unmask(right, mask).tolist() == [30] * 8
    try:
        # Equal entries by chance: 8 in 2^36.
        assert not set(right) & set(other.decrypt(answer, 2))
    except CryptoError:
        return


def test_another_mask_gives_another_product_or_an_error(name):
    secret, public = key_pair(name, CAPACITY)
    entropy = SystemEntropy()
    mask, other = public.draw_mask(1, entropy), public.draw_mask(1, entropy)
    answer = answered(secret, public, np.array([[2]]), ints(21), mask, entropy)
    masked = secret.decrypt(answer, 1)
    assert public.unmask(masked, mask).tolist() == [42]
    # Where every residue is a product (bfv) there is another one, else an error; neither but with
    # a probability of 2^-28.
    if name == "bfv":
        assert public.unmask(masked, other).tolist() != [42]
        return
    with refused(CryptoError):
        public.unmask(masked, other)


def test_reprs_hold_no_payload(name):
    secret, public = key_pair(name, CAPACITY)
    mask = public.draw_mask(1, SystemEntropy())
    assert str(mask.values[0]) not in repr(mask)
    encrypted = secret.encrypt(ints(77777), 1, SystemEntropy())
    assert repr(encrypted) == "EncryptedVector(length=1)"
    prepared = public.prepare(np.array([[1234]]))
    assert repr(prepared) == "PreparedMatrix(rows=1, length=1)"
    answer = public.masked_product(prepared, encrypted, mask, SystemEntropy())
    assert repr(answer) == "EncryptedAnswer(length=1)"
    assert len(repr(secret)) < 400


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(ints(), id="empty"),
        pytest.param(np.zeros(9, dtype=np.int64), id="too-long"),
        pytest.param(np.zeros((2, 2), dtype=np.int64), id="two-dimensional"),
        pytest.param(ints((1 << 20) + 1), id="above"),
        pytest.param(ints(-(1 << 20) - 1), id="below"),
        pytest.param(ints(-(1 << 63)), id="smallest-int64"),
        pytest.param(np.array([1.0]), id="floats"),
        pytest.param(np.array([1], dtype=np.int32), id="int32"),
        pytest.param(np.array([1], dtype=np.uint64), id="uint64"),
    ],
)
def test_encrypt_refuses(name, vector):
    secret, _ = key_pair(name, CAPACITY)
    with refused(CryptoError) as raised:
        secret.encrypt(vector, 1, SystemEntropy())
    # No error shows a secret.
    assert str((1 << 20) + 1) not in str(raised.value)


@pytest.mark.parametrize(
    "matrix",
    [
        pytest.param(np.zeros((2, 2), dtype=np.int64), id="narrow"),
        pytest.param(np.zeros((2, 4), dtype=np.int64), id="wide"),
        pytest.param(np.zeros((0, 3), dtype=np.int64), id="no-rows"),
        pytest.param(np.zeros((3, 3), dtype=np.int64), id="more-rows-than-masks"),
        pytest.param(ints(1, 2, 3), id="one-dimensional"),
        pytest.param(np.full((2, 3), (1 << 12) + 1), id="above"),
        pytest.param(np.full((2, 3), -(1 << 12) - 1), id="below"),
        pytest.param(np.zeros((2, 3), dtype=np.float32), id="float32"),
        pytest.param(np.full((2, 3), np.nan), id="nan"),
        pytest.param(np.zeros((2, 3), dtype=np.int32), id="int32"),
    ],
)
def test_product_refuses_matrix(name, matrix):
    secret, public = key_pair(name, CAPACITY)
    entropy = SystemEntropy()
    vector, mask = secret.encrypt(ints(1, 2, 3), 2, entropy), public.draw_mask(2, entropy)
    with pytest.raises(CryptoError):
        public.masked_product(public.prepare(matrix), vector, mask, entropy)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda v: replace(v, data=v.data[:-1]), id="cut"),
        pytest.param(lambda v: replace(v, data=v.data + b"\0"), id="one-byte-more"),
        pytest.param(lambda v: replace(v, data=v.data + v.data), id="doubled"),
        pytest.param(lambda v: replace(v, data=b""), id="empty"),
        pytest.param(lambda v: replace(v, length=2), id="length-too-small"),
        pytest.param(lambda v: replace(v, length=4), id="length-too-large"),
        pytest.param(lambda v: EncryptedVector(v.data * 3, 9), id="more-terms-than-capacity"),
    ],
)
def test_product_refuses_vector_bytes(name, spoil):
    secret, public = key_pair(name, CAPACITY)
    entropy = SystemEntropy()
    vector = spoil(secret.encrypt(ints(1, 2, 3), 1, entropy))
    mask = public.draw_mask(1, entropy)
    if vector.length == CAPACITY.terms + 1:
        with refused(CryptoError):
            public.prepare(np.ones((1, vector.length), dtype=np.int64))
    for length in {3, min(vector.length, CAPACITY.terms)}:
        if name == "bfv" and length == vector.length != 3:
            continue  # One ciphertext holds 2, 3 or 4 entries: a wrong number of them is no error.
        prepared = public.prepare(np.ones((1, length), dtype=np.int64))
        with pytest.raises(CryptoError):
            public.masked_product(prepared, vector, mask, entropy)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda a: replace(a, data=a.data[:-1]), id="cut"),
        pytest.param(lambda a: replace(a, data=a.data + b"\0"), id="one-byte-more"),
        pytest.param(lambda a: replace(a, data=b""), id="empty"),
        pytest.param(lambda a: replace(a, length=0), id="length-zero"),
        pytest.param(lambda a: replace(a, length=-1), id="length-negative"),
        pytest.param(lambda a: replace(a, length=100), id="length-too-large"),
        pytest.param(lambda a: replace(a, length=1 << 80), id="length-absurd"),
        pytest.param(lambda a: EncryptedAnswer(b"", 0), id="nothing"),
    ],
)
def test_decrypt_refuses_answer_bytes(name, spoil):
    secret, public = key_pair(name, CAPACITY)
    entropy = SystemEntropy()
    matrix, mask = np.ones((20, 2), dtype=np.int64), public.draw_mask(20, entropy)
    answer = answered(secret, public, matrix, ints(1, 2), mask, entropy)
    with pytest.raises(CryptoError):
        secret.decrypt(spoil(answer), 2)


def test_masks_and_residues_of_another_length_or_range_are_refused(name):
    secret, public = key_pair(name, CAPACITY)
    entropy = SystemEntropy()
    vector, matrix = secret.encrypt(ints(1), 1, entropy), public.prepare(np.array([[1]]))
    for mask in (Mask(()), Mask((1, 2)), Mask((-1,)), Mask((public.modulus,))):
        with pytest.raises(CryptoError):
            public.masked_product(matrix, vector, mask, entropy)
        if name == "bfv" and len(mask.values) == 1:
            # Modulo the modulus any number is a mask: there is no wrong one to subtract.
            assert public.unmask((0,), mask).tolist() == [-mask.values[0] % public.modulus]
            continue
        with pytest.raises(CryptoError):
            public.unmask((0,), mask)
    with pytest.raises(CryptoError):
        public.draw_mask(0, entropy)
    mask = public.draw_mask(1, entropy)
    for residues in ((-1,), (public.modulus,), (), (1, 2)):
        with pytest.raises(CryptoError):
            public.unmask(residues, mask)


def test_unmask_refuses_one_beyond_the_capacity(name):
    """Where there is such a residue: those of bfv are the products of the capacity and no more."""
    secret, public = key_pair(name, CAPACITY)
    entropy = KeyedEntropy.from_seed(5)
    limit, mask = 1 << CAPACITY.product_bits, public.draw_mask(1, entropy)
    answer = answered(secret, public, np.array([[0]]), ints(0), mask, entropy)
    (zero,) = secret.decrypt(answer, 1)
    for product in (limit, -limit):
        assert public.unmask(((zero + product) % public.modulus,), mask).tolist() == [product]
    for product in (limit + 1, -limit - 1):
        masked = ((zero + product) % public.modulus,)
        if name == "bfv":
            assert public.modulus == 2 * limit + 1
            assert public.unmask(masked, mask).tolist() == [-limit if product > 0 else limit]
            continue
        with refused(CryptoError):
            public.unmask(masked, mask)


def test_key_sizes_not_offered_are_refused(name):
    scheme = SCHEMES[name]
    key = key_pair(name, CAPACITY)[1].to_bytes()
    for bits in (-1, 1, 1024):
        with refused(CryptoError):
            scheme.generate(bits, CAPACITY, SystemEntropy())
        with refused(CryptoError):
            scheme.read_public(key, bits, CAPACITY)


def test_public_keys_of_another_length_are_refused(name):
    scheme = SCHEMES[name]
    key = key_pair(name, CAPACITY)[1].to_bytes()
    for data in (key + b"\1", key[:-1] or b"\1"):
        with refused(CryptoError):
            scheme.read_public(data, scheme.key_bits[0], CAPACITY)
