"""The codec: one message has one encoding, and hostile bytes give one error."""

from __future__ import annotations

import json
import struct
import tracemalloc
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from taciturn.arrays import FloatArray, IndexArray, IntArray
from taciturn.crypto import EncryptedAnswer, EncryptedVector
from taciturn.engine import Driver
from taciturn.errors import LocalProtocolError, MalformedFrame
from taciturn.privacy import (
    EVENTS,
    AdditiveNoise,
    BatchResponse,
    MaskedProduct,
    MeanOneFactor,
    MultiplicativeNoise,
    NonPrivate,
    PrivacyEvent,
    Released,
)
from taciturn.protocol import (
    MAX_FRAME,
    MAX_RELEASED,
    MAX_TEXT,
    MESSAGES,
    AlignmentEnd,
    AlignmentHello,
    BatchCommitment,
    BatchShare,
    BinnedColumn,
    BinSums,
    BlindedIds,
    BudgetSpent,
    CarryShares,
    CommonToAll,
    EncryptedResidues,
    Endorsement,
    Endorsements,
    EpochScores,
    EpochVerdict,
    GivenShare,
    GroupElements,
    HeldOutQuality,
    Hello,
    HiddenBatchOffer,
    Introduction,
    KeyOffer,
    MaskedGradient,
    MaskedScores,
    Message,
    NoisyResidues,
    PartialScores,
    Phases,
    Program,
    PublicBytes,
    RealResidues,
    ResidueReply,
    ResidueShares,
    RevealedGradient,
    RevealedShare,
    Roster,
    RowNumbers,
    RowsAsked,
    RowsDue,
    RowsHeld,
    SealedGradient,
    SealedLabels,
    SealedResidues,
    SealedScores,
    SealedWeights,
    Segments,
    SharedProduct,
    SharedVector,
    ShareNumbers,
    TwiceBlinded,
    decode,
    encode,
    field_codecs,
    kind_of,
    send,
)
from tests.protocol.parties import same


def rows_of(*numbers: int) -> RowNumbers:
    return RowNumbers(np.array(numbers, dtype=np.int64))


def whole(*numbers: int) -> IntArray:
    return np.array(numbers, dtype=np.int64)


GOLDEN: dict[str, str] = json.loads(
    Path(__file__).with_name("golden_frames.json").read_text(encoding="utf-8")
)

