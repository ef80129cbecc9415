"""A party with a cluster of its own: real schedulers, workers and parties, killed at any moment."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

import taciturn
from taciturn.crypto.base import TableSize, Wrapping
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.bfv.parameters import DEGREE
from taciturn.crypto.cluster import Address, connected
from taciturn.errors import ClusterError, ConfigError
from taciturn.memmap import create
from taciturn.party.config import PartyConfig
from taciturn.party.link import BROKEN
from taciturn.rng import SystemEntropy
from taciturn.transport.certs import make_certificates
from taciturn.version import __version__
from tests.expected import refused
from tests.modules import module_of
from tests.party.clusters import Cluster, running_cluster
from tests.party.hosts import OneHost, Side, both_finish
from tests.party.sides import (
    NEWTON,
    model_numbers,
    numbers_in_one_process,
    write_certificates,
    write_config,
    write_wide_tables,
)
from tests.system import free_port
from tests.test_two_machines import ROOT, Terminal
from tests.waiting import wait_until

EXAMPLE = ROOT / "examples" / "cluster"
COINS = SystemEntropy()
# Two row tiles: two shares.
ROWS = 2 * DEGREE
OTHER_VERSION = """
import taciturn.version
taciturn.version.__version__ = "0.0.1"
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running_cluster(tmp_path) as cluster:
        yield cluster


def joined(cluster: Cluster, **changes: Any) -> Any:
    """An engine on that cluster, in this process."""
    place = cluster.folder / "cluster"
    files = {"ca": "ca.pem", "certificate": "party.pem", "key": "party.key"}
    paths = {name: place / file for name, file in files.items()}
    return connected(Address(**{"scheduler": cluster.address, **paths, **changes}))


def furnish(folder: Path, compute: dict[str, dict[str, Any]], passes: int = 6) -> None:
    """Two parties on a free port of this machine, and what computes for each."""
    write_wide_tables(folder, ROWS)
    write_certificates(folder / "certs")
    address = f"127.0.0.1:{free_port()}"
    for role, way in (("alice", "connect"), ("bob", "listen")):
        write_config(
            folder,
            role,
            agreement={**NEWTON, "mechanism": "sealed", "passes": passes},
            link={way: address, "listen" if way == "connect" else "connect": None},
            state={"checkpoint-iterations": 2},
            compute=compute.get(role, {}),
        )


def sides(folder: Path) -> tuple[Side, Side]:
    host = OneHost({})
    alice, bob = Side(host, folder, "alice"), Side(host, folder, "bob")
    bob.start()
    alice.start()
    return alice, bob


def passes_done(side: Side, count: int) -> None:
    """Waits until the journal has grown with some messages."""
    wait_until(lambda: side.noted("cluster joined"), side.said())
    before = side.kept()
    for _ in range(count):
        grown = partial(_changed, side, before)
        wait_until(grown, side.said())
        before = side.kept()


def _changed(side: Side, before: int) -> bool:
    return side.kept() != before or side.code is not None


# --- the same weights ----------------------------------------------------------------------------


@pytest.mark.slow  # four trainings, and a cluster
def test_every_engine_gives_the_same_weights_to_the_last_bit(tmp_path):
    write_wide_tables(tmp_path, 3 * DEGREE)
    joint = tmp_path / "joint.csv"
    hers, his = (pl.read_csv(tmp_path / f"{role}.csv") for role in ("alice", "bob"))
    hers.join(his, on="id").write_csv(joint)
    weights = [
        taciturn.train(str(joint), id="id", label="sick", passes=3, seed=1, **options).weights
        for options in ({"cores": 1}, {"cores": 2}, {"engine": "dask", "workers": 2})
    ]
    for other in weights[1:]:
        for role in ("alice", "bob"):
            assert other[role].tobytes() == weights[0][role].tobytes()


