"""Products number by number that several processes share: the same sums, and small ones stay."""

from __future__ import annotations

import os
import signal
from unittest.mock import patch

import numpy as np
import pytest

from taciturn.crypto import EncryptedVector, SlotScheme
from taciturn.crypto.bfv import BfvSlots, BfvSlotSecretKey, LocalEngine, NarrowSlots
from taciturn.errors import CryptoError
from taciturn.rng import SystemEntropy
from tests.crypto.test_tables_shared import children
from tests.expected import refused
from tests.modules import module_of

COINS, ENGINE = SystemEntropy(), LocalEngine(cores=2)
KINDS: dict[str, SlotScheme] = {"wide": BfvSlots(ENGINE), "narrow": NarrowSlots(786_433, ENGINE)}
COUNT, LENGTH = 7, 100


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_of(BfvSlotSecretKey), "LEAST_SHARED_PRODUCTS", 2)
    # Workers compute five products, and later the other two.
    monkeypatch.setattr(module_of(BfvSlotSecretKey), "MOST_WAITING", 5)


@pytest.mark.slow  # worker processes
@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_sum_what_one_does_and_end_with_their_keys(kind, shared):
    before, slots = children(), KINDS[kind]
    key = slots.generate(128, COINS)
    public = slots.read_public(key.public.to_bytes(), 128)
    generator = np.random.default_rng(3)
    values, tables = generator.integers(-(2**18), 2**18, (2, COUNT, LENGTH))
    masks = COINS.integers(slots.modulus, LENGTH).view(np.int64)
    some, of_worker, none = (tables.copy() for _ in range(3))
    # All that the worker multiplies first is zero.
    of_worker[3:5] = 0
    none[:] = 0
    for table in (some, of_worker, none):
        exact = (values.astype(object) * table).sum(axis=0) + masks
        expected = [number % slots.modulus for number in exact]
        for work in (1, COUNT):
            total = public.sum_of(LENGTH, work)
            for row, vector in zip(table, key.encrypt_all(values, work, COINS), strict=True):
                total.add(row, vector)
            assert key.decrypt(total.masked(masks, COINS)).tolist() == expected
    # Hers and his.
    assert len(children() - before) == 2
    # What only the worker reads is refused, and the next sum is right again.
    for spoilt in (bytes(9), b"\xff" * len(vector.data)):
        total = public.sum_of(LENGTH, COUNT)
        for row in tables[:4]:
            total.add(row, vector)
        with refused(CryptoError):
            total.add(tables[4], EncryptedVector(spoilt, LENGTH))
    total = public.sum_of(LENGTH, COUNT)
    for row, vector in zip(some, key.encrypt_all(values, COUNT, COINS), strict=True):
        total.add(row, vector)
    del total, public, key
    assert children() - before == set()


@pytest.mark.slow  # worker processes
def test_a_killed_worker_is_an_error_and_is_replaced(shared):
    before, slots = children(), KINDS["narrow"]
    key = slots.generate(128, COINS)
    values = np.arange(COUNT * LENGTH).reshape(COUNT, LENGTH)
    vectors = list(key.encrypt_all(values, COUNT, COINS))
    (worker,) = children() - before
    os.kill(worker, signal.SIGKILL)
    with refused(CryptoError):
        list(key.encrypt_all(values, COUNT, COINS))
    vectors = list(key.encrypt_all(values, COUNT, COINS))
    total = key.public.sum_of(LENGTH, COUNT)
    for row, vector in zip(values, vectors, strict=True):
        total.add(row, vector)
    masks = np.zeros(LENGTH, dtype=np.int64)
    sums = key.decrypt(total.masked(masks, COINS))
    assert sums.tolist() == ((values**2).sum(axis=0) % slots.modulus).tolist()


def test_small_exchanges_start_no_worker_and_encrypt_as_they_send():
    before = children()
    key = BfvSlots(ENGINE).generate(128, COINS)
    values = np.ones((3, LENGTH), dtype=np.int64)
    with patch.object(key, "encrypt", wraps=key.encrypt) as encrypt:
        sent = key.encrypt_all(values, 127, COINS)
        for at in range(len(values)):
            assert encrypt.call_count == at
            next(sent)
    total = key.public.sum_of(LENGTH, 127)
    for row, vector in zip(values, key.encrypt_all(values, 127, COINS), strict=True):
        total.add(row, vector)
    total.masked(values[0], COINS)
    assert children() == before
