"""One Bob and several Alices in threads, who may be killed and started again at any record."""

from __future__ import annotations

import struct
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from taciturn.deploy import (
    ALIGNMENT,
    NONCE_BYTES,
    Journal,
    Meeting,
    Meta,
    PartyConfig,
    Past,
    PeerSession,
    Rhythm,
)
from taciturn.engine import Callbacks, Endpoints
from taciturn.faces import hyphenated
from taciturn.protocol import PartialScores, Program, TrainingState, kind_of
from taciturn.rng import Entropy, KeyedEntropy, SystemEntropy
from tests.deploy.sides import write_config
from tests.deploy.talks import centre, spoke
from tests.deploy.wires import Wire
from tests.waiting import HANG

KEY = bytes(32)
NAMES = ("alice-1", "alice-2")
# Every boundary is a checkpoint, or none is.
OFTEN, NEVER = Rhythm(iterations=1), Rhythm(10**6, 1e6, 1 << 60)


class Killed(BaseException):
    """The process ends here, without a word to anybody."""


class FrailJournal(Journal):
    """A journal whose process is killed before or after one of the records it notes."""

    at, after, appended = -1, False, 0

    def _append(self, kind: int, body: bytes, link: int = 0) -> None:
        self.appended += 1
        if self.appended == self.at and not self.after:
            raise Killed
        super()._append(kind, body, link)
        if self.appended == self.at:
            raise Killed


class WatchedWire(Wire):
    """Keeps every version of every frame that crosses."""

    def __init__(self, cut: Callable[[int], bool] = lambda number: False) -> None:
        super().__init__(cut)
        self.versions: dict[tuple[str, int], set[bytes]] = defaultdict(set)

    def passing(self, frame: bytes) -> None:
        if frame[:1] == b"\x02":
            number, message = struct.unpack_from("<Q", frame, 1)[0], frame[17:]
            sender = "alice" if kind_of(message) is PartialScores else "bob"
            self.versions[sender, number].add(message)
        super().passing(frame)


def configs(folder: Path, names: Sequence[str] = NAMES, **link: Any) -> dict[str, PartyConfig]:
    """A folder and a file for each party, with keys that nobody has."""
    pins = {name: f"{number:064x}" for number, name in enumerate(names)}
    return {name: party(folder, name, pins, **link) for name in ("bob", *names)}


def party(folder: Path, name: str, pins: Mapping[str, str], **link: Any) -> PartyConfig:
    """A folder and a file for one of the parties, and what they say."""
    role, peer = ("bob", None) if name == "bob" else ("alice", "bob")
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    changes = {hyphenated(key): value for key, value in link.items()}
    star = {"agreement.parties": dict(pins)}
    return PartyConfig.read(write_config(place, role, link={"peer": peer, **changes}, **star))


class Star:
    """The parties of a folder, each with a journal.

    Args:
        folder: Where their files are.
        names: Of the Alices.
        cut: Where the wire of each breaks, by name.
        fresh: Draw anew in each process, so that a frame that is made twice differs.
        rhythm: How often checkpoints are written.
        link: Of [link].
    """

    def __init__(
        self,
        folder: Path,
        names: Sequence[str] = NAMES,
        *,
        cut: Mapping[str, Callable[[int], bool]] | None = None,
        fresh: bool = True,
        rhythm: Rhythm = NEVER,
        **link: Any,
    ) -> None:
        self.names, self.fresh, self.rhythm = tuple(names), fresh, rhythm
        self.configs = configs(folder, names, **link)
        self.wires = {name: WatchedWire((cut or {}).get(name, lambda n: False)) for name in names}
        self.kills: dict[str, tuple[int, bool]] = {}
        self.ends: dict[str, Any] = {}
        self.starts: dict[str, int] = defaultdict(int)
        self.said: dict[str, list[str]] = defaultdict(list)
        self.pasts: list[Past] = []
        self.programs: dict[str, Callable[[Entropy, TrainingState | None], Program[Any]]] = {
            "bob": lambda coins, resume: centre(coins, self.names, resume),
            **dict.fromkeys(names, spoke),
        }
        self._threads: dict[str, threading.Thread] = {}

    def endpoints(self, name: str) -> Endpoints:
        if name == "bob":
            return {other: wire.endpoint(serves=True) for other, wire in self.wires.items()}
        return self.wires[name].endpoint(serves=False)

    def start(self, *names: str) -> None:
        """Starts parties, all by default, each in a thread."""
        for name in names or ("bob", *self.names):
            self._threads[name] = threading.Thread(target=self._live, args=(name,))
            self._threads[name].start()

    def join(self) -> dict[str, Any]:
        """How they ended."""
        for thread in self._threads.values():
            thread.join(HANG)
        assert not any(thread.is_alive() for thread in self._threads.values())
        return self.ends

    def run(self) -> dict[str, Any]:
        self.start()
        return self.join()

    def _live(self, name: str) -> None:
        while True:
            self.starts[name] += 1
            try:
                self.ends[name] = self._process(name)
            except Killed:
                continue
            except BaseException as problem:
                self.ends[name] = problem
            return

    def _process(self, name: str) -> Any:
        """One life of a party: from its journal on, to the end or until it is killed."""
        config = self.configs[name]
        journal = FrailJournal(config.path("journal"), KEY, sync=False)
        journal.at, journal.after = self.kills.pop(name, (-1, False))
        past = journal.resume() or journal.begin(Meta({}, b"", SystemEntropy().token(NONCE_BYTES)))
        if name == "bob":
            self.pasts.append(past)
        seed = {other: place for place, other in enumerate(("bob", *self.names))}[name]
        coins = SystemEntropy() if self.fresh else KeyedEntropy.from_seed(seed)
        body = past.checkpoint.body
        program = self.programs[name](coins, TrainingState.of_bytes(body) if body else None)
        side = PeerSession(config, self.endpoints(name), Callbacks(announce=self.said[name].append))
        try:
            with side.meet(ALIGNMENT, past, journal) as meeting:
                return self._talk(meeting, program)
        finally:
            journal.close()

    def _talk(self, meeting: Meeting, program: Program[Any]) -> Any:
        result = meeting.run(program, rhythm=self.rhythm)
        # Where the last word itself was cut off, nobody can know that it was heard.
        meeting.finish(0.5)
        return result

    def assert_consistent(self) -> None:
        """Everybody heard the same sums, of numbers that left once, and nothing left twice."""
        ends = [self.ends[name] for name in ("bob", *self.names)]
        assert all(end == ends[0] for end in ends), ends
        for wire in self.wires.values():
            assert {len(versions) for versions in wire.versions.values()} == {1}
