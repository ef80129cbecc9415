"""Rows by tags: numbers as in a dictionary, and books as earlier versions have written them."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.data import RowIds
from taciturn.deploy import TaggedRows, tags_of
from taciturn.mapped import BLOCK_ROWS

changes = st.lists(st.dictionaries(st.integers(0, 40), st.integers(0, 5)), max_size=6)


@given(changes)
def test_numbers_are_those_of_a_dictionary(steps):
    rows, plain = TaggedRows(), dict[int, int]()
    for step in steps:
        tags = np.array(sorted(step), np.uint64)
        codes = np.array([step[int(tag)] for tag in tags], np.int64)
        rows = rows.with_codes(tags, codes)
        plain |= step
        assert dict(zip(rows.tags.tolist(), rows.codes.tolist(), strict=True)) == plain
    asked = np.arange(45, dtype=np.uint64)
    assert rows.codes_of(asked).tolist() == [plain.get(tag, 0) for tag in range(45)]
    again = TaggedRows.of_groups(rows.groups())
    assert again.tags.tolist() == rows.tags.tolist()
    assert again.codes.tolist() == rows.codes.tolist()


def test_tags_are_keyed_hashes_of_the_ids():
    ids = RowIds.numbered(BLOCK_ROWS + 3)
    tags = tags_of(ids, key=b"salt", person=b"me", head=b"column")
    expected = (
        hashlib.blake2b(b"column" + row.encode(), digest_size=8, key=b"salt", person=b"me").digest()
        for row in ids.series.to_list()
    )
    assert tags.tolist() == sorted(int.from_bytes(digest, "big") for digest in expected)


def test_the_rows_of_a_book_may_come_in_any_order():
    """As earlier versions wrote them: in the order of the table."""
    rows = TaggedRows.of_groups([(3, "00000000000000ff" + "0000000000000002"), (1, "00" * 8)])
    assert rows.tags.tolist() == [0, 2, 255]
    assert rows.codes.tolist() == [1, 3, 3]
    assert dict(rows.groups()) == {1: "00" * 8, 3: "0000000000000002" + "00000000000000ff"}


@pytest.mark.parametrize(
    "groups", [[(1, "00" * 8), (2, "00" * 8)], [(1, "00" * 7)], [(1, "x" * 16)], [(1 << 62, "")]]
)
def test_what_are_no_rows_is_refused(groups):
    with pytest.raises(ValueError):  # noqa: PT011 - the book says what is wrong
        TaggedRows.of_groups(groups)