# The same messages as in golden_frames.json; a new message class needs a line in both.
EXAMPLES: dict[str, Message] = {
    "Hello": Hello(1, "alice", '{"a":1}', 455, "00ff", 3, 4),
    "KeyOffer": KeyOffer(PublicBytes(b"\x01\x02\x03")),
    "PartialScores": PartialScores(7, np.array([0.0, -1.5, 1e300])),
    "EncryptedResidues": EncryptedResidues(-1, EncryptedVector(b"\xaa\xbb", 2)),
    "MaskedGradient": MaskedGradient(2**63 - 1, EncryptedAnswer(b"", 5)),
    "RevealedGradient": RevealedGradient(0, Released.unprotected((0, 255, 256))),
    "NoisyResidues": NoisyResidues(3, Released(whole(-1, 128, -32768), AdditiveNoise(0.5))),
    "RealResidues": RealResidues(
        3, Released(np.array([-0.0, 2.5]), MeanOneFactor(1.0, 0.125, 10.0))
    ),
    "BudgetSpent": BudgetSpent(12),
    "HiddenBatchOffer": HiddenBatchOffer(
        4, rows_of(0, 7, 2**32 - 1), Released(whole(1, 0, 1), BatchResponse(1.0))
    ),
    "BatchCommitment": BatchCommitment(PublicBytes(bytes(range(32)))),
    "BatchShare": BatchShare(PublicBytes(bytes(range(32)))),
    "EpochScores": EpochScores(9, np.array([0.5, -0.5])),
    "HeldOutQuality": HeldOutQuality(Released.unprotected(whole(83, 91))),
    "EpochVerdict": EpochVerdict(9, Released.unprotected(whole(1))),
    "SealedWeights": SealedWeights(1, EncryptedVector(b"\xcc", 3)),
    "SealedScores": SealedScores(1, EncryptedAnswer(b"\xdd", 4)),
    "SealedResidues": SealedResidues(1, EncryptedVector(b"\xee", 4)),
    "SealedGradient": SealedGradient(1, EncryptedAnswer(b"\xff", 3)),
    "RevealedShare": RevealedShare(Released.unprotected(whole(-(2**49), 5))),
    "AlignmentHello": AlignmentHello(1, "bob", "{}", 7, PublicBytes(bytes(range(32)))),
    "BlindedIds": BlindedIds(2, GroupElements(bytes(range(64)))),
    "TwiceBlinded": TwiceBlinded(2, GroupElements(bytes(range(32)))),
    "AlignmentEnd": AlignmentEnd(3, PublicBytes(bytes(range(32)))),
    "Phases": Phases(4, EncryptedVector(b"\x07\x08", 56)),
    "ResidueShares": ResidueShares(4, EncryptedAnswer(b"\x09", 2)),
    "SharedVector": SharedVector(8, EncryptedVector(b"\x0a", 3)),
    "SharedProduct": SharedProduct(9, EncryptedAnswer(b"\x0b\x0c", 4)),
    "Segments": Segments(4, EncryptedVector(b"\x0d\x0e", 8)),
    "CarryShares": CarryShares(4, EncryptedAnswer(b"\x0f", 2)),
    "GivenShare": GivenShare(ShareNumbers(whole(-(2**58), 5))),
    "Introduction": Introduction(
        PublicBytes(bytes(range(32))), PublicBytes(b"\x10"), PublicBytes(b"\x11\x12"), 3
    ),
    "Roster": Roster('{"alices":[]}'),
    "Endorsement": Endorsement(PublicBytes(b"\x13"), PublicBytes(b"\x14")),
    "Endorsements": Endorsements('{"nonces":[]}'),
    "MaskedScores": MaskedScores(6, ShareNumbers(whole(-(2**63), 2**63 - 1))),
    "CommonToAll": CommonToAll(PublicBytes(b"\xa0\x80")),
    "BinnedColumn": BinnedColumn(0, 2, '{"bins":[]}'),
    "SealedLabels": SealedLabels(1, EncryptedVector(b"\x15", 5)),
    "BinSums": BinSums(1, EncryptedAnswer(b"\x16\x17", 9)),
    "RowsAsked": RowsAsked(3, PublicBytes(b'["c1", "c2"]')),
    "RowsHeld": RowsHeld(3, PublicBytes(b"\x00\x01")),
    "RowsDue": RowsDue(3, RowNumbers(np.array([0, 2]))),
}

ints = st.integers(-(2**63), 2**63 - 1)
texts = st.text(max_size=50)
blobs = st.binary(max_size=100)
elements = st.lists(st.binary(min_size=32, max_size=32), max_size=3).map(b"".join)
lengths = st.integers(0, 2**32 - 1)
scores = npst.arrays(
    np.float64, st.integers(0, 20), elements=st.floats(allow_nan=False, allow_infinity=False)
)
positive = st.floats(min_value=0, exclude_min=True, allow_infinity=False)


def events_of(kind: type[PrivacyEvent]) -> st.SearchStrategy[PrivacyEvent]:
    bounds = {
        "b1": st.floats(min_value=0, max_value=1, exclude_min=True),
        "delta": st.floats(min_value=0, max_value=1, exclude_min=True, exclude_max=True),
    }
    return st.builds(kind, *(bounds.get(field.name, positive) for field in fields(kind)))


events = st.one_of(*(events_of(kind) for kind in EVENTS.values()))
residues = st.lists(st.integers(0, 2**300), max_size=12).map(tuple)
# Of every width: a range first, then numbers from it.
wholes = st.sampled_from([8, 16, 32, 64]).flatmap(
    lambda bits: npst.arrays(
        np.int64,
        st.integers(0, 12),
        elements=st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1),
    )
)
row_numbers = st.sets(st.integers(0, 2**32 - 1), max_size=12).map(
    lambda chosen: np.array(sorted(chosen), dtype=np.int64)
)

