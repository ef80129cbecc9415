"""One training between two processes, measured: time, processor time, traffic, stages, memory.

Alice and Bob are processes of their own with real certificates and gRPC between them, and run the
programs of a real training on tables that lie in a folder. Nothing is journaled: what is measured
is the conversation. ``measure`` starts both; ``python -m taciturn_paper.sides`` is one of them.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from taciturn.arrays import ByteLabels, FloatArray, IntArray
from taciturn.crypto.base import (
    DEFAULT_TABLE_MEMORY,
    Capacity,
    PublicKey,
    RowSum,
    Scheme,
    SecretKey,
    Table,
)
from taciturn.crypto.registry import scheme
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import INTERCEPT, FeatureTable
from taciturn.engine.driver import Driver
from taciturn.errors import ConfigError
from taciturn.numerics.whitening import Whitening, centring_offset
from taciturn.parallel import one_thread
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import mechanism
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.party import TRAININGS as ALICE
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.party import TRAININGS as BOB
from taciturn.protocol.events import Event, Progress
from taciturn.protocol.messages import Role
from taciturn.protocol.outcome import Trained, WeightShare
from taciturn.protocol.scales import Scales
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy, KeyedEntropy
from taciturn.settings.agreement import Agreement
from taciturn.transport.certs import AUTHORITY, make_certificates
from taciturn.transport.channel import Channel, Endpoint
from taciturn.transport.tls import load_credentials
from taciturn_paper.spu_side import traffic

# Which calls of a key or a table make up a stage; what is left of a side's time is its own work.
STAGES = {
    "encrypt": ("encrypt", "encrypt_rows", "encrypt_columns"),
    "decrypt": ("decrypt", "decrypt_shares", "decrypt_rows", "decrypt_columns"),
    "products": ("table", "prepare", "masked_product", "product", "add", "result"),
}


class Clock:
    """Sums up the time spent in each call of a scheme."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def timed(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """The same function, on the clock under this name."""

        def run(*arguments: Any) -> Any:  # noqa: ANN401 - passes on whatever the scheme takes
            start = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                self.seconds[name] += time.perf_counter() - start

        return run

    @property
    def total(self) -> float:
        """The seconds of all calls."""
        return sum(self.seconds.values())

    def stage(self, name: str) -> float:
        """The seconds of a stage."""
        return sum(self.seconds[call] for call in STAGES[name])


class _TimedKey:
    """A key or a table whose every call is on the clock."""

    def __init__(self, key: Any, clock: Clock) -> None:  # noqa: ANN401
        self._key, self._clock = key, clock

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        attribute = getattr(self._key, name)
        return self._clock.timed(attribute, name) if callable(attribute) else attribute

    def table(self, whole: IntArray, memory: int = DEFAULT_TABLE_MEMORY) -> Table:
        """A table whose products are on the clock too."""
        made = self._clock.timed(self._key.table, "table")(whole, memory)
        return _TimedKey(made, self._clock)

    def sum_over_rows(self, mask: IntArray, entropy: Entropy) -> RowSum:
        """A sum whose parts are on the clock too."""
        return _TimedKey(self._key.sum_over_rows(mask, entropy), self._clock)


class TimedScheme:
    """A scheme whose keys are timed; all else is the scheme's own."""

    def __init__(self, inner: Scheme) -> None:
        self.clock = Clock()
        self._inner = inner

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever else the scheme has
        return getattr(self._inner, name)

    def generate(
        self, bits: int, capacity: Capacity, entropy: Entropy, seed: bytes | None = None
    ) -> SecretKey:
        """A timed key; generating it is not timed."""
        return _TimedKey(self._inner.generate(bits, capacity, entropy, seed), self.clock)

    def read_public(
        self, data: bytes, bits: int, capacity: Capacity, seed: bytes | None = None
    ) -> PublicKey:
        """A timed key."""
        return _TimedKey(self._inner.read_public(data, bits, capacity, seed), self.clock)

    def read_secret(self, data: bytes, bits: int, capacity: Capacity) -> SecretKey:
        """A timed key."""
        return _TimedKey(self._inner.read_secret(data, bits, capacity), self.clock)


