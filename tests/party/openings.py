"""The first bytes that a side sends over a link, made without one."""

from __future__ import annotations

import struct
from typing import Any

from taciturn.jobs.train.declaration import TRAINING
from taciturn.party.link import VERSION, Link, SpokenJob


def opening(
    purpose: int,
    mine: bytes,
    known: bytes = bytes(16),
    received: int = 0,
    drawn: bytes | None = None,
    *,
    version: int = VERSION,
    job: SpokenJob | None = None,
) -> bytes:
    """An opening; ``job`` is what the side says of its job, None for the one of the purpose."""
    spoken = job or SpokenJob.of(purpose)
    names = (mine, known, received, drawn or mine, spoken.messages)
    return struct.pack("<BBB16s16sQ16s16s", 1, version, purpose, *names) + spoken.name.encode()


def training_link(*arguments: Any, purpose: int = TRAINING, **more: Any) -> Link:
    """A link for a training, or for another purpose."""
    return Link(*arguments, purpose=purpose, **more)
