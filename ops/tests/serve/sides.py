"""Both sides of a service in threads, over a wire in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.engine.callbacks import Callbacks
from taciturn.jobs.base import RunContext
from taciturn.party.config import PartyConfig
from taciturn.transport.channel import Endpoints
from taciturn_ops.serve.alice import FeatureSide
from taciturn_ops.serve.batcher import BatchResult, ScoreRequest
from taciturn_ops.serve.bob import LabelSide
from taciturn_ops.serve.http.callers import new_token
from taciturn_ops.serve.job import ServeJob
from taciturn_ops.serve.section import ServeSection
from taciturn_ops.serve.sources import ReplaceableRows, RowSource
from tests.party.wires import Wire
from tests.waiting import HANG, wait_until


def serve_settings(folder: Path, name: str, **values: Any) -> PartyConfig:
    """A party's settings with a [serve] of its own: the new rows unless another source is named."""
    from tests.party.sides import section

    path = folder / f"{name}.toml"
    text = path.read_text(encoding="utf-8").partition("[serve]")[0]
    values = values if "query" in values else {"source": f"new-{name}.csv", **values}
    path.write_text(f"{text}\n{section('serve', values)}", encoding="utf-8")
    return PartyConfig.read(path)


def alice_side(config: PartyConfig) -> FeatureSide:
    side = ServeJob(config.path(config.output.model)).prepare(config)
    assert isinstance(side, FeatureSide)
    return side


def run_side(side: FeatureSide, endpoint: Endpoints) -> None:
    """Alice's side until ``stop`` is set."""
    job = ServeJob(side.config.path(side.config.output.model))
    side.run_session(RunContext(job, side.config, Callbacks(), endpoint))


class Stand:
    """Bob's side, and requests that come otherwise than over HTTP."""

    def __init__(self, config: PartyConfig, endpoint: Endpoints) -> None:
        callers = config.folder / "callers.toml"
        if not callers.exists():
            new_token(callers, "crm")
        section = config.section(ServeSection).model_copy(update={"tokens": callers.name})
        config.job_sections["serve"] = section
        self._over = threading.Event()
        job = ServeJob(config.path(config.output.model), self._host)
        side = job.prepare(config)
        assert isinstance(side, LabelSide)
        self.side, self.batcher = side, side.batcher
        context = RunContext(job, config, Callbacks(), endpoint)
        self._thread = threading.Thread(target=side.run_session, args=[context])

    def _host(self, app: object) -> None:
        self._over.wait()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join(HANG)
        assert not self._thread.is_alive()

    def request(self, ids: Sequence[str]) -> ScoreRequest:
        """Puts rows in line."""
        values = self.side.rows.checked(self.side.source.take(ids), ids).values
        request = ScoreRequest(tuple(ids), values, time.monotonic() + HANG)
        self.batcher.submit(request)
        return request

    def ask(self, ids: Sequence[str]) -> BatchResult:
        """What comes of rows."""
        return self.request(ids).future.result(HANG)

    def scores(self, ids: Sequence[str]) -> dict[str, float]:
        """The scores of rows that all have one."""
        answered = self.ask(ids)
        assert not np.isnan(answered.scores).any(), answered.verdicts
        return dict(zip(ids, answered.scores.tolist(), strict=True))


@contextmanager
def runs(side: FeatureSide, endpoint: Endpoints) -> Iterator[FeatureSide]:
    """An Alice in a thread."""
    thread = threading.Thread(target=run_side, args=[side, endpoint])
    thread.start()
    try:
        yield side
    finally:
        side.stop.set()
        thread.join(HANG)
        assert not thread.is_alive()


@contextmanager
def opened(folder: Path, wire: Wire, **settings: Any) -> Iterator[Stand]:
    """Bob's side of a folder, whoever may call; ``settings`` are those of [serve]."""
    stand = Stand(serve_settings(folder, "bob", **settings), wire.endpoint(serves=True))
    stand.start()
    try:
        yield stand
    finally:
        stand.close()


@contextmanager
def calling(
    folder: Path,
    wire: Wire,
    wrap: Callable[[RowSource], RowSource] = lambda source: source,
    **settings: Any,
) -> Iterator[FeatureSide]:
    """Alice's side of a folder, with a source of rows that ``wrap`` may have changed."""
    side = alice_side(serve_settings(folder, "alice", **settings))
    side.source = ReplaceableRows(wrap(side.source))
    with runs(side, wire.endpoint(serves=False)):
        yield side


@contextmanager
def service(folder: Path, wire: Wire | None = None, **settings: dict[str, Any]) -> Iterator[Stand]:
    """Both sides of a folder, connected; ``settings`` are those of [serve], by role."""
    wire = wire or Wire()
    alice, bob = (settings.get(role, {}) for role in ("alice", "bob"))
    with opened(folder, wire, **bob) as stand, calling(folder, wire, **alice):
        wait_until(lambda: stand.batcher.stats.connected)
        yield stand
