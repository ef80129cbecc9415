"""What a helper process runs: one table's rows, or one key, and the jobs that are asked of it.

The first job sets it up. It ends when there is nobody left to ask.
"""

from __future__ import annotations

import os
from multiprocessing.connection import Connection

from taciturn.crypto.base import Wrapping
from taciturn.crypto.bfv.crew import Job, Pipe, Worker, receive, send, written
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.bfv.tables import sheet_of
from taciturn.errors import CryptoError


def worker(setup: Job) -> Worker:
    """Make the worker of a setup: some rows of Alice's table, or the owner's key."""
    ring, key, bits = _ring(setup), bytes(setup.frames[0]), BfvScheme.key_bits[0]
    if setup.name == "bob":
        return BfvScheme().read_secret(key, bits, ring).reply
    return sheet_of(setup, BfvScheme().read_public(key, bits, ring).answering, ring)


def _ring(setup: Job) -> Wrapping:
    facts = setup.facts
    return Wrapping.of(facts["modulus_bits"], facts["matrix_bits"], facts["terms"])


def serve(jobs: Pipe, replies: Pipe) -> None:
    """Run jobs until the pipe ends."""
    setup = receive(jobs)
    work = worker(setup)
    while True:
        job = receive(jobs)
        try:
            frames = written(work(job))
        except CryptoError as problem:
            send(replies, "refused", {}, (str(problem).encode(),))
        else:
            send(replies, "done", {}, frames)


def main() -> None:
    """Serve over standard input and output."""
    replies: Pipe = Connection(os.dup(1), readable=False)
    # Nothing that is printed may come between the replies.
    os.dup2(2, 1)
    try:
        serve(Connection(0, writable=False), replies)
    except (EOFError, BrokenPipeError):
        return


if __name__ == "__main__":
    main()
