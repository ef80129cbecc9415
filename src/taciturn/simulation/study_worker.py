"""What a helper process of a simulated study runs: trainings, one after the other.

Frames over its standard input: a number, and as many bytes. The first has the tables, each later
one a training of them as a JSON text. A reply is a JSON text. It ends when its input ends.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np

from taciturn.data.split import VerticalData
from taciturn.errors import TaciturnError
from taciturn.jobs.train.simulation import simulate
from taciturn.results.serialise import record_of
from taciturn.settings.schema import Settings
from taciturn.simulation.coins import Coins
from taciturn.simulation.folds import of_fold
from taciturn.simulation.tables import of_bytes

_LENGTH = struct.Struct("<Q")


def send(stream: BinaryIO, content: bytes) -> None:
    """Writes a frame."""
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)
    stream.flush()


def receive(stream: BinaryIO) -> bytes:
    """Reads a frame; ``EOFError`` where there is none, or not the whole of it."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return content


def train(job: dict[str, Any], data: VerticalData) -> dict[str, Any]:
    """One training of a study: its record, or why there is none."""
    if job["fold"] is not None:
        data = of_fold(data, np.array(job["folds"], dtype=np.int64) == job["fold"])
    settings = Settings.of(job["settings"])
    try:
        outcome = simulate(settings, data, coins=Coins.for_seed(job["seed"]))
    except TaciturnError as problem:
        return {"problem": problem.message, "hint": problem.hint}
    return {"run": record_of(outcome.result)}


def serve(jobs: BinaryIO, replies: BinaryIO) -> None:
    """Does what it is told until there is nobody left to ask."""
    data = of_bytes(receive(jobs))
    while True:
        send(replies, json.dumps(train(json.loads(receive(jobs)), data)).encode())


def main() -> None:
    """Serves over standard input and output."""
    replies = os.fdopen(os.dup(1), "wb")
    # Nothing that is printed may come between the replies.
    os.dup2(2, 1)
    with suppress(EOFError, BrokenPipeError):
        serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
