from __future__ import annotations

from collections.abc import Iterator

import pytest

import taciturn.transport  # noqa: F401 - before anybody imports grpc: it says which ciphers
from tests.transport.parties import Authority, Pair, connected


@pytest.fixture(scope="session")
def authority(tmp_path_factory) -> Authority:
    """One authority with the parties and the misfits that it has signed."""
    made = Authority.make(tmp_path_factory.mktemp("authority"))
    for name in ("alice", "bob", "eve"):
        made.party(name)
    made.party("bob", start=-5, days=-1, file="expired")
    made.party("bob", start=5, days=9, file="early")
    return made


@pytest.fixture(scope="session")
def stranger(tmp_path_factory) -> Authority:
    """Another authority, which also calls somebody bob."""
    made = Authority.make(tmp_path_factory.mktemp("stranger"))
    for name in ("alice", "bob"):
        made.party(name)
    return made


@pytest.fixture(scope="module")
def pair(authority):
    with connected(authority) as made:
        yield made


@pytest.fixture
def fresh(authority) -> Iterator[Pair]:
    with connected(authority) as made:
        yield made
