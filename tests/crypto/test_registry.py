"""Schemes by name."""

from __future__ import annotations

import pytest

from taciturn.crypto import SCHEMES, Scheme, scheme
from taciturn.errors import ConfigError


def test_every_scheme_is_registered_under_its_own_name():
    for name, entry in SCHEMES.items():
        assert entry.name == name
        assert scheme(name) is entry


def test_the_registered_paillier_offers_real_sizes_only():
    paillier: Scheme = scheme("paillier")
    assert paillier.protects
    assert paillier.key_bits == (3072, 2048)


def test_only_clear_does_not_protect():
    assert [name for name, entry in SCHEMES.items() if not entry.protects] == ["clear"]


def test_a_mistyped_name_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean paillier"):
        scheme("pailier")


def test_the_registry_is_read_only():
    with pytest.raises(TypeError):
        SCHEMES["other"] = scheme("clear")  # type: ignore[index]