STRATEGIES: dict[type[Message], st.SearchStrategy[Message]] = {
    Hello: st.builds(Hello, ints, texts, texts, ints, texts, ints, ints),
    KeyOffer: st.builds(KeyOffer, blobs),
    PartialScores: st.builds(PartialScores, ints, scores),
    EncryptedResidues: st.builds(
        EncryptedResidues, ints, st.builds(EncryptedVector, blobs, lengths)
    ),
    MaskedGradient: st.builds(MaskedGradient, ints, st.builds(EncryptedAnswer, blobs, lengths)),
    RevealedGradient: st.builds(RevealedGradient, ints, st.builds(Released, residues, events)),
    NoisyResidues: st.builds(NoisyResidues, ints, st.builds(Released, wholes, events)),
    RealResidues: st.builds(RealResidues, ints, st.builds(Released, scores, events)),
    BudgetSpent: st.builds(BudgetSpent, ints),
    HiddenBatchOffer: st.builds(
        HiddenBatchOffer, ints, row_numbers, st.builds(Released, wholes, events)
    ),
    BatchCommitment: st.builds(BatchCommitment, blobs),
    BatchShare: st.builds(BatchShare, blobs),
    EpochScores: st.builds(EpochScores, ints, scores),
    HeldOutQuality: st.builds(HeldOutQuality, st.builds(Released, wholes, events)),
    EpochVerdict: st.builds(EpochVerdict, ints, st.builds(Released, wholes, events)),
    SealedWeights: st.builds(SealedWeights, ints, st.builds(EncryptedVector, blobs, lengths)),
    SealedScores: st.builds(SealedScores, ints, st.builds(EncryptedAnswer, blobs, lengths)),
    SealedResidues: st.builds(SealedResidues, ints, st.builds(EncryptedVector, blobs, lengths)),
    SealedGradient: st.builds(SealedGradient, ints, st.builds(EncryptedAnswer, blobs, lengths)),
    RevealedShare: st.builds(RevealedShare, st.builds(Released, wholes, events)),
    AlignmentHello: st.builds(AlignmentHello, ints, texts, texts, ints, blobs),
    BlindedIds: st.builds(BlindedIds, ints, elements),
    TwiceBlinded: st.builds(TwiceBlinded, ints, elements),
    AlignmentEnd: st.builds(AlignmentEnd, ints, blobs),
    Phases: st.builds(Phases, ints, st.builds(EncryptedVector, blobs, lengths)),
    ResidueShares: st.builds(ResidueShares, ints, st.builds(EncryptedAnswer, blobs, lengths)),
    SharedVector: st.builds(SharedVector, ints, st.builds(EncryptedVector, blobs, lengths)),
    SharedProduct: st.builds(SharedProduct, ints, st.builds(EncryptedAnswer, blobs, lengths)),
    Segments: st.builds(Segments, ints, st.builds(EncryptedVector, blobs, lengths)),
    CarryShares: st.builds(CarryShares, ints, st.builds(EncryptedAnswer, blobs, lengths)),
    GivenShare: st.builds(GivenShare, wholes),
    Introduction: st.builds(Introduction, blobs, blobs, blobs, ints),
    Roster: st.builds(Roster, texts),
    Endorsement: st.builds(Endorsement, blobs, blobs),
    Endorsements: st.builds(Endorsements, texts),
    MaskedScores: st.builds(MaskedScores, ints, wholes),
    CommonToAll: st.builds(CommonToAll, blobs),
    BinnedColumn: st.builds(BinnedColumn, ints, ints, texts),
    SealedLabels: st.builds(SealedLabels, ints, st.builds(EncryptedVector, blobs, lengths)),
    BinSums: st.builds(BinSums, ints, st.builds(EncryptedAnswer, blobs, lengths)),
    RowsAsked: st.builds(RowsAsked, ints, blobs),
    RowsHeld: st.builds(RowsHeld, ints, blobs),
    RowsDue: st.builds(RowsDue, ints, row_numbers),
}
messages = st.one_of(*STRATEGIES.values())


def head(code: int, version: int = 1) -> bytes:
    return b"TACT" + bytes([version, code])


def release(event: bytes, width: int, count: int, body: bytes) -> bytes:
    start = head(6) + struct.pack("<q", 0) + struct.pack("<I", len(event)) + event
    return start + struct.pack("<HI", width, count) + body


def noisy(width: int, count: int, body: bytes, event: bytes = b"", code: int = 8) -> bytes:
    """A frame of NoisyResidues, laid out by hand."""
    name = b"additive-noise"
    said = event or struct.pack("<I", len(name)) + name + struct.pack("<d", 1.0)
    return head(code) + bytes(8) + said + struct.pack("<BI", width, count) + body


