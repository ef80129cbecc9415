"""Which engine works on whole tables; that of a cluster is loaded where one is asked for."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from taciturn.crypto.base import Scheme
from taciturn.crypto.bfv.crew import Engine
from taciturn.extras import explained

if TYPE_CHECKING:
    from taciturn.crypto.cluster import DaskEngine


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
