"""The families by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from taciturn.errors import ConfigError, nearest
from taciturn.families.base import Family
from taciturn.families.binomial import Binomial
from taciturn.families.gamma import Gamma
from taciturn.families.gaussian import Gaussian
from taciturn.families.poisson import Poisson

BINOMIAL = Binomial.name
FAMILIES: Mapping[str, Family] = MappingProxyType(
    {kind.name: kind() for kind in (Binomial, Gaussian, Poisson, Gamma)}
)
"""Every family that settings can name."""


def family(name: str) -> Family:
    """The family of that name."""
    try:
        return FAMILIES[name]
    except KeyError:
        raise ConfigError(
            f"unknown family {name}", setting="family", hint=nearest(name, FAMILIES)
        ) from None