def accepted(frame: bytes) -> Message | None:
    """What decoding gives: a message that encodes to the same bytes, or None where refused.

    Any error but ``MalformedFrame`` goes through and fails the test.
    """
    try:
        message = decode(frame)
    except MalformedFrame:
        return None
    assert encode(message) == frame
    return message


def test_every_message_has_a_strategy_and_an_example():
    assert set(STRATEGIES) == set(MESSAGES)
    assert {type(example) for example in EXAMPLES.values()} == set(MESSAGES)


def test_codes_are_distinct_and_fit_their_byte():
    codes = [kind.code for kind in MESSAGES]
    assert len(set(codes)) == len(codes)
    assert all(0 < code < 256 for code in codes)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_what_is_encoded_decodes_to_the_same_message(kind):
    @given(STRATEGIES[kind])
    def check(message):
        assert same(decode(encode(message)), message)

    check()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_wire_format_has_not_changed(name):
    assert encode(EXAMPLES[name]).hex() == GOLDEN[name]
    assert same(decode(bytes.fromhex(GOLDEN[name])), EXAMPLES[name])


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_head_of_a_frame_says_which_message_it_is(name):
    frame = bytes.fromhex(GOLDEN[name])
    assert kind_of(frame) is type(EXAMPLES[name])
    assert kind_of(frame[:6]) is type(EXAMPLES[name])
    for length in range(6):
        with pytest.raises(MalformedFrame):
            kind_of(frame[:length])


@pytest.mark.parametrize("head", [b"TACS\x01\x01", b"TACT\x02\x01", b"TACT\x01\xff"])
def test_a_head_of_another_kind_or_version_is_refused(head):
    with pytest.raises(MalformedFrame):
        kind_of(head)


def test_a_frame_is_laid_out_as_the_docstring_says():
    frame = encode(RevealedGradient(3, Released.unprotected((1, 0x0203))))
    assert frame == (
        b"TACT\x01\x06"
        + (3).to_bytes(8, "little")
        + (11).to_bytes(4, "little")
        + b"non-private"
        + (2).to_bytes(2, "little")
        + (2).to_bytes(4, "little")
        + b"\x00\x01\x02\x03"
    )


def test_signs_of_zero_and_subnormal_scores_survive():
    values = np.array([-0.0, 5e-324, np.finfo(np.float64).max])
    message = decode(encode(PartialScores(0, values)))
    assert isinstance(message, PartialScores)
    assert message.scores.tobytes() == values.tobytes()


# --- hostile bytes -----------------------------------------------------------------------------


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data):
    assert accepted(data) is None


@given(st.sampled_from([kind.code for kind in MESSAGES]), st.binary(max_size=80))
def test_random_bytes_behind_a_true_head_are_refused_or_canonical(code, data):
    accepted(head(code) + data)


@given(messages, st.data())
def test_altered_frames_are_refused_or_another_canonical_message(message, data):
    frame = bytearray(encode(message))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    accepted(bytes(frame))


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_single_bit_flip_is_refused_or_another_canonical_message(name):
    frame = bytes.fromhex(GOLDEN[name])
    for place in range(len(frame)):
        for bit in range(8):
            changed = bytearray(frame)
            changed[place] ^= 1 << bit
            decoded = accepted(bytes(changed))
            assert decoded is None or not same(decoded, EXAMPLES[name])


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_truncation_is_refused(name):
    frame = bytes.fromhex(GOLDEN[name])
    for length in range(len(frame)):
        with pytest.raises(MalformedFrame):
            decode(frame[:length])


@given(messages, st.binary(min_size=1, max_size=20))
def test_bytes_behind_the_end_are_refused(message, extra):
    with pytest.raises(MalformedFrame, match="follow the frame's end"):
        decode(encode(message) + extra)


HUGE = struct.pack("<I", 2**32 - 1)