CONNECT_SECONDS, SILENCE_SECONDS = 60.0, 900.0
LONGEST_SECONDS = 3600.0
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Link:
    """A link between the two parties: unlimited, or with a round trip and a rate."""

    name: str
    round_trip: float = 0.0
    megabits: float = 0.0

    @property
    def shaped(self) -> bool:
        """Whether bytes are held back."""
        return self.megabits > 0


LINKS = (
    Link("LAN"),
    Link("100 Mbit/s, 50 ms", 0.050, 100.0),
    Link("20 Mbit/s, 20 ms", 0.020, 20.0),
)


@dataclass(frozen=True, slots=True)
class Effort:
    """Cost of a training or of a section of it; bytes are those of frames.

    ``processor_seconds`` are of both processes and their helpers. ``round_trips`` counts how often
    Bob waited for an answer.
    """

    seconds: float
    processor_seconds: float
    bytes_to_alice: int
    bytes_to_bob: int
    round_trips: int

    def plus(self, other: Effort, times: float = 1.0) -> Effort:
        """Sum of this and another, or several of the other."""
        return Effort(
            self.seconds + times * other.seconds,
            self.processor_seconds + times * other.processor_seconds,
            round(self.bytes_to_alice + times * other.bytes_to_alice),
            round(self.bytes_to_bob + times * other.bytes_to_bob),
            round(self.round_trips + times * other.round_trips),
        )


@dataclass(frozen=True, slots=True)
class Course:
    """Cost of a training after each iteration or pass, and to its end.

    ``stages`` are seconds of encrypt, products, decrypt, and of what each side does besides;
    ``peak_bytes`` the most memory that each side held. ``started`` are the processor seconds of
    both until they were connected, which ``whole`` has not. ``wire_bytes``, to Alice and to Bob,
    are the kernel's count, TLS included. ``weights`` are Alice's and then Bob's; hers of newton in
    the coordinates that only she knows.
    """

    steps: tuple[Effort, ...]
    whole: Effort
    stages: dict[str, float]
    peak_bytes: dict[str, int]
    started: float = 0.0
    wire_bytes: tuple[int, int] = (0, 0)
    weights: FloatArray = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

    def after(self, count: int) -> Effort:
        """Cost of a training of this many steps: measured, or extrapolated from the middle steps.

        The first step has what is done once before all of them, the last one what is done after.
        """
        if count == len(self.steps):
            return self.whole
        first, late = self.steps[0], self.steps[-2]
        share = (count - len(self.steps)) / (len(self.steps) - 2)
        return self.whole.plus(late.plus(first, -1.0), share)


@dataclass(frozen=True, slots=True)
class Tables:
    """Tables of both parties for a training."""

    alice: FloatArray
    bob: FloatArray
    labels: ByteLabels
    intercept: bool


