"""Workers, with a table's rows or a key each, and the main program of a worker process.

The first job sets a process up. It ends when its pipe does.
"""

from __future__ import annotations

import hashlib
import os
from multiprocessing.connection import Connection

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.base import TableSize, Wrapping
from taciturn.crypto.bfv.array_location import ArrayLocation
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.bfv.layout import Side, Tiling
from taciturn.crypto.bfv.operations import ServerOps
from taciturn.crypto.bfv.processes import Pipe, receive, send
from taciturn.crypto.bfv.tables import TableWorker, TileRows
from taciturn.crypto.bfv.workers import Job, Worker, written
from taciturn.errors import CryptoError, FileError

SAMPLED_ROWS = 64


def worker(setup: Job) -> Worker:
    """Make the worker of a setup: some rows of Alice's table, or the owner's key."""
    facts, key, bits = setup.facts, bytes(setup.frames[0]), BfvScheme.key_bits[0]
    ring = Wrapping.with_modulus(facts["modulus_bits"], facts["matrix_bits"], facts["terms"])
    scheme = BfvScheme(rounds=bool(facts["rounds"]))
    if setup.name == "bob":
        return scheme.read_secret(key, bits, ring).reply
    return _table_worker(setup, scheme.read_public(key, bits, ring).server_ops, ring)


def table_setup(
    key: bytes, facts: dict[str, int], whole: IntArray, side: Side, shares: list[range]
) -> Job:
    """Setup of a worker of Alice's: its rows, or where in a mapped file they are."""
    place = ArrayLocation.from_array(whole)
    if place is not None:
        return Job("alice, mapped", facts, (key, place.to_json().encode(), _sample(whole)))
    kind = "<i4" if facts["matrix_bits"] < 31 else "<i8"
    rows = np.concatenate([whole[side.entries(share)].astype(kind) for share in shares])
    tiles = np.array([(share.start, share.stop) for share in shares], dtype="<i8")
    facts = {**facts, "entry_bytes": rows.itemsize}
    return Job("alice", facts, (key, rows.tobytes(), tiles.tobytes()))


def _table_worker(setup: Job, server_ops: ServerOps, ring: Wrapping) -> TableWorker:
    """Make the worker of a ``table_setup``; raises ``FileError`` if the table's file is another."""
    facts, source = setup.facts, setup.frames[1]
    tiling = Tiling.for_size(TableSize(facts["rows"], facts["columns"]), server_ops.seal.degree)
    if setup.name == "alice, mapped":
        place = ArrayLocation.from_json(bytes(source).decode())
        whole = place.opened()
        if _sample(whole) != bytes(setup.frames[2]):
            raise FileError("the table's file has other numbers in it", where=place.path)
        rows = TileRows.from_table(whole, tiling.rows)
    else:
        held = np.frombuffer(source, f"<i{facts['entry_bytes']}").reshape(-1, facts["columns"])
        shares = np.frombuffer(setup.frames[2], "<i8").reshape(-1, 2).tolist()
        places, start = {}, 0
        for tile in (tile for first, last in shares for tile in range(first, last)):
            entries = tiling.rows.entries(range(tile, tile + 1))
            places[tile] = slice(start, start + entries.stop - entries.start)
            start = places[tile].stop
        rows = TileRows(held, places)
    key = bytes(setup.frames[0])
    return TableWorker(server_ops, key, ring, tiling, rows, facts["memory"])


def _sample(whole: IntArray) -> bytes:
    """Digest of some rows all over a table.

    A file of that name may be another one where a worker looks for it, left there by an earlier
    training: its sums would be wrong, and nobody would notice.
    """
    some = np.linspace(0, len(whole) - 1, SAMPLED_ROWS).astype(np.int64)
    return hashlib.blake2b(whole[some].astype("<i8").tobytes(), digest_size=16).digest()


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
