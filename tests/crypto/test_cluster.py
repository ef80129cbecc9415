"""An engine on a cluster of real processes: the same sums, workers that die, masks that do not."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from taciturn.crypto import cluster
from taciturn.crypto.base import TableSize, Wrapping
from taciturn.crypto.bfv.keys import BfvScheme, BfvSecretKey
from taciturn.crypto.bfv.layout import Tiling
from taciturn.crypto.bfv.parameters import DEGREE
from taciturn.crypto.bfv.seal import ByteReader
from taciturn.crypto.bfv.workers import Job
from taciturn.errors import ClusterError
from taciturn.memmap import create
from taciturn.rng import SystemEntropy
from tests.crypto.schemes import transposed_product
from tests.crypto.test_tables import entries
from tests.expected import refused
from tests.test_two_machines import free_port
from tests.waiting import wait_until

COINS = SystemEntropy()
RING = Wrapping.with_modulus(modulus_bits=59, matrix_bits=20, terms=4 * DEGREE)
# A column for each share, so that each has a mask.
SIZE = TableSize(4 * DEGREE - 5, 4)


def held(dask_worker: Any) -> int:
    """How many setups and replies a worker has in memory."""
    return len(dask_worker.data)


@pytest.fixture(scope="module")
def engine() -> Iterator[cluster.DaskEngine]:
    with cluster.on_this_machine(2) as engine:
        yield engine


def decrypted(secret: BfvSecretKey, reply: dict[str, Any]) -> bytes:
    """What Bob would read in one reply, where it is masked."""
    tiling, data = Tiling.for_size(SIZE), bytes(reply["covered"])
    if reply["name"] == "columns":
        side = tiling.rows.part(range(int(reply["first"]), int(reply["last"])))
    else:
        side = tiling.columns.part(range(int(reply["first_covered"]), int(reply["last_covered"])))
        answering = secret.public.server_ops
        data = answering.written(answering.loaded(data, ntt=False), side.answered(side.length))
    return secret.decrypt_tiles(ByteReader(data), side).tobytes()


@pytest.mark.slow  # a cluster is started, and a worker lost
def test_a_worker_that_is_killed_amid_a_pass_changes_nothing(engine, tmp_path):
    """Each mask covers one value, also in the reply that was never used."""
    secret = BfvScheme(engine).generate(128, RING, COINS)
    mapped = create(tmp_path / "table", (SIZE.rows, SIZE.columns), np.int32)
    mapped[:] = entries(RING, SIZE, COINS)
    whole = mapped.astype(np.int64)
    from tests.crypto.cluster_plugins import Recorder

    engine.client.register_plugin(Recorder(tmp_path))
    table = secret.public.table(mapped)
    workers = set(engine.workers)
    rows, columns = RING.draw(SIZE.rows, COINS), RING.draw(SIZE.columns, COINS)
    sent = secret.encrypt_rows(rows, SIZE, COINS)
    answer = transposed_product(table, sent, columns, COINS)
    expected = RING.centred(whole.T @ rows + columns)
    assert np.array_equal(secret.decrypt_columns(answer, SIZE), expected)
    answer = table.product(secret.encrypt_columns(columns, SIZE, COINS), rows, COINS)
    assert np.array_equal(secret.decrypt_rows(answer, SIZE), RING.centred(whole @ columns + rows))
    # One was killed, and Dask replaced it.
    wait_until(lambda: len(engine.workers) == 2)
    assert (tmp_path / "killed").exists()
    assert len(workers & set(engine.workers)) == 1
    covered: dict[bytes, set[bytes]] = {}
    replies: dict[bytes, set[bytes]] = {}
    for path in tmp_path.glob("*.npz"):
        with np.load(path) as reply:
            mask = bytes(reply["mask"])
            covered.setdefault(mask, set()).add(decrypted(secret, dict(reply)))
            replies.setdefault(mask, set()).add(bytes(reply["covered"]))
    # At least the one that was lost was made twice, under fresh encryptions of zero.
    assert any(len(made) > 1 for made in replies.values())
    assert all(len(values) == 1 for values in covered.values())
    engine.client.unregister_worker_plugin("recorder")
    table.close()
    del secret, table
    # Keys and rows leave the workers' memory with their owners.
    wait_until(lambda: not any(engine.client.run(held).values()), "it holds what nobody needs")


def test_what_goes_to_workers_shows_nothing_in_a_log():
    job = Job("rows", {}, (memoryview(b"a mask"),))
    for shown in (
        repr(cluster._Held("1", job)),
        repr(cluster._Task(job)),
    ):
        assert "mask" not in shown
    sent = pickle.loads(pickle.dumps(cluster._Task(job)))  # noqa: S301 - our own
    assert sent.job.frames == (b"a mask",)


def test_an_address_where_nobody_listens(monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    address = f"tcp://127.0.0.1:{free_port()}"
    with refused(ClusterError) as raised:
        cluster.connected(cluster.Address(address)).__enter__()
    assert raised.value.where == address


@pytest.mark.slow  # a cluster of its own
def test_workers_that_end_one_after_the_other_at_one_share_are_named():
    with cluster.on_this_machine(1) as engine:
        crew = engine.pool([lambda: Job("deadly", {})])
        from tests.crypto.cluster_plugins import Deadly

        engine.client.register_plugin(Deadly())
        with refused(ClusterError, names=4):
            crew.run([Job("deadly", {})], lambda job: ())