def measure(agreement: Agreement, tables: Tables, link: Link = LINKS[0], seed: int = 1) -> Course:
    """Run one training between two processes; ``seed`` is that of both sides' entropy."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="taciturn-bench-")))
        make_certificates(folder / "certs", ["alice", "bob"])
        np.savez(folder / "alice.npz", values=tables.alice)
        np.savez(folder / "bob.npz", values=tables.bob, labels=tables.labels)
        task = {
            "agreement": agreement.model_dump(),
            "intercept": tables.intercept,
            "seed": seed,
        }
        (folder / "task.json").write_text(json.dumps(task), encoding="utf-8")
        port = free_port()
        called = port
        if link.shaped:
            called = stack.enter_context(slow_link(port, link.round_trip, link.megabits))
        own = [sys.executable, "-m", "taciturn_paper.sides"]
        return _course(
            run_both(
                {
                    "bob": [*own, "bob", str(folder), str(port)],
                    "alice": [*own, "alice", str(folder), str(called)],
                },
                folder,
            )
        )


def run_both(
    commands: dict[str, list[str]], folder: Path, seconds: float = LONGEST_SECONDS
) -> dict[str, Any]:
    """Run a command for each side; each prints JSON as its last line, which is returned.

    ``folder`` gets what they write to standard error. ``ConfigError`` where one fails or takes too
    long.
    """
    with ExitStack() as stack:
        processes = {
            role: subprocess.Popen(  # noqa: S603 - our own programs
                command,
                stdout=subprocess.PIPE,
                stderr=stack.enter_context((folder / f"{role}.err").open("w")),
                text=True,
            )
            for role, command in commands.items()
        }
        return _reports(processes, folder, seconds)


def _reports(
    processes: dict[str, subprocess.Popen[str]], folder: Path, seconds: float
) -> dict[str, Any]:
    try:
        said = {r: p.communicate(timeout=seconds)[0] for r, p in processes.items()}
    except subprocess.TimeoutExpired:
        raise ConfigError(f"a training took more than {seconds:g} s") from None
    finally:
        for process in processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()
    for role, process in processes.items():
        if process.returncode:
            words = (folder / f"{role}.err").read_text(encoding="utf-8").strip()
            raise ConfigError(f"{role}'s process failed: {words[-300:]}")
    return {role: json.loads(text.splitlines()[-1]) for role, text in said.items()}


def _course(sides: dict[str, Any]) -> Course:
    alice, bob = sides["alice"], sides["bob"]
    # Alice has no iterations of her own: her processor time is read at the frames that end one.
    steps = []
    for step in bob["steps"]:
        hers = _at(alice["spent"], step["received"])
        steps.append(
            Effort(
                step["seconds"],
                step["processor"] + hers,
                step["bytes_sent"],
                step["bytes_received"],
                step["round_trips"],
            )
        )
    end = bob["end"]
    whole = Effort(
        end["seconds"],
        end["processor"] + alice["end"]["processor"],
        end["bytes_sent"],
        end["bytes_received"],
        end["round_trips"],
    )
    stages = {
        "encrypt": bob["stages"]["encrypt"],
        "products": alice["stages"]["products"],
        "decrypt": bob["stages"]["decrypt"],
        "solve": bob["rest"],
        "alice besides": alice["rest"],
    }
    peaks = {role: side["peak_bytes"] for role, side in sides.items()}
    started = alice["started"] + bob["started"]
    weights = _weights(alice["model"], bob["model"])
    # Who ends first sees the whole connection; the other may find it closed.
    wire = max(bob["wire"][0], alice["wire"][1]), max(alice["wire"][0], bob["wire"][1])
    return Course(tuple(steps), whole, stages, peaks, started, wire, weights)


def _weights(alice: dict[str, Any], bob: dict[str, Any]) -> FloatArray:
    """The weights of both, put together where they are shared."""
    parts = []
    for side, share in ((alice, "share"), (bob, "bob_share")):
        if alice[share] is None:
            parts.append(np.array(side["weights"], dtype=np.float64))
            continue
        hers, his = (np.array(party[share]["values"], dtype=np.int64) for party in (alice, bob))
        own = side[share]
        weights = Scales.from_json(own["scales"]).weights(hers + his)
        if own["whitening"] is not None:
            weights = _whitening(own, side).weights(weights)
        parts.append(weights)
    if alice["means"] is not None:
        # Bob's intercept absorbs the means of both sides.
        parts[1][-1] += centring_offset(parts[0], np.array(alice["means"]))
    return np.concatenate(parts)


def _whitening(party: dict[str, Any], side: dict[str, Any]) -> Whitening:
    means = None if side["means"] is None else np.array(side["means"])
    return Whitening(np.array(party["whitening"]), means, party["free"])


def _at(spent: list[float], frames: int) -> float:
    """Alice's processor time when she had sent this many frames."""
    return spent[min(frames, len(spent)) - 1] if spent and frames else 0.0


# --- a slow link ------------------------------------------------------------------------------


@contextmanager
def slow_link(port: int, round_trip: float, megabits: float) -> Iterator[int]:
    """A relay to a port on loopback that holds every byte back; yields its own port.

    Bytes wait for half of the round trip, and so many bits pass in a second: it replaces a kernel's
    emulation, which not every machine has.
    """
    with ExitStack() as open_things:
        listener = open_things.enter_context(socket.create_server(("127.0.0.1", 0)))
        threading.Thread(
            target=_relay, args=(listener, port, round_trip / 2, megabits), daemon=True
        ).start()
        yield listener.getsockname()[1]


