"""The engine that computes for a party: this machine's cores, or the party's cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from taciturn.crypto.bfv.workers import Engine, LocalEngine
from taciturn.crypto.registry import cluster_of
from taciturn.party.config import PartyConfig
from taciturn.party.log import Log
from taciturn.transport.tls import read_file


@contextmanager
def engine_of(config: PartyConfig, log: Log) -> Iterator[Engine]:
    """The engine that a party's file names; a cluster is left at the end."""
    compute = config.compute
    if compute.engine == "local":
        yield LocalEngine(compute.cores)
        return
    files = {
        "authority": compute.ca,
        "certificate": compute.certificate,
        "private key": compute.key,
    }
    paths = [config.path(name) for name in files.values() if name is not None]
    for kind, path in zip(files, paths, strict=False):
        read_file(path, kind)
    credentials = (paths[0], paths[1], paths[2]) if len(paths) == len(files) else None
    scheduler = str(compute.scheduler)
    with cluster_of(scheduler, credentials, compute.worker_seconds) as engine:
        facts = {"scheduler": scheduler, "workers": len(engine.workers)}
        log("cluster joined", **facts, dashboard=engine.dashboard or "none")
        yield engine
