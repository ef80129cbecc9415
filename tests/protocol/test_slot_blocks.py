"""How the numbers of rows lie in ciphertexts: all of them, once, and in few ciphertexts."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.crypto.bfv.parameters import DEGREE, SLOT_MODULUS
from taciturn.crypto.bfv.slots import BfvSlots
from taciturn.protocol.slot_blocks import slot_blocks

SIZES = [1, 7, 455, 2730, 2731, 4096, 4097, 5000, 8192, 8193, 20_001]


@pytest.mark.parametrize("entries", [1, 4, 42, 256])
@pytest.mark.parametrize("rows", SIZES)
def test_the_sums_of_all_products_are_those_of_each_row(rows, entries):
    generator = np.random.default_rng(rows)
    left, right = generator.integers(-(2**20), 2**20, (2, rows, entries))
    sums = np.empty(rows, dtype=np.uint64)
    covered = 0
    for block in slot_blocks(BfvSlots(), rows, entries):
        assert block.rows.start == covered
        covered = block.rows.stop
        assert 1 <= block.length <= DEGREE
        ones, others = block.vectors(left[block.rows]), block.vectors(right[block.rows])
        assert len(ones) == block.ciphertexts
        slots = (ones * others).sum(axis=0) % SLOT_MODULUS
        sums[block.rows] = block.sums(slots.astype(np.uint64), SLOT_MODULUS)
    assert covered == rows
    assert sums.tolist() == ((left * right).sum(axis=1) % SLOT_MODULUS).tolist()


@pytest.mark.parametrize("rows", SIZES)
def test_no_more_ciphertexts_than_with_a_slot_for_each_number_and_an_answer_each(rows):
    blocks = slot_blocks(BfvSlots(), rows, 42)
    packed = -(-rows // (DEGREE // 42))
    assert sum(block.ciphertexts + 1 for block in blocks) <= 2 * packed
