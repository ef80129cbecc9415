"""Where to listen or to dial, ``host:port``, and what a party is called."""

from __future__ import annotations

import re

from taciturn.errors import ConfigError
from taciturn.settings.parties import is_party_name

_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})")


def check_address(address: str, *, where: str, any_port: bool = False) -> str:
    """An address ``host:port``, if it is one; an IPv6 address stands in brackets.

    With ``any_port`` port 0 is allowed, by which the system picks one.

    >>> check_address("bob.example:7443", where="listen")
    'bob.example:7443'
    """
    parsed = _ADDRESS.fullmatch(address)
    if parsed is None or not (0 if any_port else 1) <= int(parsed["port"]) <= 65535:
        raise ConfigError(
            f"{address!r} is not an address",
            where=where,
            hint="use host:port, such as bob.example:7443, 0.0.0.0:7443 or [::]:7443",
        )
    return address


def check_name(name: str, setting: str = "name") -> str:
    """A party's name, if it can stand in a certificate: a DNS name in lower case.

    >>> check_name("alice.example")
    'alice.example'
    """
    if not is_party_name(name):
        raise ConfigError(
            f"{name!r} cannot be a party's name",
            setting=setting,
            hint="use lower-case letters, digits, hyphens and dots, as in alice or alice.example",
        )
    return name
