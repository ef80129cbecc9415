"""The schemes by name, each loaded on first use, and the engine that works on whole tables.

A party loads the scheme that was agreed on, and the libraries of no other.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from taciturn.crypto.base import Scheme
from taciturn.errors import ConfigError, nearest
from taciturn.extras import explained

if TYPE_CHECKING:
    from taciturn.crypto.bfv.workers import Engine
    from taciturn.crypto.cluster import DaskEngine


_CLASSES = {
    "bfv": ("taciturn.crypto.bfv.keys", "BfvScheme"),
    "paillier": ("taciturn.crypto.paillier", "PaillierScheme"),
    "clear": ("taciturn.crypto.clear", "ClearScheme"),
}


SCHEMES = tuple(_CLASSES)
"""Names of every scheme that settings can name."""


@cache
def scheme(name: str) -> Scheme:
    """The scheme of that name."""
    if name not in _CLASSES:
        raise ConfigError(f"unknown scheme {name}", setting="scheme", hint=nearest(name, SCHEMES))
    module, kind = _CLASSES[name]
    made: Scheme = getattr(import_module(module), kind)()
    return made


def on_engine(chosen: Scheme, engine: Engine) -> Scheme:
    """The scheme with its table work done by the engine; unchanged if it has none to share."""
    if chosen.name != "bfv":
        return chosen
    # Loaded here: no other scheme needs its library.
    from taciturn.crypto.bfv.keys import BfvScheme

    return replace(chosen, engine=engine) if isinstance(chosen, BfvScheme) else chosen


def cluster_of(
    scheduler: str, credentials: tuple[Path, Path, Path] | None, worker_seconds: float
) -> AbstractContextManager[DaskEngine]:
    """Connect to the Dask cluster of a running scheduler.

    ``credentials`` are the cluster's authority, this side's certificate and its key; None without
    TLS. ``worker_seconds`` is the longest wait for a worker where there is none.
    """
    with explained():
        from taciturn.crypto.cluster import Address, connected
    ca, certificate, key = credentials or (None, None, None)
    return connected(Address(scheduler, ca, certificate, key, worker_seconds))


def cluster_on_this_machine(workers: int) -> AbstractContextManager[DaskEngine]:
    """Start a Dask cluster of local processes, which ends with the context."""
    with explained():
        from taciturn.crypto.cluster import on_this_machine
    return on_this_machine(workers)