def _relay(listener: socket.socket, port: int, delay: float, megabits: float) -> None:
    while True:
        try:
            near, _ = listener.accept()
        except OSError:
            return
        try:
            far = socket.create_connection(("127.0.0.1", port))
        except OSError:
            near.close()
            continue
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for source, target in ((near, far), (far, near)):
            _pump(source, target, delay, megabits)


def _pump(source: socket.socket, target: socket.socket, delay: float, megabits: float) -> None:
    """One direction: a reader that stamps what it reads, and a writer that waits."""
    held: deque[tuple[float, bytes]] = deque()
    ready = threading.Condition()

    def read() -> None:
        free = 0.0
        while True:
            try:
                data = source.recv(_CHUNK)
            except OSError:
                data = b""
            now = time.monotonic()
            # The wire is busy until the last bit is on it; it arrives half a round trip later.
            free = max(free, now) + 8 * len(data) / (megabits * 1e6)
            with ready:
                held.append((free + delay, data))
                ready.notify()
            if not data:
                return
            time.sleep(max(0.0, free - time.monotonic() - 0.05))

    def write() -> None:
        while True:
            with ready:
                while not held:
                    ready.wait()
                due, data = held.popleft()
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(data)
            except OSError:
                return

    threading.Thread(target=read, daemon=True).start()
    threading.Thread(target=write, daemon=True).start()


def free_port() -> int:
    """A port on loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


# --- one side ---------------------------------------------------------------------------------


class _Log:
    """Log of one side's measurements."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._start = time.perf_counter()
        self._processor = self.started = processor_seconds()
        # Helpers seen at the first step. Looking for them at each frame costs more than a frame.
        self._helpers: list[str] | None = None
        self._wire = traffic()
        self.bytes_sent = self.bytes_received = self.received = self.round_trips = 0
        self.waiting = 0.0
        self._asked = False
        self.steps: list[dict[str, float]] = []
        self.spent: list[float] = []
        self.peak = 0

    def send(self, frame: bytes) -> None:
        self._channel.send(frame)
        self.bytes_sent += len(frame)
        self._asked = True
        self.spent.append(processor_seconds(self._helpers or ()) - self._processor)

    def receive(self) -> bytes:
        start = time.perf_counter()
        frame = self._channel.receive(SILENCE_SECONDS)
        self.waiting += time.perf_counter() - start
        self.bytes_received += len(frame)
        self.received += 1
        self.round_trips += int(self._asked)
        self._asked = False
        return frame

    def observe(self, event: Event) -> None:
        if isinstance(event, Progress):
            if self._helpers is None:
                self._helpers = children()
            self.steps.append(self._so_far(processor_seconds(self._helpers)))

    def wire(self) -> tuple[int, int]:
        """Bytes sent and received since then, with all that carries them."""
        sent, received = traffic()
        return sent - self._wire[0], received - self._wire[1]

    def end(self) -> dict[str, float]:
        """Totals of the training; the most memory is a high-water mark, read once."""
        self.peak = sum(peaks_of_processes().values())
        return self._so_far(processor_seconds())

    def _so_far(self, processor: float) -> dict[str, float]:
        return {
            "seconds": time.perf_counter() - self._start,
            "processor": processor - self._processor,
            "bytes_sent": self.bytes_sent,
            "bytes_received": self.bytes_received,
            "received": self.received,
            "round_trips": self.round_trips,
        }


