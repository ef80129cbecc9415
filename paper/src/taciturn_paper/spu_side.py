"""One side of a training under SPU's Cheetah protocol. SPU's own Python runs this file, not ours.

SPU needs an older NumPy and an older JAX than this project, so it lives in an environment of its
own, and nothing of Taciturn is imported here. A folder has the task and this side's table; what was
measured is printed as JSON. ``against_spu`` starts both sides.

The program follows SPU's own examples: the ring of 2^64 with 18 binary places of ``conf/2pc.json``,
one execution for each epoch as in ``ss_lr``, which starts from shares and ends in them, and its
sigmoids. Each table is shared once; an epoch's order of rows is public, as it is in ours, and each
side brings its shares into that order by itself.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIDES = ("alice", "bob")
TABLES = (("alice", "alice"), ("bob", "bob"), ("labels", "bob"), ("weights", "bob"))
# How long a side waits for the other: it may still be compiling.
CONNECT_SECONDS, SILENCE_MILLISECONDS = 300, 600_000
# Where the kernel's tcp_info has the bytes that the peer has acknowledged, and those received.
_TCP_BYTES = struct.Struct("QQ")
_TCP_BYTES_AT = 120


def sigmoid_of(name: str) -> Callable[[Any], Any]:
    """A sigmoid of SPU's, as a function of a JAX array.

    The setting ``sigmoid_mode`` does not reach a program that comes from JAX, since XLA has spelled
    the sigmoid out by then. So its approximations are spelled out here, as in SPU's examples.

    Args:
        name: ``real``, which is the runtime's default and that of the example ``jax_lr``; ``seg3``,
            three straight lines; ``t1``, the first two terms of the series, as in ``ss_lr``.
    """
    import jax
    import jax.numpy as jnp

    def seg3(scores: Any) -> Any:  # noqa: ANN401 - JAX is not typed here
        middle = jnp.where(scores > 4.0, 1.0, 0.5 + 0.125 * scores)
        return jnp.where(scores < -4.0, 0.0, middle)

    functions: dict[str, Callable[[Any], Any]] = {
        "real": jax.nn.sigmoid,
        "seg3": seg3,
        "t1": lambda scores: 0.5 + 0.25 * scores,
    }
    return functions[name]


def train_epoch(task: dict[str, Any]) -> Callable[..., Any]:
    """The program of one epoch: both tables, labels, weights and the order in, weights out.

    The weights have two rows: the model, and the point at which the next step starts, which is
    another one only with momentum.
    """
    import jax.numpy as jnp

    sigmoid, momentum = sigmoid_of(task["sigmoid"]), task["momentum"]

    def epoch(alice: Any, bob: Any, labels: Any, weights: Any, order: Any) -> Any:  # noqa: ANN401
        rows, truth = jnp.concatenate((alice, bob), axis=1)[order], labels[order]
        (model, point), start = weights, 0
        for size in task["batch_sizes"]:
            batch, residues = rows[start : start + size], truth[start : start + size]
            residues = sigmoid(batch @ point) - residues
            before = model
            model = point - (task["learning_rate"] / size) * (batch.T @ residues)
            point = model + momentum * (model - before) if momentum else model
            start += size
        return jnp.stack((model, point))

    return epoch


class Side:
    """One side, connected: its shares, and the runtime in which programs run on them."""

    def __init__(self, rank: int, ports: list[int]) -> None:
        import spu
        from spu import libspu

        description = libspu.link.Desc()
        description.recv_timeout_ms = SILENCE_MILLISECONDS
        description.connect_retry_times = CONNECT_SECONDS
        for name, port in zip(SIDES, ports, strict=True):
            description.add_party(name, f"127.0.0.1:{port}")
        self.rank, self.peer = rank, 1 - rank
        self._lib = libspu
        self._link = libspu.link.create_brpc(description, rank)
        self._link.barrier()
        self.start, self.processor = time.perf_counter(), time.process_time()
        self.bytes_before = traffic()
        config = libspu.RuntimeConfig(
            protocol=libspu.ProtocolKind.CHEETAH, field=libspu.FieldType.FM64
        )
        self._runtime, self._io = spu.Runtime(self._link, config), spu.Io(2, config)

    def now(self) -> dict[str, float]:
        """Cost since the two were connected."""
        sent, received = traffic()
        return {
            "seconds": time.perf_counter() - self.start,
            "processor": time.process_time() - self.processor,
            "bytes_sent": sent - self.bytes_before[0],
            "bytes_received": received - self.bytes_before[1],
        }

    def share(self, name: str, owner: int, values: Any) -> None:  # noqa: ANN401
        """A table of one side becomes a share at each; who does not own it has no values."""
        if self.rank == owner:
            shares = self._io.make_shares(values, self._lib.Visibility.VIS_SECRET)
            self._link.send(self.peer, shares[self.peer].meta)
            self._link.send(self.peer, _whole(shares[self.peer]))
            own = shares[self.rank]
        else:
            own = self._lib.Share()
            own.meta = self._link.recv(owner)
            own.share_chunks = [self._link.recv(owner)]
        self._runtime.set_var(name, own)

    def publish(self, name: str, values: Any) -> None:  # noqa: ANN401
        """Set a public value, which both sides know and each sets for itself."""
        shares = self._io.make_shares(values, self._lib.Visibility.VIS_PUBLIC)
        self._runtime.set_var(name, shares[self.rank])

    def run(self, program: Any) -> None:  # noqa: ANN401
        """Runs a compiled program."""
        self._runtime.run(program)

    def open(self, name: str) -> Any:  # noqa: ANN401
        """Exchange shares of a value with the other side, and return the value."""
        own, other = self._runtime.get_var(name), self._lib.Share()
        self._link.send(self.peer, _whole(own))
        other.meta, other.share_chunks = own.meta, [self._link.recv(self.peer)]
        return self._io.reconstruct([own, other] if self.rank == 0 else [other, own])

    def close(self) -> None:
        """Waits for the other, and hangs up."""
        self._link.barrier()
        self._link.stop_link()


def _whole(share: Any) -> bytes:  # noqa: ANN401
    (chunk,) = share.share_chunks
    return bytes(chunk)


def traffic() -> tuple[int, int]:
    """The bytes that this process has sent and received over TCP, by the kernel's count."""
    sent = received = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            connection = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue
        with connection:
            if connection.type != socket.SOCK_STREAM or connection.family == socket.AF_UNIX:
                continue
            # A socket that listens has nobody at its other end.
            try:
                connection.getpeername()
            except OSError:
                continue
            facts = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            counts = _TCP_BYTES.unpack_from(facts, _TCP_BYTES_AT)
            sent, received = sent + counts[0], received + counts[1]
    return sent, received


