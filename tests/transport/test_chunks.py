"""The format of the wire."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import MalformedFrame
from taciturn.transport.limits import CHUNK, END, HEADER, LAST, PART, READY, Assembler, split


def opened(limit: int = 4 * CHUNK) -> Assembler:
    made = Assembler(limit)
    assert made.feed(READY) is None
    return made


@pytest.mark.parametrize(
    "size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK - 1, 2 * CHUNK, 2 * CHUNK + 1, 4 * CHUNK]
)
def test_a_frame_of_any_size_comes_back(size):
    frame = bytes(size)
    assembler = opened()
    messages = list(split(frame))
    assert all(len(message) <= CHUNK + HEADER for message in messages)
    *early, last = [assembler.feed(message) for message in messages]
    assert early == [None] * (len(messages) - 1)
    assert last == frame


@pytest.mark.parametrize("size", [4 * CHUNK + 1, 5 * CHUNK, 9 * CHUNK])
def test_a_frame_beyond_the_limit_is_refused_at_the_first_chunk_too_many(size):
    assembler = opened()
    messages = split(bytes(size))
    for _ in range(4):
        assembler.feed(next(messages))
    with pytest.raises(MalformedFrame):
        assembler.feed(next(messages))


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ([], LAST + b"x"),
        ([], END),
        ([], READY + b"x"),
        ([READY], READY),
        ([READY], PART + b"short"),
        ([READY], PART),
        ([READY], LAST + bytes(CHUNK + 1)),
        ([READY], END + b"x"),
        ([READY, PART + bytes(CHUNK)], LAST),
        ([READY, PART + bytes(CHUNK)], END),
        ([READY, END], LAST + b"x"),
        ([READY], b""),
        ([READY], b"\x01"),
        ([READY], b"\x02\x02x"),
        ([READY], b"\x01\x04x"),
        ([READY], b"\x01\xff"),
    ],
)
def test_a_message_out_of_place_is_refused(before, message):
    assembler = Assembler(4 * CHUNK)
    for earlier in before:
        assert assembler.feed(earlier) is None
    with pytest.raises(MalformedFrame):
        assembler.feed(message)


@given(st.lists(st.one_of(st.binary(max_size=20), st.sampled_from([READY, END, LAST + b"a"]))))
def test_hostile_messages_give_frames_or_the_named_error(messages):
    assembler = Assembler(64)
    for message in messages:
        try:
            frame = assembler.feed(message)
        except MalformedFrame:
            return
        assert frame is None or len(frame) <= 64
