"""The mechanisms by name: one line each, made from the settings both parties share.

**Guarantee.** An unknown name is refused.

**Assumes.** Each mechanism checks the settings that it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tacit.config import Agreement
from tacit.errors import ConfigError, nearest
from tacit.privacy.base import Mechanism
from tacit.privacy.unprotected import Unprotected

MECHANISMS: Mapping[str, Callable[[Agreement], Mechanism]] = MappingProxyType(
    {"none": lambda agreement: Unprotected()}
)


def require_mechanism(name: str) -> None:
    """Refuses a name that no mechanism has.

    >>> require_mechanism("none")

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in MECHANISMS:
        raise ConfigError(
            f"unknown mechanism {name}", where="--mechanism", hint=nearest(name, MECHANISMS)
        )


def mechanism(agreement: Agreement) -> Mechanism:
    """The mechanism that an agreement names.

    Raises:
        ConfigError: There is none of that name, or a setting does not suit it.
    """
    require_mechanism(agreement.mechanism)
    return MECHANISMS[agreement.mechanism](agreement)
