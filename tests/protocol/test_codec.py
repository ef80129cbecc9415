"""The codec: one message has one encoding, and hostile bytes give one error."""

from __future__ import annotations

import json
import struct
import tracemalloc
from collections.abc import Callable
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import Any, cast, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from taciturn.arrays import FloatArray, IndexArray, IntArray
from taciturn.crypto.base import EncryptedAnswer, EncryptedVector
from taciturn.errors import LocalProtocolError, MalformedFrame
from taciturn.jobs.align.messages import (
    AlignmentEnd,
    AlignmentHello,
    BlindedIds,
    CommonToAll,
    TwiceBlinded,
)
from taciturn.privacy.base import MaskedProduct, Released
from taciturn.privacy.events import (
    AdditiveNoise,
    BatchResponse,
    MeanOneFactor,
    NonPrivate,
    PrivacyEvent,
)
from taciturn.privacy.prices import EVENTS
from taciturn.protocol.codec import (
    MAX_FRAME,
    MAX_RELEASED,
    MAX_TEXT,
    decode,
    encode,
    field_codecs,
    kind_of,
    messages,
)
from taciturn.protocol.messages import (
    BatchCommitment,
    BatchShare,
    BudgetSpent,
    CarryShares,
    EncryptedResidues,
    Endorsement,
    Endorsements,
    EpochVerdict,
    GivenShare,
    GroupElements,
    HeldOutQuality,
    HeldOutScoring,
    Hello,
    HiddenBatchOffer,
    Introduction,
    KeyOffer,
    LossShares,
    MaskedGradient,
    MaskedScores,
    Message,
    NoisyResidues,
    OpenedSums,
    PartialScores,
    Phases,
    PublicBytes,
    RealResidues,
    ResidueReply,
    ResidueShares,
    RevealedGradient,
    RevealedShare,
    Roster,
    RowNumbers,
    SealedGradient,
    SealedResidues,
    SealedScores,
    SealedWeights,
    Segments,
    SharedProduct,
    SharedVector,
    ShareNumbers,
)
from tests.expected import refused
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
    "HeldOutQuality": HeldOutQuality(Released.unprotected(whole(83, 91))),
    "HeldOutScoring": HeldOutScoring(1),
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
    "LossShares": LossShares(4, EncryptedAnswer(b"\x18", 2)),
    "OpenedSums": OpenedSums(ShareNumbers(whole(2**58, 0, 7))),
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

vectors, answers = (st.builds(kind, blobs, lengths) for kind in (EncryptedVector, EncryptedAnswer))
BY_TYPE: dict[object, st.SearchStrategy[Any]] = {
    int: ints,
    str: texts,
    PublicBytes: blobs,
    GroupElements: elements,
    FloatArray: scores,
    RowNumbers: row_numbers,
    ShareNumbers: wholes,
    EncryptedVector: vectors,
    EncryptedAnswer: answers,
    Released[MaskedProduct]: st.builds(Released, residues, events),
    Released[IntArray]: st.builds(Released, wholes, events),
    Released[FloatArray]: st.builds(Released, scores, events),
}
"""What a field of a message may hold; a new type needs a line here."""


def messages_of(kind: type[Message]) -> st.SearchStrategy[Message]:
    hints = get_type_hints(kind)
    return st.builds(kind, *(BY_TYPE[hints[field.name]] for field in fields(kind)))


# Jobs of other distributions have tests of their own messages.
MESSAGES = [kind for kind in messages() if kind.__module__.startswith("taciturn.")]
any_message = st.one_of(*map(messages_of, MESSAGES))


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


def test_every_message_has_an_example_and_a_code_of_its_own():
    assert {type(example) for example in EXAMPLES.values()} == set(MESSAGES)
    codes = [kind.code for kind in MESSAGES]
    assert len(set(codes)) == len(codes)
    assert all(0 < code < 256 for code in codes)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_what_is_encoded_decodes_to_the_same_message(kind):
    @given(messages_of(kind))
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


@given(any_message, st.data())
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


@given(any_message, st.binary(min_size=1, max_size=20))
def test_bytes_behind_the_end_are_refused(message, extra):
    with refused(MalformedFrame):
        decode(encode(message) + extra)


