"""The frames of the job's messages, which never change."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.protocol.codec import decode, encode
from taciturn.protocol.messages import PublicBytes, RowNumbers
from taciturn_ops.serve.messages import RowsAsked, RowsDue, RowsHeld

GOLDEN = (
    (
        RowsAsked(3, PublicBytes(b'["c1", "c2"]')),
        "54414354012a03000000000000000c0000005b226331222c20226332225d",
    ),
    (
        RowsHeld(3, PublicBytes(b"\x00\x01")),
        "54414354012b0300000000000000020000000001",
    ),
    (
        RowsDue(3, RowNumbers(np.array([0, 2]))),
        "54414354012c0300000000000000020000000000000002000000",
    ),
)


@pytest.mark.parametrize(("message", "frame"), GOLDEN, ids=lambda one: type(one).__name__)
def test_a_message_has_the_frame_that_it_always_had(message, frame):
    assert encode(message).hex() == frame
    assert encode(decode(bytes.fromhex(frame))).hex() == frame