@pytest.mark.slow  # real processes, with keys, several times
def test_killed_workers_schedulers_and_parties_change_no_bit(cluster, tmp_path):
    """A worker amid a pass, then the scheduler, then Alice, who goes on without the cluster."""
    furnish(tmp_path, {"alice": cluster.settings})
    alice, bob = sides(tmp_path)
    passes_done(alice, 1)
    cluster.workers[0].kill()
    passes_done(alice, 1)
    assert cluster.scheduler is not None
    cluster.scheduler.kill()
    wait_until(lambda: alice.code is not None, "Alice did not notice")
    assert alice.code == ClusterError.exit_code, alice.said()
    wait_until(lambda: bob.code is not None, "Bob was not told")
    # What fails at her side is not his to know.
    assert "ClusterError" not in bob.said()
    # Again, with another cluster; and Alice is killed.
    cluster.stop()
    cluster.start_scheduler()
    cluster.start_worker()
    alice, bob = sides(tmp_path)
    wait_until(lambda: alice.noted("connected") == bob.noted("connected") == 2)
    alice.kill()
    # What computes is each side's own business, also amid a training.
    text = (tmp_path / "alice.toml").read_text().partition("[compute]")[0]
    (tmp_path / "alice.toml").write_text(text)
    wait_until(lambda: bob.code is not None or bob.noted(BROKEN))
    alice.start()
    if bob.code is not None:
        bob.start()
    both_finish(alice, bob)
    assert model_numbers(tmp_path) == numbers_in_one_process(tmp_path)[0]


# --- what is named -------------------------------------------------------------------------------


