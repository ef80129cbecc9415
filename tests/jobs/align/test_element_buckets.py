"""Buckets of elements: the same intersection as plain sets have, in bounded memory and room."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.crypto.group import ELEMENT_BYTES
from taciturn.errors import OutputError, RemoteProtocolError
from taciturn.jobs.align.pairwise import Alignment, ElementBuckets, common_to
from taciturn.memmap import Scratch
from tests.expected import refused
from tests.modules import module_of
from tests.test_memmap import mapped_bytes


def elements(count: int, seed: int) -> list[bytes]:
    """Such as honest sides have: uniform, with 0 as their first bit."""
    octets = np.random.default_rng(seed).integers(0, 256, (count, ELEMENT_BYTES), np.uint8)
    octets[:, 0] &= 0xFE
    return [row.tobytes() for row in octets]


def filled(values: list[bytes], bits: int, step: int = 7, scratch: Scratch | None = None):
    buckets = ElementBuckets(len(values), bits, "fault", scratch or Scratch())
    for start in range(0, len(values), step):
        part = values[start : start + step]
        buckets.add(b"".join(part), np.arange(start, start + len(part)))
    return buckets


@given(st.integers(0, 100), st.integers(1, 100), st.integers(0, 7), st.integers(1, 50))
def test_the_intersection_is_that_of_plain_sets(alone, common, bits, step):
    pool = elements(2 * alone + common, seed=alone)
    hers, his = pool[: alone + common], pool[:alone:-1] + pool[alone : alone + 1]
    matched, seen = [], []
    for rows, ranked in common_to(filled(hers, bits, step), filled(his, bits, step)):
        assert [hers[row] for row in rows] == [value.ljust(32, b"\0") for value in ranked]
        matched.extend(rows.tolist())
        seen.append(ranked.tobytes())
    expected = {row for row, value in enumerate(hers) if value in set(his)}
    assert len(matched) == len(expected)
    assert set(matched) == expected
    # One bucket after the other, in the order of the bytes.
    assert b"".join(seen) == b"".join(sorted(hers[row] for row in expected))


@pytest.mark.parametrize("bits", [0, 3])
def test_a_repeated_element_is_refused_in_whatever_bucket_it_is(bits):
    for place in range(10):
        values = elements(10, seed=1)
        values.append(values[place])
        with refused(RemoteProtocolError):
            list(filled(values, bits))


def test_elements_that_are_all_in_one_bucket_are_refused_while_they_come():
    """Who picks elements by their first bytes, or repeats one, cannot make a bucket large."""
    picked = [b"\2\2" + value[2:] for value in elements(5000, seed=2)]
    buckets = ElementBuckets(len(picked), 4, "fault")
    buckets.add(b"".join(picked[:400]), np.arange(400))
    with refused(RemoteProtocolError):
        buckets.add(b"".join(picked[400:800]), np.arange(400))


def test_files_have_no_name_and_memory_follows_the_bucket(tmp_path: Path):
    count = 200_000
    scratch = Scratch(tmp_path / "align", least=1)
    own, peers = module_of(Alignment)._room_for(count, count, scratch)
    assert not list((tmp_path / "align").iterdir())
    values = b"".join(elements(count, seed=3))
    before = mapped_bytes()
    for start in range(0, count, 8192):
        part = values[start * ELEMENT_BYTES : (start + 8192) * ELEMENT_BYTES]
        for buckets in (own, peers):
            buckets.add(part, np.arange(start, start + len(part) // ELEMENT_BYTES))
            assert mapped_bytes() - before < 1 << 20
    rows, _ = module_of(Alignment)._common(own, peers, b"salt")
    assert sorted(rows.tolist()) == list(range(count))
    assert mapped_bytes() - before < 1 << 20


def test_a_disk_without_room_is_named_before_any_element_is_sent(tmp_path: Path):
    scratch = Scratch(tmp_path / "align", least=1)
    with refused(OutputError):
        module_of(Alignment)._room_for(1 << 50, 1, scratch)
    scratch.clear()
    assert not list(tmp_path.iterdir())