@pytest.mark.parametrize(
    "frame",
    [
        head(1) + bytes(8) + HUGE,
        head(2) + HUGE + b"key",
        head(3) + bytes(8) + HUGE + bytes(80),
        head(4) + bytes(8) + HUGE + HUGE + b"data",
        head(5) + bytes(8) + HUGE + HUGE + b"data",
        release(b"non-private", 1, 2**32 - 1, b"\x01"),
        release(b"non-private", 65535, 2**32 - 1, b"\x01" * 65535),
        noisy(1, 1 << 20, b"\x01"),
        noisy(8, 1 << 20, bytes(8)),
        head(9) + bytes(8) + struct.pack("<I", 11) + b"non-private" + HUGE + bytes(80),
        head(11) + bytes(8) + HUGE + bytes(80),
    ],
    ids=[
        "text",
        "bytes",
        "floats",
        "vector",
        "answer",
        "release",
        "wide-release",
        "whole-numbers",
        "wide-whole-numbers",
        "reals",
        "rows",
    ],
)
def test_a_huge_declared_count_is_refused_without_allocating(frame):
    tracemalloc.start()
    try:
        with pytest.raises(MalformedFrame, match=r"too early|exceeds"):
            decode(frame)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200_000


@pytest.mark.parametrize(
    "frame",
    [
        encode(PartialScores(0, np.ones(1 << 16))),
        encode(EncryptedResidues(0, EncryptedVector(bytes(1 << 19), 1))),
        encode(KeyOffer(PublicBytes(bytes(1 << 19)))),
        encode(RealResidues(0, Released(np.ones(1 << 16), AdditiveNoise(1.0)))),
    ],
    ids=["floats", "cipher", "bytes", "reals"],
)
def test_decoding_allocates_little_more_than_the_frame(frame):
    tracemalloc.start()
    try:
        decode(frame)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.25 * len(frame) + 20_000


def test_decoding_a_release_allocates_at_most_24_times_the_frame():
    """A released number is a Python integer: 28 bytes and a pointer for two on the wire."""
    frame = release(b"non-private", 2, 1 << 17, b"\xff\xff" * (1 << 17))
    tracemalloc.start()
    try:
        decode(frame)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 24 * len(frame)


@pytest.mark.parametrize("version", [0, 2, 255])
def test_another_version_is_refused_by_name(version):
    frame = bytearray(bytes.fromhex(GOLDEN["Hello"]))
    frame[4] = version
    with pytest.raises(MalformedFrame, match=f"version {version}"):
        decode(bytes(frame))


@pytest.mark.parametrize("code", sorted(set(range(256)) - {kind.code for kind in MESSAGES})[::25])
def test_an_unknown_code_is_refused_by_name(code):
    with pytest.raises(MalformedFrame, match=f"unknown kind {code}"):
        decode(head(code) + bytes(100))


def test_another_magic_is_refused():
    with pytest.raises(MalformedFrame, match="not a frame"):
        decode(b"TACS" + bytes.fromhex(GOLDEN["Hello"])[4:])


@pytest.mark.parametrize("event", [b"", b"laplace", b"non-private ", b"Non-Private"])
def test_an_unknown_event_is_refused(event):
    with pytest.raises(MalformedFrame, match="unknown kind"):
        decode(release(event, 1, 1, b"\x05"))


@pytest.mark.parametrize(
    ("width", "count", "body"),
    [
        (0, 0, b""),
        (0, 1, b""),
        (0, 1 << 20, b""),
        (2, 0, b""),
        (2, 1, b"\x00\x05"),
        (2, 3, b"\x00\xff\x00\x01\x00\x00"),
        (3, 2, b"\x00\xff\xff\x00\x00\x01"),
        (65535, 0, b""),
    ],
)
def test_a_width_that_is_not_the_narrowest_is_refused(width, count, body):
    with pytest.raises(MalformedFrame, match="wider than"):
        decode(release(b"non-private", width, count, body))


@pytest.mark.parametrize(
    ("low", "high", "width"),
    [
        (0, 0, 1),
        (-128, 127, 1),
        (-128, -128, 1),
        (-129, 0, 2),
        (0, 128, 2),
        (-(2**15), 2**15 - 1, 2),
        (-(2**15) - 1, 0, 4),
        (0, 2**15, 4),
        (-(2**31), 2**31 - 1, 4),
        (-(2**31) - 1, 0, 8),
        (0, 2**31, 8),
        (-(2**63), 2**63 - 1, 8),
    ],
)
def test_whole_numbers_take_the_narrowest_width_that_holds_them(low, high, width):
    message = NoisyResidues(0, Released(whole(low, high), AdditiveNoise(1.0)))
    frame = encode(message)
    assert frame == noisy(
        width, 2, b"".join(number.to_bytes(width, "little", signed=True) for number in (low, high))
    )
    assert same(decode(frame), message)


