"""Main program of a worker process: it holds one table's rows or one key, and runs jobs.

The first job sets it up. It ends when its pipe does.
"""

from __future__ import annotations

import os
from multiprocessing.connection import Connection

from taciturn.crypto.base import Wrapping
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.bfv.tables import table_worker
from taciturn.crypto.bfv.workers import Job, Pipe, Worker, receive, send, written
from taciturn.errors import CryptoError


def worker(setup: Job) -> Worker:
    """Make the worker of a setup: some rows of Alice's table, or the owner's key."""
    facts, key, bits = setup.facts, bytes(setup.frames[0]), BfvScheme.key_bits[0]
    ring = Wrapping.with_modulus(facts["modulus_bits"], facts["matrix_bits"], facts["terms"])
    scheme = BfvScheme(rounds=bool(facts["rounds"]))
    if setup.name == "bob":
        return scheme.read_secret(key, bits, ring).reply
    return table_worker(setup, scheme.read_public(key, bits, ring).server_ops, ring)


def serve(jobs: Pipe, replies: Pipe) -> None:
    """Run jobs until the pipe ends."""
    work = worker(receive(jobs))
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