def processor_seconds(helpers: Sequence[str] | None = None) -> float:
    """Processor seconds of this process and its helpers; None looks for those that run."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = time.process_time() + ended.ru_utime + ended.ru_stime
    tick = os.sysconf("SC_CLK_TCK")
    for child in children() if helpers is None else helpers:
        with suppress(OSError):
            fields = Path(f"/proc/{child}/stat").read_text(encoding="ascii").rsplit(")", 1)[1]
            total += sum(map(int, fields.split()[11:13])) / tick
    return total


def peaks_of_processes() -> dict[str, int]:
    """The most memory that this process and each of its helpers had, in bytes."""
    peaks: dict[str, int] = {}
    for process in ("self", *children()):
        with suppress(OSError):
            status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
            peaks[process] = sum(
                int(line.split()[1]) << 10
                for line in status.splitlines()
                if line.startswith("VmHWM:")
            )
    return peaks


def children() -> list[str]:
    """The processes that this one started and that still run."""
    listed: list[str] = []
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            listed += task.read_text(encoding="ascii").split()
    return listed


def run_side(role: Role, folder: Path, port: int) -> dict[str, Any]:
    """One side's training, from the moment the two are connected."""
    task = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    timed = TimedScheme(scheme(task["agreement"]["scheme"]))
    terms = Terms(Agreement.from_mapping(task["agreement"]), cast(Scheme, timed))
    entropy = KeyedEntropy.from_seed(task["seed"]).fork(role)
    program = _program(role, folder, terms, entropy, task["intercept"])
    endpoint = _endpoint(role, folder, port)
    try:
        channel = endpoint.connect(CONNECT_SECONDS)
        log = _Log(channel)
        driver: Driver[Any] = Driver(role, program, log.send, observe=log.observe)
        with one_thread(), np.errstate(over="ignore", invalid="ignore"):
            driver.start()
            while not driver.finished:
                driver.feed(log.receive())
        end, wire = log.end(), log.wire()
        channel.close()
    finally:
        endpoint.close()
    stages = {name: timed.clock.stage(name) for name in STAGES}
    rest = end["seconds"] - log.waiting - sum(stages.values())
    return {
        "end": end,
        "steps": log.steps,
        "spent": log.spent,
        "stages": stages,
        "rest": rest,
        "peak_bytes": log.peak,
        "started": log.started,
        "wire": wire,
        "model": _model(driver.result),
    }


def _model(trained: Trained) -> dict[str, Any]:
    return {
        "weights": trained.weights.tolist(),
        "means": None if trained.means is None else trained.means.tolist(),
        "share": _share(trained.share),
        "bob_share": _share(trained.bob_share),
    }


def _share(share: WeightShare | None) -> dict[str, Any] | None:
    if share is None:
        return None
    whitening = None if share.whitening is None else share.whitening.factor.tolist()
    free = 0 if share.whitening is None else share.whitening.free
    values, scales = share.values.tolist(), share.scales.to_json()
    return {"values": values, "scales": scales, "whitening": whitening, "free": free}


def _program(role: Role, folder: Path, terms: Terms, entropy: Entropy, intercept: bool) -> Any:  # noqa: ANN401
    with np.load(folder / f"{role}.npz") as file:
        values = np.ascontiguousarray(file["values"])
        labels = file["labels"] if role == "bob" else None
    ids = RowIds.numbered(len(values))
    names = [f"x{number}" for number in range(values.shape[1])]
    if role == "bob" and intercept:
        names[-1] = INTERCEPT
    features = FeatureTable(ids, tuple(names), values)
    if labels is None:
        return ALICE[terms.conversation](AliceInputs(features, terms, entropy))
    method, ledger = mechanism(terms.agreement), Ledger(len(values), "")
    truth = LabelTable(ids, labels)
    return BOB[terms.conversation](BobInputs(features, truth, terms, method, ledger, entropy))


def _endpoint(role: Role, folder: Path, port: int) -> Endpoint:
    certs = folder / "certs"
    own = load_credentials(certs / f"{role}.pem", certs / f"{role}.key", certs / AUTHORITY)
    if role == "bob":
        from taciturn.transport.serve import Hub

        return Hub(f"127.0.0.1:{port}", own, pins={"alice": None}).endpoints["alice"]
    from taciturn.transport.dial import DialEndpoint

    return DialEndpoint(f"127.0.0.1:{port}", own, peer="bob")


if __name__ == "__main__":
    own_role: Role = "alice" if sys.argv[1] == "alice" else "bob"
    print(json.dumps(run_side(own_role, Path(sys.argv[2]), int(sys.argv[3]))))