@pytest.mark.parametrize(
    ("width", "body"),
    [
        (2, (-128).to_bytes(2, "little", signed=True)),
        (4, (2**15 - 1).to_bytes(4, "little", signed=True)),
        (8, (-(2**31)).to_bytes(8, "little", signed=True)),
        (8, bytes(8)),
    ],
)
def test_whole_numbers_wider_than_need_be_are_refused(width, body):
    with pytest.raises(MalformedFrame, match="wider than"):
        decode(noisy(width, 1, body))


@pytest.mark.parametrize("width", [2, 4, 8])
def test_no_whole_numbers_are_told_in_width_one_only(width):
    with pytest.raises(MalformedFrame, match="wider than"):
        decode(noisy(width, 0, b""))
    empty = NoisyResidues(0, Released(whole(), AdditiveNoise(1.0)))
    assert same(decode(noisy(1, 0, b"")), empty)


@pytest.mark.parametrize("width", [0, 3, 5, 7, 9, 16, 255])
def test_whole_numbers_of_no_known_width_are_refused(width):
    with pytest.raises(MalformedFrame, match=f"of {width} bytes is not possible"):
        decode(noisy(width, 1, bytes(width)))


def test_the_longest_release_passes_and_one_more_number_does_not():
    longest = NoisyResidues(0, Released(np.zeros(MAX_RELEASED, np.int64), AdditiveNoise(1.0)))
    assert same(decode(encode(longest)), longest)
    with pytest.raises(LocalProtocolError, match="exceeds"):
        encode(NoisyResidues(0, Released(np.zeros(MAX_RELEASED + 1, np.int64), AdditiveNoise(1.0))))
    with pytest.raises(MalformedFrame, match="is not possible"):
        decode(noisy(1, MAX_RELEASED + 1, bytes(MAX_RELEASED + 1)))


def test_decoding_narrow_numbers_allocates_at_most_20_times_the_frame():
    """What the module says of itself: one byte on the wire is a word of eight in memory."""
    frame = noisy(1, 1 << 19, b"\x7f" * (1 << 19))
    tracemalloc.start()
    try:
        decode(frame)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * len(frame)


def event_bytes(name: bytes, *values: float) -> bytes:
    return struct.pack("<I", len(name)) + name + struct.pack(f"<{len(values)}d", *values)