def compiled(
    function: Callable[..., Any],
    names: list[str],
    examples: tuple[Any, ...],
    public: tuple[str, ...] = (),
) -> Any:  # noqa: ANN401
    """A JAX function as a program for the runtime; its output has the name ``weights``."""
    from spu import libspu
    from spu.utils import frontend

    secret, known = libspu.Visibility.VIS_SECRET, libspu.Visibility.VIS_PUBLIC
    seen = [known if name in public else secret for name in names]
    return frontend.compile(
        frontend.Kind.JAX, function, examples, {}, names, seen, lambda outputs: ["weights"]
    )[0]


def run_side(role: str, folder: Path, ports: list[int]) -> dict[str, Any]:
    """One side's training, and the walk over the sigmoid's range."""
    begin = time.process_time()
    import numpy as np
    from spu import libspu

    # Its log of every product would cost time, and would stand beside the JSON.
    options = libspu.logging.LogOptions()
    options.log_level = libspu.logging.LogLevel.WARN
    options.system_log_path = str(folder / f"{role}.log")
    libspu.logging.setup_logging(options)
    task = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    with np.load(folder / f"{role}.npz") as file:
        tables = {name: file[name].astype(np.float32) for name in file.files}
    started = time.process_time()
    order = np.array(task["orders"], dtype=np.int32)
    shapes = {
        "alice": (order.shape[1], task["alice_columns"]),
        "bob": (order.shape[1], task["bob_columns"]),
        "labels": (order.shape[1],),
        "weights": (2, task["alice_columns"] + task["bob_columns"]),
    }
    tables["weights"] = np.zeros(shapes["weights"], dtype=np.float32)
    examples = tuple(np.zeros(shape, dtype=np.float32) for shape in shapes.values())
    program = compiled(train_epoch(task), [*shapes, "order"], (*examples, order[0]), ("order",))
    walk = np.array(task["walk"], dtype=np.float32)
    stroll = compiled(sigmoid_of(task["sigmoid"]), ["walk"], (walk,))
    ready = time.process_time()

    side = Side(SIDES.index(role), ports)
    for name, owner in TABLES:
        side.share(name, SIDES.index(owner), tables.get(name))
    steps = []
    for epoch in order:
        side.publish("order", epoch)
        side.run(program)
        steps.append(side.now())
    weights = side.open("weights")
    if len(walk):
        side.share("walk", 1, walk)
        side.run(stroll)
    report = {
        "started": started - begin,
        "compiled": ready - started,
        "steps": steps,
        "weights": weights[0].tolist(),
        "walked": side.open("weights").tolist() if len(walk) else [],
    }
    side.close()
    return report


if __name__ == "__main__":
    own_role, place, *numbers = sys.argv[1:]
    print(json.dumps(run_side(own_role, Path(place), [int(number) for number in numbers])))
