"""The registry of schemes, and the scheme that hides nothing: it says so, and it is exact."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.crypto.base import Capacity
from taciturn.crypto.clear import ClearScheme, exact_product
from taciturn.crypto.paillier import OFFERED_BITS
from taciturn.crypto.registry import SCHEMES, scheme
from taciturn.errors import ConfigError
from taciturn.rng import KeyedEntropy
from tests.crypto.schemes import oracle
from tests.expected import refused


@pytest.mark.parametrize("bits", [20, 21, 22, 25])
@pytest.mark.parametrize("order", ["C", "F"])
def test_product_is_exact_on_both_sides_of_53_bits(bits, order):
    entropy, terms = KeyedEntropy.from_seed(bits), 2048
    capacity = Capacity(bits, bits, terms)
    limit = 1 << bits
    # Odd entries near the limit: the lowest bit is lost by the first sum that rounds.
    words = (entropy.words(9 * terms) % np.uint64(1000)).astype(np.int64).reshape(9, terms)
    matrix = np.array(limit - 1 - 2 * words, order=order)
    vector = limit - 1 - 2 * words[0]
    expected = oracle(matrix, vector)
    assert max(expected) > 1 << (capacity.product_bits - 1)
    prepared = ClearScheme().read_public(b"", 0, capacity).prepare(matrix).content
    assert prepared.dtype == (np.float64 if capacity.product_bits <= 53 else np.int64)
    assert exact_product(prepared, vector).tolist() == expected


def test_masks_cover_all_64_bits():
    public = ClearScheme().read_public(b"", 0, Capacity(1, 1, 1))
    masks = public.draw_mask(1000, KeyedEntropy.from_seed(1)).values
    assert 0 <= min(masks) < 1 << 58
    assert (1 << 64) - (1 << 58) < max(masks) < 1 << 64
    assert public.modulus == 1 << 64


# The registry


def test_every_scheme_is_registered_under_its_own_name_and_only_clear_does_not_protect():
    for name in SCHEMES:
        assert scheme(name).name == name
        assert scheme(name) is scheme(name)
        assert scheme(name).protects == (name != "clear")
    assert scheme("paillier").key_bits == OFFERED_BITS == (3072, 2048)
    with refused(ConfigError, names=("pailier", "paillier")):
        scheme("pailier")
