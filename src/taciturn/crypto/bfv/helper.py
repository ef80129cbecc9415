"""What a helper process runs: one table's rows, or one key, and the jobs that are asked of it.

The first job sets it up. It ends when there is nobody left to ask.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeAlias

import numpy as np

from taciturn.crypto.base import TableSize, Wrapping
from taciturn.crypto.bfv.crew import Frame, Job, Pipe, receive, send
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.bfv.tables import Sheet
from taciturn.crypto.bfv.tiles import Side, Tiling
from taciturn.crypto.bfv.wire import Parts
from taciturn.errors import CryptoError
from taciturn.rng import KeyedEntropy

Worker: TypeAlias = Callable[[Job], tuple[Frame, ...]]


def _alice(setup: Job) -> Worker:
    ring, (key, rows) = _ring(setup), setup.frames
    public = BfvScheme().read_public(bytes(key), BfvScheme.key_bits[0], ring)
    size = TableSize(setup.facts["rows"], setup.facts["columns"])
    held = np.frombuffer(rows, f"<i{setup.facts['entry_bytes']}").reshape(-1, size.columns)
    sheet = Sheet(public.answering, ring, Tiling.of(size), held, setup.facts["memory"])

    def reply(job: Job) -> tuple[Frame, ...]:
        key, masks, pieces = job.frames
        coins, values = KeyedEntropy(bytes(key)), np.frombuffer(masks, "<i8")
        if job.name == "columns":
            return (sheet.sums_over_columns(Parts(pieces), values, coins),)
        covered = range(job.facts["first"], job.facts["last"])
        sums = sheet.sums_over_rows(Parts(pieces), covered, values, coins)
        return tuple(b"" if part is None else public.answering.saved(part) for part in sums)

    return reply


def _bob(setup: Job) -> Worker:
    (data,) = setup.frames
    key = BfvScheme().read_secret(bytes(data), BfvScheme.key_bits[0], _ring(setup))

    def reply(job: Job) -> tuple[Frame, ...]:
        side, (data,) = Side(**job.facts), job.frames
        if job.name == "encrypt":
            return (key.encrypt_tiles(np.frombuffer(data, "<i8"), side),)
        return (key.decrypt_tiles(Parts(data), side).astype("<i8", copy=False).tobytes(),)

    return reply


def _ring(setup: Job) -> Wrapping:
    facts = setup.facts
    return Wrapping.of(facts["modulus_bits"], facts["matrix_bits"], facts["terms"])


def serve(jobs: Pipe, replies: Pipe) -> None:
    """Does jobs until there are no more."""
    setup = receive(jobs)
    work = {"alice": _alice, "bob": _bob}[setup.name](setup)
    while True:
        job = receive(jobs)
        try:
            frames = work(job)
        except CryptoError as problem:
            send(replies, "refused", {}, (str(problem).encode(),))
        else:
            send(replies, "done", {}, frames)


def main() -> None:
    """Serves over standard input and output."""
    replies: Pipe = Connection(os.dup(1), readable=False)
    # Nothing that is printed may come between the replies.
    os.dup2(2, 1)
    try:
        serve(Connection(0, writable=False), replies)
    except (EOFError, BrokenPipeError):
        return


if __name__ == "__main__":
    main()
