"""Entropy: the same key gives the same draws, and every draw is what it says."""

from __future__ import annotations

import hmac
import itertools
from collections import Counter

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, kstest

from taciturn.errors import ConfigError

# private: a source whose bytes the test knows
from taciturn.rng import Entropy, KeyedEntropy, SystemEntropy, _ByteSource
from tests.expected import refused

KEY = bytes(range(32))

# RFC 8439 appendix A.1, test vectors 1 and 2: key 0, nonce 0, blocks 0 and 1.
RFC8439_BLOCKS = bytes.fromhex(
    "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
    "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
)

# RFC 8439 appendix A.1, test vector 3: key 0...01, nonce 0, block 1.
RFC8439_OTHER_KEY = bytes.fromhex(
    "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
    "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0"
)


class ListedBytes(_ByteSource):
    """Hands out the given bytes, then stops the test."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def token(self, size: int) -> bytes:
        if size > len(self.data):
            raise EOFError
        head, self.data = self.data[:size], self.data[size:]
        return head


def chacha20(key: bytes, size: int) -> bytes:
    return Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(size))


def keystream(key: bytes, size: int) -> bytes:
    return chacha20(hmac.digest(key, b"stream", "sha256"), size)


def test_the_cipher_underneath_is_rfc_8439():
    assert chacha20(bytes(32), 128) == RFC8439_BLOCKS
    assert chacha20(bytes(31) + b"\x01", 128)[64:] == RFC8439_OTHER_KEY


def test_stream_and_forks_are_derived_under_distinct_labels():
    assert KeyedEntropy(KEY).token(64) == keystream(KEY, 64)
    fork = KeyedEntropy(KEY).fork("masks")
    assert fork.key == hmac.digest(KEY, b"fork masks", "sha256")
    assert fork.token(64) == keystream(fork.key, 64)


@given(
    st.lists(
        st.one_of(
            st.integers(0, 100),
            st.sampled_from([4095, 4096, 4097, 8191, 8192, 8193]),
            st.integers(0, 20_000),
        ),
        max_size=12,
    )
)
def test_stream_does_not_depend_on_the_request_sizes(sizes):
    entropy = KeyedEntropy(KEY)
    parts = [entropy.token(size) for size in sizes]
    assert [len(part) for part in parts] == sizes
    assert b"".join(parts) == keystream(KEY, sum(sizes))


def draws(entropy: Entropy) -> list[object]:
    return [
        entropy.token(7),
        entropy.below(10**40),
        entropy.uniform((2, 3)).tolist(),
        entropy.words(5).tolist(),
        entropy.integers(10**6, 5).tolist(),
        entropy.permutation(9).tolist(),
    ]


def test_same_key_same_draws_other_key_others():
    assert draws(KeyedEntropy(KEY)) == draws(KeyedEntropy(KEY))
    assert draws(KeyedEntropy.from_seed(3)) == draws(KeyedEntropy.from_seed(3))
    seeds = [KeyedEntropy.from_seed(seed).token(16) for seed in (-1, 0, 1, 11, 2**70)]
    assert len(set(seeds)) == len(seeds)
    assert KeyedEntropy.from_system().key != KeyedEntropy.from_system().key


def test_forks_do_not_depend_on_what_the_parent_drew_or_disturb_it():
    quiet, busy = KeyedEntropy(KEY), KeyedEntropy(KEY)
    busy.token(5000)
    assert quiet.fork("masks").token(64) == busy.fork("masks").token(64)
    assert busy.token(10) == keystream(KEY, 5010)[5000:]


def test_forks_differ_by_purpose_and_from_the_parent():
    entropy = KeyedEntropy(KEY)
    streams = [
        entropy.token(32),
        entropy.fork("").token(32),
        entropy.fork("a").token(32),
        entropy.fork("ab").token(32),
        entropy.fork("a").fork("b").token(32),
    ]
    assert len(set(streams)) == len(streams)


def first(source: ListedBytes, how: str, bound: int) -> int:
    return source.below(bound) if how == "below" else int(source.integers(bound, 1)[0])


@pytest.mark.parametrize(
    ("how", "bound"),
    [("below", bound) for bound in (1, 2, 3, 6, 128, 200, 255, 256, 257, 300, 1000)]
    + [("integers", bound) for bound in (2, 3, 5, 8, 100, 129, 255, 256)],
)
def test_draws_below_a_bound_are_exactly_uniform(how, bound):
    """Every value of the bytes that decide: each result comes equally often, the rest is redrawn.

    ``below`` takes as many bytes as the bound has; of a word of ``integers`` the top bits decide.
    """
    counts: Counter[int] = Counter()
    width = 2 if how == "below" and bound > 256 else 1
    for values in itertools.product(range(256), repeat=width):
        data = bytes(values) if how == "below" else bytes(7) + bytes(values)
        try:
            counts[first(ListedBytes(data), how, bound)] += 1
        except EOFError:  # rejected, and nothing more to draw
            continue
    assert sorted(counts) == list(range(bound))
    assert len(set(counts.values())) == 1
    # Rejection keeps more than half of the draws.
    assert 2 * sum(counts.values()) > 256**width


@pytest.mark.parametrize("how", ["below", "integers"])
@pytest.mark.parametrize("bound", [6, 37, 256, 3 << 62])
def test_draws_below_a_bound_pass_chi_square_with_false_alarm_rate_1e_minus_6(how, bound):
    """At a fixed seed; over seeds it would fail once in a million."""
    entropy, size = KeyedEntropy.from_seed(2024).fork(f"{how} {bound}"), 20_000
    if how == "below":
        values = [entropy.below(bound) for _ in range(size)]
    else:
        values = entropy.integers(bound, size).tolist()
    cells = min(bound, 64)
    counts = np.bincount([value * cells // bound for value in values], minlength=cells)
    sizes = np.bincount([n * cells // bound for n in range(bound)]) if bound < 1000 else [1] * cells
    expected = size * np.asarray(sizes) / np.sum(sizes)
    statistic = float(np.sum((counts - expected) ** 2 / expected))
    assert statistic < chi2.isf(1e-6, cells - 1)


def test_what_cannot_be_drawn_is_refused():
    entropy = KeyedEntropy(KEY)
    entropy.token(8)
    for draw in (
        lambda: entropy.token(-8),
        lambda: entropy.words(-1),
        lambda: entropy.below(0),
        lambda: entropy.below(-1),
        lambda: entropy.integers(0, 3),
        lambda: entropy.integers(-1, 3),
        lambda: entropy.integers((1 << 64) + 1, 3),
    ):
        with pytest.raises(ValueError):  # noqa: PT011 - Python's own, by any words
            draw()
    # Nothing was rewound.
    assert entropy.token(8) == keystream(KEY, 16)[8:]
    with pytest.raises(TypeError):
        KeyedEntropy.from_seed(7.9)  # type: ignore[arg-type]


def test_words_are_the_stream_in_little_endian():
    words = KeyedEntropy(KEY).words(1000)
    assert words.dtype == np.uint64
    expected = np.frombuffer(keystream(KEY, 8000), dtype="<u8")
    np.testing.assert_array_equal(words, expected)
    assert KeyedEntropy(KEY).words(0).shape == (0,)


def test_integers_redraw_only_what_is_rejected():
    words = np.array([0, 0xE0 << 56, 0x40 << 56, 0xFF << 56, 0x80 << 56], dtype="<u8")
    # Of three words the second is rejected, and so is its first replacement.
    source = ListedBytes(words.tobytes())
    assert source.integers(3, 3).tolist() == [0, 2, 1]
    assert source.data == b""


def test_integers_of_a_whole_word_are_the_words():
    assert KeyedEntropy(KEY).integers(1 << 64, 50).tolist() == KeyedEntropy(KEY).words(50).tolist()
    top = ListedBytes(b"\xff" * 8).integers(1 << 64, 1)
    assert top.tolist() == [(1 << 64) - 1]


def test_integers_below_one_are_zero_and_draw_nothing():
    assert ListedBytes(b"").integers(1, 4).tolist() == [0, 0, 0, 0]
    assert ListedBytes(b"").integers(7, 0).shape == (0,)


@given(st.integers(1, 1 << 64), st.integers(0, 40), st.integers(0, 100))
def test_integers_stay_below_and_are_writable_words(bound, count, seed):
    words = KeyedEntropy.from_seed(seed).integers(bound, count)
    assert words.dtype == np.uint64
    assert words.shape == (count,)
    assert all(value < bound for value in words.tolist())
    assert words.flags.writeable


def test_uniform_is_a_multiple_of_2_to_minus_53_below_one():
    values = KeyedEntropy(KEY).uniform((50, 4))
    expected = [word >> 11 for word in KeyedEntropy(KEY).words(200).tolist()]
    assert (values * 2**53).reshape(-1).tolist() == expected
    top = ListedBytes(b"\xff" * 8).uniform((1,))
    assert top[0] == 1 - 2**-53
    assert KeyedEntropy(KEY).uniform(()).shape == ()
    assert KeyedEntropy(KEY).uniform((0, 3)).shape == (0, 3)


def test_uniform_passes_kolmogorov_smirnov_with_false_alarm_rate_1e_minus_6():
    values = KeyedEntropy.from_seed(2024).uniform((20_000,))
    assert kstest(values, "uniform").pvalue > 1e-6


@pytest.mark.parametrize("count", [0, 1, 2, 600, (1 << 20) + 1])
def test_permutation_holds_each_number_once(count):
    """Also of more rows than fit packed keys."""
    order = KeyedEntropy.from_seed(count).permutation(count)
    assert order.dtype == np.int64
    assert np.array_equal(np.sort(order), np.arange(count))


def test_permutation_of_four_passes_chi_square_with_false_alarm_rate_1e_minus_6():
    entropy, size = KeyedEntropy.from_seed(2024).fork("orders"), 12_000
    counts = Counter(tuple(entropy.permutation(4).tolist()) for _ in range(size))
    assert len(counts) == 24
    expected = size / 24
    statistic = sum((seen - expected) ** 2 for seen in counts.values()) / expected
    assert statistic < chi2.isf(1e-6, 23)


def test_permutation_redraws_when_keys_tie():
    # Keys that differ in their low 20 bits only tie too: those bits make room for the position.
    tied = (np.array([5, 5, 1], dtype="<u8") << np.uint64(20)).tobytes()
    nearly = np.array([5 << 20, (5 << 20) + 7, 1 << 20], dtype="<u8").tobytes()
    distinct = (np.array([9, 3, 6], dtype="<u8") << np.uint64(20)).tobytes()
    assert ListedBytes(tied + nearly + distinct).permutation(3).tolist() == [1, 2, 0]


def test_repr_hides_the_key():
    entropy = KeyedEntropy(KEY)
    for text in (repr(entropy), str(entropy), f"{entropy}", repr([entropy])):
        assert "hidden" in text
        assert KEY.hex() not in text
        assert repr(KEY) not in text
    assert repr(SystemEntropy()) == "SystemEntropy()"


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_a_key_of_another_length_is_refused_without_being_named(size):
    key = b"k" * size
    with refused(ConfigError, names=32) as caught:
        KeyedEntropy(key)
    assert not size or key.decode() not in str(caught.value)


def test_system_entropy_draws_and_forks():
    entropy = SystemEntropy()
    assert len(entropy.token(33)) == 33
    assert entropy.token(16) != entropy.token(16)
    assert entropy.fork("masks").token(16) != entropy.fork("masks").token(16)
    assert 0 <= entropy.below(10) < 10
    assert sorted(entropy.permutation(20).tolist()) == list(range(20))