@pytest.mark.parametrize("value", [0.0, -0.0, -1.0, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_event_with_an_impossible_parameter_is_refused(value, place):
    values = [1.0, 0.5, 2.0]
    values[place] = value
    event = event_bytes(b"multiplicative-printed", *values)
    with pytest.raises(MalformedFrame, match="impossible parameter"):
        decode(noisy(1, 1, b"\x05", event))


def test_an_event_is_refused_with_b1_beyond_one_and_with_too_few_parameters():
    with pytest.raises(MalformedFrame, match="impossible parameter"):
        decode(noisy(1, 1, b"\x05", event_bytes(b"multiplicative-mean-one", 1.0, 1.5, 2.0)))
    cut = head(8) + bytes(8) + event_bytes(b"multiplicative-mean-one", 1.0, 0.5)
    with pytest.raises(MalformedFrame, match="too early"):
        decode(cut)


def test_the_parent_of_the_multiplicative_events_is_no_event_on_the_wire():
    assert MultiplicativeNoise not in EVENTS.values()
    assert {kind.name for kind in EVENTS.values()} == set(EVENTS)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_real_residue_that_is_not_finite_is_refused_on_both_sides(value):
    with pytest.raises(MalformedFrame, match="not finite"):
        decode(head(9) + bytes(8) + event_bytes(b"non-private") + struct.pack("<Id", 1, value))
    with pytest.raises(LocalProtocolError, match="finite"):
        encode(RealResidues(0, Released(np.array([value]), AdditiveNoise(1.0))))


@pytest.mark.parametrize("numbers", [(1, 0), (5, 5), (0, 1, 1), (2**32 - 1, 0)])
def test_rows_that_do_not_ascend_are_refused_on_both_sides(numbers):
    body = struct.pack(f"<{len(numbers)}I", *numbers)
    frame = head(11) + bytes(8) + struct.pack("<I", len(numbers)) + body
    with pytest.raises(MalformedFrame, match="do not ascend"):
        decode(frame + event_bytes(b"batch-response", 1.0) + struct.pack("<BI", 1, 0))
    with pytest.raises(LocalProtocolError, match="ascend"):
        encode(HiddenBatchOffer(0, rows_of(*numbers), Released(whole(), BatchResponse(1.0))))


@pytest.mark.parametrize(
    "rows",
    [
        rows_of(-1, 0),
        rows_of(0, 2**32),
        np.zeros((1, 1), dtype=np.int64),
        np.array([0.5, 1.5]),
    ],
    ids=["negative", "beyond-32-bits", "matrix", "reals"],
)
def test_rows_that_do_not_fit_the_wire_are_not_encoded(rows):
    with pytest.raises(LocalProtocolError):
        encode(HiddenBatchOffer(0, rows, Released(whole(1), BatchResponse(1.0))))


@pytest.mark.parametrize(
    "message",
    [
        NoisyResidues(0, whole(1, 2)),  # type: ignore[arg-type]
        RealResidues(0, np.zeros(2)),  # type: ignore[arg-type]
        HiddenBatchOffer(0, rows_of(1), whole(1)),  # type: ignore[arg-type]
        RevealedGradient(0, (1, 2)),  # type: ignore[arg-type]
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_bare_value_where_a_release_belongs_is_not_encoded(message):
    with pytest.raises(LocalProtocolError, match="is not Released"):
        encode(message)


@pytest.mark.parametrize(
    "values", [np.zeros((2, 2), np.int64), np.zeros(3), np.zeros(3, np.int32), np.zeros(3, bool)]
)
def test_whole_numbers_of_another_shape_or_type_are_not_encoded(values):
    with pytest.raises(LocalProtocolError, match="vector of int64"):
        encode(NoisyResidues(0, Released(values, AdditiveNoise(1.0))))


def test_the_parent_of_the_replies_cannot_be_sent():
    with pytest.raises(LocalProtocolError, match="ResidueReply is not a registered message"):
        encode(ResidueReply(0))

    def talk() -> Program[None]:
        yield from send(ResidueReply(0))

    frames: list[bytes] = []
    with pytest.raises(LocalProtocolError, match="bob may not send ResidueReply"):
        Driver("bob", talk(), frames.append).start()
    assert frames == []


def test_no_numbers_and_zeros_have_width_one():
    for numbers in [(), (0,), (0, 0, 0)]:
        assert same(
            decode(release(b"non-private", 1, len(numbers), bytes(len(numbers)))),
            RevealedGradient(0, Released.unprotected(numbers)),
        )


@pytest.mark.parametrize("data", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"ok\xe2\x82"])
def test_a_text_that_is_not_utf8_is_refused(data):
    frame = head(1) + bytes(8) + struct.pack("<I", len(data)) + data
    with pytest.raises(MalformedFrame, match="not UTF-8"):
        decode(frame + bytes(100))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_refused_on_both_sides(value):
    with pytest.raises(MalformedFrame, match="not finite"):
        decode(head(3) + bytes(8) + struct.pack("<Idd", 2, 1.0, value))
    with pytest.raises(LocalProtocolError, match="finite"):
        encode(PartialScores(0, np.array([1.0, value])))


def test_the_longest_text_passes_and_one_more_byte_does_not():
    longest = Hello(1, "alice", "é" * (MAX_TEXT // 2), 1, "", 0, 4)
    frame = encode(longest)
    assert same(decode(frame), longest)
    with pytest.raises(LocalProtocolError, match="exceeds"):
        encode(Hello(1, "alice", "é" * (MAX_TEXT // 2) + "a", 1, "", 0, 4))
    longer = head(1) + bytes(8) + struct.pack("<I", MAX_TEXT + 1) + b"a" * (MAX_TEXT + 1)
    with pytest.raises(MalformedFrame, match="exceeds"):
        decode(longer + bytes(100))


def test_the_longest_frame_passes_and_one_more_byte_does_not():
    room = MAX_FRAME - len(head(2)) - 4
    frame = encode(KeyOffer(PublicBytes(bytes(room))))
    assert len(frame) == MAX_FRAME
    assert isinstance(decode(frame), KeyOffer)
    with pytest.raises(MalformedFrame, match="exceeds"):
        decode(frame + b"\x00")
    with pytest.raises(LocalProtocolError, match="exceeds"):
        encode(KeyOffer(PublicBytes(bytes(room + 1))))


# --- what may be registered and what may be said -----------------------------------------------


@dataclass(frozen=True, slots=True)
class BareArrayFromBob(Message):
    code = 200
    senders = ("bob",)

    residues: FloatArray


@dataclass(frozen=True, slots=True)
class BareArrayFromBoth(Message):
    code = 201
    senders = ("alice", "bob")

    iteration: int
    residues: FloatArray


@dataclass(frozen=True, slots=True)
class BareArrayFromAlice(Message):
    code = 202
    senders = ("alice",)

    scores: FloatArray


@dataclass(frozen=True, slots=True)
class BareBytes(Message):
    code = 203
    senders = ("bob",)

    data: bytes


@dataclass(frozen=True, slots=True)
class BareNumbers(Message):
    code = 204
    senders = ("bob",)

    residues: MaskedProduct


@dataclass(frozen=True, slots=True)
class BareIntegers(Message):
    code = 205
    senders = ("bob",)

    residues: IntArray


@dataclass(frozen=True, slots=True)
class BareRows(Message):
    code = 206
    senders = ("bob",)

    rows: IndexArray


@dataclass(frozen=True, slots=True)
class ReleasedText(Message):
    code = 207
    senders = ("bob",)

    residues: Released[str]


@dataclass(frozen=True, slots=True)
class SharesACode(Message):
    code = 1
    senders = ("alice", "bob")


@pytest.mark.parametrize("kind", [BareArrayFromBob, BareArrayFromBoth])
def test_a_bare_array_from_bob_has_no_place_on_the_wire(kind):
    with pytest.raises(LocalProtocolError, match=f"{kind.__name__}.residues would let Bob send"):
        field_codecs(kind)


def test_a_bare_array_from_alice_has():
    assert [name for name, _ in field_codecs(BareArrayFromAlice)] == ["scores"]


@pytest.mark.parametrize("kind", [BareBytes, BareNumbers, BareIntegers, BareRows, ReleasedText])
def test_a_field_of_unknown_type_has_no_place_on_the_wire(kind):
    with pytest.raises(LocalProtocolError, match="a type the codec refuses"):
        field_codecs(kind)


@pytest.mark.parametrize("message", [BareArrayFromAlice(np.zeros(1)), SharesACode()])
def test_a_message_of_an_unregistered_class_is_not_encoded(message):
    with pytest.raises(LocalProtocolError, match="not a registered message"):
        encode(message)


def test_a_negative_residue_is_not_encoded():
    with pytest.raises(LocalProtocolError, match="negative"):
        encode(RevealedGradient(0, Released((3, -1), NonPrivate())))


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**40])
def test_an_integer_beyond_64_bits_is_not_encoded(value):
    with pytest.raises(LocalProtocolError, match="64 bits"):
        encode(EncryptedResidues(value, EncryptedVector(b"", 0)))


@pytest.mark.parametrize(
    "values", [np.zeros((2, 2)), np.zeros(3, dtype=np.float32), np.zeros(3, dtype=np.int64)]
)
def test_scores_of_another_shape_or_type_are_not_encoded(values):
    with pytest.raises(LocalProtocolError, match="vector of"):
        encode(PartialScores(0, values))


@pytest.mark.parametrize(
    "message",
    [
        RevealedGradient(0, Released.unprotected((1 << (8 * 65536),))),
        EncryptedResidues(0, EncryptedVector(b"", -1)),
        MaskedGradient(0, EncryptedAnswer(b"", 2**32)),
        Hello(1, "\ud800", "", 0, "", 0, 4),
    ],
    ids=["residue-too-wide", "negative-length", "length-too-large", "lone-surrogate"],
)
def test_what_the_format_cannot_hold_is_refused_by_name(message):
    with pytest.raises(LocalProtocolError):
        encode(message)