def peak_of(action: Callable[[], object]) -> int:
    """The bytes that an action has allocated at most."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


HUGE = struct.pack("<I", 2**32 - 1)
HUGE_COUNTS = {
    "text": head(1) + bytes(8) + HUGE,
    "bytes": head(2) + HUGE + b"key",
    "floats": head(3) + bytes(8) + HUGE + bytes(80),
    "vector": head(4) + bytes(8) + HUGE + HUGE + b"data",
    "answer": head(5) + bytes(8) + HUGE + HUGE + b"data",
    "release": release(b"non-private", 1, 2**32 - 1, b"\x01"),
    "wide-release": release(b"non-private", 65535, 2**32 - 1, b"\x01" * 65535),
    "whole-numbers": noisy(1, 1 << 20, b"\x01"),
    "wide-whole-numbers": noisy(8, 1 << 20, bytes(8)),
    "reals": head(9) + bytes(8) + struct.pack("<I", 11) + b"non-private" + HUGE + bytes(80),
    "rows": head(11) + bytes(8) + HUGE + bytes(80),
}


@pytest.mark.parametrize("name", HUGE_COUNTS)
def test_a_huge_declared_count_is_refused_without_allocating(name):
    def check() -> None:
        with refused(MalformedFrame):
            decode(HUGE_COUNTS[name])

    assert peak_of(check) < 200_000


@pytest.mark.parametrize(
    ("frame", "times"),
    [
        (encode(PartialScores(0, np.ones(1 << 16))), 1.25),
        (encode(EncryptedResidues(0, EncryptedVector(bytes(1 << 19), 1))), 1.25),
        (encode(KeyOffer(PublicBytes(bytes(1 << 19)))), 1.25),
        (encode(RealResidues(0, Released(np.ones(1 << 16), AdditiveNoise(1.0)))), 1.25),
        # A released number is a Python integer: 28 bytes and a pointer for two on the wire.
        (release(b"non-private", 2, 1 << 15, b"\xff\xff" * (1 << 15)), 24),
        # One byte on the wire is a word of eight in memory.
        (noisy(1, 1 << 19, b"\x7f" * (1 << 19)), 20),
    ],
    ids=["floats", "cipher", "bytes", "reals", "release", "whole-numbers"],
)
def test_decoding_allocates_little_more_than_the_frame(frame, times):
    assert peak_of(lambda: decode(frame)) < times * len(frame) + 20_000


def event_bytes(name: bytes, *values: float) -> bytes:
    return struct.pack("<I", len(name)) + name + struct.pack(f"<{len(values)}d", *values)


def signed(number: int, width: int) -> bytes:
    return number.to_bytes(width, "little", signed=True)


UNKNOWN_CODES = sorted(set(range(256)) - {kind.code for kind in messages()})[::25]
IMPOSSIBLE = [0.0, -0.0, -1.0, np.nan, np.inf, -np.inf]
MALFORMED: dict[str, bytes] = {
    "another magic": b"TACS" + bytes.fromhex(GOLDEN["Hello"])[4:],
    **{f"version {n}": head(1, n) + bytes.fromhex(GOLDEN["Hello"])[6:] for n in (0, 2, 255)},
    **{f"code {code}": head(code) + bytes(100) for code in UNKNOWN_CODES},
    **{
        f"event {event!r}": release(event, 1, 1, b"\x05")
        for event in (b"", b"laplace", b"non-private ", b"Non-Private")
    },
    # Numbers that would fit in fewer bytes.
    **{
        f"release of width {width}, {count} numbers {body.hex()}": release(
            b"non-private", width, count, body
        )
        for width, count, body in [
            (0, 0, b""),
            (0, 1, b""),
            (0, 1 << 20, b""),
            (2, 0, b""),
            (2, 1, b"\x00\x05"),
            (2, 3, b"\x00\xff\x00\x01\x00\x00"),
            (3, 2, b"\x00\xff\xff\x00\x00\x01"),
            (65535, 0, b""),
        ]
    },
    **{
        f"whole number {number} in {width} bytes": noisy(width, 1, signed(number, width))
        for number, width in [(-128, 2), (2**15 - 1, 4), (-(2**31), 8), (0, 8)]
    },
    **{f"no whole numbers of width {width}": noisy(width, 0, b"") for width in (2, 4, 8)},
    **{
        f"whole numbers of width {width}": noisy(width, 1, bytes(width))
        for width in (0, 3, 5, 7, 9, 16, 255)
    },
    "one whole number too many": noisy(1, MAX_RELEASED + 1, bytes(MAX_RELEASED + 1)),
    **{
        f"event with {value} as parameter {place}": noisy(
            1,
            1,
            b"\x05",
            event_bytes(
                b"multiplicative-printed",
                *(value if at == place else usual for at, usual in enumerate((1.0, 0.5, 2.0))),
            ),
        )
        for value in IMPOSSIBLE
        for place in range(3)
    },
    "b1 beyond one": noisy(1, 1, b"\x05", event_bytes(b"multiplicative-mean-one", 1.0, 1.5, 2.0)),
    "too few parameters": head(8) + bytes(8) + event_bytes(b"multiplicative-mean-one", 1.0, 0.5),
    **{
        f"text {data!r}": head(1) + bytes(8) + struct.pack("<I", len(data)) + data + bytes(100)
        for data in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"ok\xe2\x82")
    },
    # Of these only the limit is wrong.
    "text too long": encode(Hello(1, "alice", "a" * MAX_TEXT, 1, "", 0, 4)).replace(
        struct.pack("<I", MAX_TEXT), struct.pack("<I", MAX_TEXT + 1) + b"a"
    ),
    "one released number too many": release(
        b"non-private", 1, MAX_RELEASED + 1, bytes(MAX_RELEASED + 1)
    ),
    "one masked score too many": head(MaskedScores.code)
    + struct.pack("<qI", 0, MAX_RELEASED + 1)
    + bytes(8 * (MAX_RELEASED + 1)),
    **{
        f"score {value}": head(3) + bytes(8) + struct.pack("<Idd", 2, 1.0, value)
        for value in (np.nan, np.inf, -np.inf)
    },
    **{
        f"real residue {value}": head(9)
        + bytes(8)
        + event_bytes(b"non-private")
        + struct.pack("<Id", 1, value)
        for value in (np.nan, np.inf, -np.inf)
    },
    **{
        f"rows {numbers}": head(11)
        + bytes(8)
        + struct.pack(f"<I{len(numbers)}I", len(numbers), *numbers)
        + event_bytes(b"batch-response", 1.0)
        + struct.pack("<BI", 1, 0)
        for numbers in [(1, 0), (5, 5), (0, 1, 1), (2**32 - 1, 0)]
    },
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_frame_is_refused(name):
    with refused(MalformedFrame):
        decode(MALFORMED[name])


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
    assert frame == noisy(width, 2, signed(low, width) + signed(high, width))
    assert same(decode(frame), message)


ROOM = MAX_FRAME - len(head(2)) - 4


@pytest.mark.parametrize(
    "message",
    [
        NoisyResidues(0, Released(np.zeros(MAX_RELEASED, np.int64), AdditiveNoise(1.0))),
        Hello(1, "alice", "é" * (MAX_TEXT // 2), 1, "", 0, 4),
    ],
    ids=["release", "text"],
)
def test_the_longest_list_passes(message):
    assert same(decode(encode(message)), message)


def test_the_longest_frame_passes_and_one_more_byte_does_not():
    frame = encode(KeyOffer(PublicBytes(bytes(ROOM))))
    assert len(frame) == MAX_FRAME
    assert isinstance(decode(frame), KeyOffer)
    with refused(MalformedFrame):
        decode(head(KeyOffer.code) + struct.pack("<I", ROOM + 1) + bytes(ROOM + 1))
    with refused(LocalProtocolError):
        encode(KeyOffer(PublicBytes(bytes(ROOM + 1))))


# --- what may be registered and what may be said -----------------------------------------------


def made(field_type: object, *senders: str, code: int = 200) -> type[Message]:
    made_class = make_dataclass(
        "Made",
        [("value", field_type)],
        bases=(Message,),
        namespace={"code": code, "senders": senders},
        frozen=True,
        slots=True,
    )
    return cast(type[Message], made_class)


@pytest.mark.parametrize("senders", [("bob",), ("alice", "bob")])
@pytest.mark.parametrize(
    "field_type", [FloatArray, bytes, MaskedProduct, IntArray, IndexArray, Released[str]], ids=str
)
def test_what_bob_may_not_send_bare_has_no_place_on_the_wire(field_type, senders):
    with refused(LocalProtocolError, names="Made.value"):
        field_codecs(made(field_type, *senders))


def noise_of(values: Any) -> Released[Any]:
    return Released(values, AdditiveNoise(1.0))


def offer_of(rows: Any, released: Any = None) -> HiddenBatchOffer:
    response = Released(whole(1), BatchResponse(1.0)) if released is None else released
    return HiddenBatchOffer(0, rows, response)


NOT_ENCODED: dict[str, Message] = {
    "an unregistered class": made(FloatArray, "alice")(np.zeros(1)),  # type: ignore[call-arg]
    "a code that another has": made(FloatArray, "alice", code=1)(np.zeros(1)),  # type: ignore[call-arg]
    "the parent of the replies": ResidueReply(0),
    # A bare value where a release belongs.
    "bare whole numbers": NoisyResidues(0, whole(1, 2)),  # type: ignore[arg-type]
    "bare reals": RealResidues(0, np.zeros(2)),  # type: ignore[arg-type]
    "a bare response": offer_of(rows_of(1), whole(1)),
    "a bare gradient": RevealedGradient(0, (1, 2)),  # type: ignore[arg-type]
    # Values of another shape or type.
    "a matrix of whole numbers": NoisyResidues(0, noise_of(np.zeros((2, 2), np.int64))),
    "reals for whole numbers": NoisyResidues(0, noise_of(np.zeros(3))),
    "short whole numbers": NoisyResidues(0, noise_of(np.zeros(3, np.int32))),
    "truth values": NoisyResidues(0, noise_of(np.zeros(3, bool))),
    "a matrix of scores": PartialScores(0, np.zeros((2, 2))),
    "short scores": PartialScores(0, np.zeros(3, dtype=np.float32)),
    "whole numbers for scores": PartialScores(0, np.zeros(3, dtype=np.int64)),
    "rows below zero": offer_of(rows_of(-1, 0)),
    "rows beyond 32 bits": offer_of(rows_of(0, 2**32)),
    "a matrix of rows": offer_of(np.zeros((1, 1), dtype=np.int64)),
    "reals for rows": offer_of(np.array([0.5, 1.5])),
    "rows that do not ascend": offer_of(rows_of(5, 5)),
    # Values that the format does not hold.
    "a negative residue": RevealedGradient(0, Released((3, -1), NonPrivate())),
    "a residue too wide": RevealedGradient(0, Released.unprotected((1 << (8 * 65536),))),
    "an integer above 64 bits": EncryptedResidues(2**63, EncryptedVector(b"", 0)),
    "an integer below 64 bits": EncryptedResidues(-(2**63) - 1, EncryptedVector(b"", 0)),
    "a negative length": EncryptedResidues(0, EncryptedVector(b"", -1)),
    "a length too large": MaskedGradient(0, EncryptedAnswer(b"", 2**32)),
    "a lone surrogate": Hello(1, "\ud800", "", 0, "", 0, 4),
    "one released number too many": RevealedGradient(
        0, Released.unprotected((0,) * (MAX_RELEASED + 1))
    ),
    "one masked score too many": MaskedScores(
        0, ShareNumbers(np.zeros(MAX_RELEASED + 1, np.int64))
    ),
    "a text too long": Hello(1, "alice", "é" * (MAX_TEXT // 2) + "a", 1, "", 0, 4),
    "too many whole numbers": NoisyResidues(0, noise_of(np.zeros(MAX_RELEASED + 1, np.int64))),
    **{
        f"a score of {value}": PartialScores(0, np.array([1.0, value]))
        for value in (np.nan, np.inf, -np.inf)
    },
    **{
        f"a residue of {value}": RealResidues(0, noise_of(np.array([value])))
        for value in (np.nan, np.inf, -np.inf)
    },
}


@pytest.mark.parametrize("name", NOT_ENCODED)
def test_what_the_format_does_not_hold_is_not_encoded(name):
    with refused(LocalProtocolError):
        encode(NOT_ENCODED[name])
