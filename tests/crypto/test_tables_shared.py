"""Tables that several processes share: the same sums, and no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taciturn.crypto.base import TableSize, Wrapping
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.bfv.parameters import DEGREE
from taciturn.crypto.bfv.tables import TileRows
from taciturn.crypto.bfv.workers import LocalEngine
from taciturn.errors import CryptoError
from taciturn.memmap import create
from taciturn.rng import SystemEntropy
from tests.crypto.schemes import transposed_product
from tests.crypto.test_tables import entries, oracle
from tests.expected import refused
from tests.modules import module_of
from tests.waiting import wait_until

COINS = SystemEntropy()
RING = Wrapping.with_modulus(modulus_bits=59, matrix_bits=20, terms=DEGREE)
SIZE = TableSize(3 * DEGREE - 5, 3)
TWO = BfvScheme(engine=LocalEngine(cores=2))


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_of(TileRows), "LEAST_SHARED_TILES", 1)
    monkeypatch.setattr(module_of(BfvScheme), "LEAST_SHARED_PIECES", 2)


def children() -> set[int]:
    """The processes that this one has started and that have not ended."""
    listed = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] != "Z":
            listed.add(int(status.parent.name))
    return listed


@pytest.mark.slow  # some seconds
def test_two_processes_compute_what_one_does_and_end_with_their_owners(shared):
    before = children()
    secret = TWO.generate(128, RING, COINS)
    whole = entries(RING, SIZE, COINS)
    # The worker's tiles of one column are all zero.
    whole[DEGREE:, 1] = 0
    table = secret.public.table(whole)
    assert len(children() - before) == 1
    rows, columns = RING.draw(SIZE.rows, COINS), RING.draw(SIZE.columns, COINS)
    for again in (False, True):
        sent = secret.encrypt_rows(rows, SIZE, COINS)
        answer = transposed_product(table, sent, columns, COINS)
        sums = secret.decrypt_columns(answer, SIZE)
        assert sums.tolist() == oracle(whole.T, rows, columns, 59)
        answer = table.product(secret.encrypt_columns(columns, SIZE, COINS), rows, COINS)
        sums = secret.decrypt_rows(answer, SIZE)
        assert np.array_equal(sums, RING.centred(whole @ columns + rows))
        if again:
            break
        # A number that only the worker reads: refused, and the next product is right again.
        spoilt = sent.data[: -64 - 8] + b"\xff" * 8 + sent.data[-64:]
        with refused(CryptoError):
            transposed_product(table, replace(sent, data=spoilt), columns, COINS)
        data = answer.data[:-8] + b"\xff" * 8
        with refused(CryptoError):
            secret.decrypt_rows(replace(answer, data=data), SIZE)
    table.product(secret.encrypt_columns(columns, SIZE, COINS), rows, COINS)
    table.close()
    secret.encrypt_rows(rows, SIZE, COINS)
    assert len(children() - before) == 1
    del secret, table
    assert children() - before == set()


@pytest.mark.slow  # a second, and others show the same on less
def test_a_helper_that_was_killed_is_named_and_replaced(shared):
    before = children()
    secret = TWO.generate(128, RING, COINS)
    rows = RING.draw(SIZE.rows, COINS)
    secret.encrypt_rows(rows, SIZE, COINS)
    (worker,) = children() - before
    os.kill(worker, signal.SIGKILL)
    with refused(CryptoError):
        secret.encrypt_rows(rows, SIZE, COINS)
    table = secret.public.table(np.ones((SIZE.rows, SIZE.columns), dtype=np.int64))
    mask = np.zeros(SIZE.columns, dtype=np.int64)
    answer = transposed_product(table, secret.encrypt_rows(rows, SIZE, COINS), mask, COINS)
    total = RING.centred(rows.sum())
    assert secret.decrypt_columns(answer, SIZE).tolist() == [total] * SIZE.columns
    table.close()


@pytest.mark.slow  # a second, and others show the same on less
def test_helpers_read_a_mapped_table_from_its_file(shared, tmp_path):
    secret = TWO.generate(128, RING, COINS)
    # By columns, and beside others: neither the file's first bytes nor in the order of rows.
    mapped = create(tmp_path / "table", (SIZE.columns + 1, SIZE.rows), np.int32)
    mapped[1:] = entries(RING, SIZE, COINS).T
    whole = mapped[1:].T
    table = secret.public.table(whole)
    setup = table._pool._setups[0]()  # type: ignore[attr-defined]
    assert sum(map(len, setup.frames[1:])) < 1000
    rows, columns = RING.draw(SIZE.rows, COINS), RING.draw(SIZE.columns, COINS)
    answer = transposed_product(table, secret.encrypt_rows(rows, SIZE, COINS), columns, COINS)
    sums = secret.decrypt_columns(answer, SIZE)
    assert sums.tolist() == oracle(whole.T.astype(np.int64), rows, columns, 59)
    table.close()


PARENT = """
import numpy as np, sys, time
from taciturn.crypto.base import Wrapping
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.bfv.tables import TileRows
from taciturn.crypto.bfv.workers import LocalEngine
from taciturn.rng import SystemEntropy
sys.modules[TileRows.__module__].LEAST_SHARED_TILES = 1
ring = Wrapping.with_modulus(59, 20, 1)
key = BfvScheme(LocalEngine(cores=2)).generate(128, ring, SystemEntropy())
table = key.public.table(np.ones((20000, 1), dtype=np.int64))
print(table._pool._processes[0]._process.pid, flush=True)
time.sleep(900)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_helpers_end_with_the_process_that_started_them(how):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    with parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert Path(f"/proc/{worker}").exists()
        parent.send_signal(how)
    wait_until(lambda: not Path(f"/proc/{worker}").exists())
