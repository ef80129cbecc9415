"""The mechanisms by name: one line each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tacit.errors import ConfigError, nearest
from tacit.privacy.base import Mechanism
from tacit.privacy.unprotected import Unprotected

MECHANISMS: Mapping[str, Mechanism] = MappingProxyType({"none": Unprotected()})


def mechanism(name: str) -> Mechanism:
    """The mechanism of that name.

    Raises:
        ConfigError: There is none.
    """
    if name not in MECHANISMS:
        raise ConfigError(
            f"unknown mechanism {name}", where="--mechanism", hint=nearest(name, MECHANISMS)
        )
    return MECHANISMS[name]
