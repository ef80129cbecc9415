"""The frames of the job's messages, which never change."""

from __future__ import annotations

import pytest

from taciturn.crypto.base import EncryptedAnswer, EncryptedVector
from taciturn.protocol.codec import decode, encode
from taciturn_risk.woe.messages import BinnedColumn, BinSums, SealedLabels

GOLDEN = (
    (
        BinnedColumn(0, 2, '{"bins":[]}'),
        "544143540127000000000000000002000000000000000b0000007b2262696e73223a5b5d7d",
    ),
    (
        SealedLabels(1, EncryptedVector(b"\x15", 5)),
        "5441435401280100000000000000050000000100000015",
    ),
    (
        BinSums(1, EncryptedAnswer(b"\x16\x17", 9)),
        "544143540129010000000000000009000000020000001617",
    ),
)


@pytest.mark.parametrize(("message", "frame"), GOLDEN, ids=lambda one: type(one).__name__)
def test_a_message_has_the_frame_that_it_always_had(message, frame):
    assert encode(message).hex() == frame
    assert encode(decode(bytes.fromhex(frame))).hex() == frame
