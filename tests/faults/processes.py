"""Parties as processes over TLS, each of which kills itself at a chosen frame, as kill -9 does.

They are forked from a server that has imported everything: a process is there in milliseconds.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taciturn import errors
from taciturn.engine.callbacks import Callbacks
from taciturn.errors import TaciturnError
from taciturn.party.config import PartyConfig
from taciturn.party.endpoints import open_endpoint
from taciturn.transport.channel import Endpoints
from tests.party.sides import Party, scoring
from tests.party.sides import training as trained
from tests.party.wires import HookedEndpoint, Hooks
from tests.waiting import HANG

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.faults.processes"])
END = "end.json"
# How often a side that was stopped by the other's end is run again: as an operator would.
MOST_STARTS = 12

Work = Callable[[PartyConfig, Endpoints], Any]


def training(config: PartyConfig, way: Endpoints) -> None:
    """Trains, and records it beside the party's file."""
    trained(config, way, Callbacks())


def study(config: PartyConfig, way: Endpoints) -> None:
    """Trains the models of a study."""
    Party(config, way).run()


def prediction(config: PartyConfig, way: Endpoints) -> list[list[Any]]:
    """Scores new rows: Bob's ids and scores."""
    answer = scoring(config, way, Callbacks())
    return [] if answer.scores is None else [[*answer.ids], answer.scores.tolist()]


class FrameCounter:
    """Counts what a side does with its link; at a certain count the process is killed.

    Args:
        fatal: The count; None to live.
    """

    def __init__(self, fatal: int | None) -> None:
        self.count, self._fatal = 0, fatal

    def step(self) -> None:
        self.count += 1
        if self.count == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def hooks(self) -> Hooks:
        """Before a frame leaves (it is in the journal), after, and when one came (it is not)."""

        def passing(envelope: bytes) -> bytes:
            self.step()
            return envelope

        return Hooks(sending=passing, sent=self.step, received=passing)


def live(file: Path, work: Work, fatal: int | None) -> None:
    """The process: does its work, and writes how it ended."""
    counter = FrameCounter(fatal)
    end: dict[str, Any] = {}
    try:
        config = PartyConfig.read(file)
        with open_endpoint(config, lambda text: None) as way:
            if isinstance(way, Mapping):
                ways = {name: HookedEndpoint(one, counter.hooks()) for name, one in way.items()}
                end["result"] = work(config, ways)
            else:
                end["result"] = work(config, HookedEndpoint(way, counter.hooks()))
    except TaciturnError as problem:
        end.update(error=type(problem).__name__, message=problem.message)
    except BaseException as problem:
        end.update(error="", message=repr(problem))
    end["operations"] = counter.count
    file.with_name(f"{file.stem}.{END}").write_text(json.dumps(end))
    # Without waiting for gRPC's threads.
    os._exit(0)


@dataclass
class PartyProcess:
    """One side, which is started as often as need be.

    Args:
        file: Its settings.
        work: What it does.
        kills: After how many operations each of its starts is killed; later ones live.
    """

    file: Path
    work: Work
    kills: list[int] = field(default_factory=list)
    starts: int = 0
    killed: int = 0
    process: Any = None

    def start(self) -> None:
        self.starts += 1
        self._end.unlink(missing_ok=True)
        fatal = self.kills.pop(0) if self.kills else None
        self.process = FORKS.Process(target=live, args=(self.file, self.work, fatal))
        self.process.start()

    @property
    def _end(self) -> Path:
        return self.file.with_name(f"{self.file.stem}.{END}")

    @property
    def over(self) -> bool:
        return not self.process.is_alive()

    @property
    def was_killed(self) -> bool:
        return bool(self.process.exitcode == -signal.SIGKILL)

    def end(self) -> dict[str, Any]:
        if self._end.exists():
            end: dict[str, Any] = json.loads(self._end.read_text())
            return end
        return {"error": "", "message": f"it ended with {self.process.exitcode}"}

    def outcome(self) -> Any:
        """Its result, or the error that it ended with."""
        end = self.end()
        if "error" not in end:
            return end
        kind = getattr(errors, end["error"], None)
        return kind(end["message"]) if kind else RuntimeError(end["message"])

    def stop(self) -> None:
        if self.process is not None and self.process.is_alive():
            self.process.kill()
            self.process.join()


@contextmanager
def nothing_left(sides: Mapping[str, PartyProcess]) -> Iterator[None]:
    """Whatever happens, no process stays."""
    try:
        yield
    finally:
        for side in sides.values():
            side.stop()


def run_with_kills(
    sides: Mapping[str, PartyProcess],
    *,
    on_kill: Callable[[], object] = lambda: None,
    run_again: tuple[type[TaciturnError], ...] = (errors.PeerStopped, errors.TransportError),
) -> dict[str, Any]:
    """Starts all sides; one that was killed is started again, and so is one that it stopped.

    Args:
        sides: By their names.
        on_kill: Called when one was killed, before it is started again.
        run_again: The errors after which all sides are started once more.

    Returns:
        How each ended: what ``PartyProcess.outcome`` says.
    """
    with nothing_left(sides):
        for side in sides.values():
            side.start()
        until = time.monotonic() + HANG
        while True:
            assert time.monotonic() < until, "they did not end"
            for side in sides.values():
                if side.over and side.was_killed:
                    side.killed += 1
                    on_kill()
                    side.start()
                    # Who has ended meanwhile confirms what the other lacks.
                    for other in sides.values():
                        if other.over and not other.was_killed:
                            other.start()
            if all(side.over and not side.was_killed for side in sides.values()):
                stopped = [side for side in sides.values() if isinstance(side.outcome(), run_again)]
                if not stopped or max(side.starts for side in sides.values()) >= MOST_STARTS:
                    return {name: side.outcome() for name, side in sides.items()}
                for side in sides.values():
                    side.start()
            time.sleep(0.005)