@pytest.mark.slow  # a cluster of its own
def test_certificates_of_another_authority_are_named(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(module_of(Address), "CONNECT_SECONDS", 5.0)
    make_certificates(tmp_path / "others", ["party", "worker"])
    theirs = {"certificate": tmp_path / "others/party.pem", "key": tmp_path / "others/party.key"}
    for changes in (theirs, {**theirs, "ca": tmp_path / "others/ca.pem"}):
        with refused(ClusterError) as raised:
            joined(cluster, **changes).__enter__()
        assert raised.value.where == cluster.address
    with refused(ClusterError):
        joined(cluster, key=tmp_path / "others/party.key").__enter__()


@pytest.mark.slow  # a cluster of its own
def test_workers_that_may_not_be_used_are_named(tmp_path):
    with running_cluster(tmp_path, workers=0) as cluster:
        with refused(ClusterError, names="1 s"):
            joined(cluster, worker_seconds=1.0).__enter__()
        other = tmp_path / "other"
        other.mkdir()
        (other / "sitecustomize.py").write_text(OTHER_VERSION)
        for words, places, named in (
            ((), [str(other), *sys.path], ("0.0.1", __version__)),
            (("--memory-limit", "1GB"), sys.path, ()),
        ):
            worker = cluster.start_worker(*words, PYTHONPATH=":".join(filter(None, places)))
            with refused(ClusterError, names=named) as raised:
                joined(cluster).__enter__()
            assert raised.value.where.startswith("tls://127.0.0.1:")
            worker.kill()
            worker.wait()


@pytest.mark.slow  # a cluster of its own
def test_a_worker_that_does_not_see_the_table_is_named_with_the_file(cluster, tmp_path):
    size = TableSize(ROWS, 2)
    ring = Wrapping.with_modulus(modulus_bits=59, matrix_bits=20, terms=ROWS)
    mapped = create(tmp_path / "table", (size.rows, size.columns), np.int32)
    mapped[:] = 1
    with joined(cluster) as dask:
        secret = BfvScheme(dask).generate(128, ring, COINS)
        table = secret.public.table(mapped)
        sent = secret.encrypt_columns(ring.draw(size.columns, COINS), size, COINS)
        (tmp_path / "table").rename(tmp_path / "elsewhere")
        with refused(ClusterError) as raised:
            table.product(sent, ring.draw(size.rows, COINS), COINS)
        assert raised.value.where == str(tmp_path / "table")
        other = create(tmp_path / "table", (size.rows, size.columns), np.int32)
        other[5] = 1
        with refused(ClusterError):
            table.product(sent, ring.draw(size.rows, COINS), COINS)
        # Nothing is spoilt by it.
        (tmp_path / "elsewhere").rename(tmp_path / "table")
        table.product(sent, ring.draw(size.rows, COINS), COINS)
        table.close()


def test_what_computes_is_no_part_of_the_agreement(tmp_path):
    """And needs no Dask to be read."""
    hers, his = (read(tmp_path, role, Cluster(tmp_path).settings) for role in ("alice", "bob"))
    plain = read(tmp_path, "bob", {})
    assert hers.agreed == his.agreed == plain.agreed
    assert (hers.compute.engine, plain.compute.engine) == ("dask", "local")


def read(folder: Path, role: str, compute: dict[str, Any]) -> PartyConfig:
    agreed = {**NEWTON, "mechanism": "sealed"}
    return PartyConfig.read(write_config(folder, role, agreement=agreed, compute=compute))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_only_on_this_machine_a_scheduler_may_do_without_tls(tmp_path, host):
    settings = {"engine": "dask", "scheduler": f"tcp://{host}:1"}
    assert read(tmp_path, "alice", settings).compute.ca is None
    with refused(ConfigError, setting="scheduler"):
        read(tmp_path, "alice", {**settings, "scheduler": "tcp://10.0.0.1:8786"})


# --- the example ---------------------------------------------------------------------------------


def commands(name: str) -> list[str]:
    """The lines of the example's page that are for one terminal."""
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"```sh {name}\n(.*?)```", page, flags=re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", " ").strip().splitlines()]


def test_the_services_run_the_commands_of_the_page():
    """But for addresses, and what only a container needs."""
    services = yaml.safe_load((EXAMPLE / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert sorted(services) == ["alice", "bob", "scheduler", "worker"]
    assert services["worker"]["scale"] == 2
    assert [services[role]["command"] for role in ("alice", "bob")] == [
        commands(role)[-1] for role in ("alice", "bob")
    ]
    for role in ("scheduler", "worker"):
        (line,) = commands(role)
        theirs, ours = (set(shlex.split(text)) for text in (services[role]["command"], line))
        assert {word for word in ours if word.startswith("--")} - theirs <= {"--host"}
        assert {word for word in ours if word.startswith("cluster/")} <= theirs
        assert services[role]["networks"] == ["cluster"]
    assert services["bob"]["networks"] == ["link"]
    for service in services.values():
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])


@pytest.mark.slow  # a scheduler, two workers and two parties
def test_the_page_of_the_example_runs_as_it_is_written(tmp_path):
    folder = tmp_path / "cluster"
    shutil.copytree(EXAMPLE, folder)
    ports = {"8786": str(free_port()), "8787": str(free_port()), "9443": str(free_port())}

    def at_free_ports(text: str) -> str:
        return re.sub("|".join(ports), lambda usual: ports[usual[0]], text)

    for role in ("alice", "bob"):
        path = folder / f"{role}.toml"
        path.write_text(at_free_ports(path.read_text()))
    terminals = {name: Terminal(name, folder) for name in ("alice", "bob", "scheduler", "worker")}
    try:
        for line in commands("once"):
            assert terminals["bob"].end(terminals["bob"].start(line)) == 0
        for name in ("scheduler", "worker"):
            (line,) = commands(name)
            terminals[name].start(at_free_ports(line))
        for hers, his in zip(commands("alice"), commands("bob"), strict=True):
            running = [terminals["bob"].start(his), terminals["alice"].start(hers)]
            for role, process in zip(("bob", "alice"), running, strict=True):
                assert terminals[role].end(process) == 0, terminals[role].said
            assert "tls://localhost" in terminals["alice"].said
            assert "cluster" not in terminals["bob"].said
    finally:
        for name in ("worker", "scheduler"):
            for process in terminals[name].started:
                # A nanny that is asked to end ends its workers.
                process.terminate()
        for terminal in terminals.values():
            terminal.leave()
    assert (folder / "alice.model.json").exists()
