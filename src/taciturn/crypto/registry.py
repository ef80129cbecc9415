"""The schemes by name: one line each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from taciturn.crypto.base import Scheme
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.clear import ClearScheme
from taciturn.crypto.paillier import PaillierScheme
from taciturn.errors import ConfigError, nearest

SCHEMES: Mapping[str, Scheme] = MappingProxyType(
    {
        "bfv": BfvScheme(),
        "paillier": PaillierScheme(),
        "clear": ClearScheme(),
    }
)
"""Every scheme that settings can name."""


def scheme(name: str) -> Scheme:
    """The scheme of that name.

    Raises:
        ConfigError: There is none.

    >>> scheme("paillier").key_bits
    (3072, 2048)
    """
    try:
        return SCHEMES[name]
    except KeyError:
        raise ConfigError(
            f"unknown scheme {name}", setting="scheme", hint=nearest(name, SCHEMES)
        ) from None
