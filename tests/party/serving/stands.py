"""Both sides of a service in threads, over a wire in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.engine import Callbacks, Endpoints
from taciturn.party import PartyConfig, UsedModel, identity_of
from taciturn.party.consent import PartnerBudget, ScoreBudget, ServiceBudget
from taciturn.party.serving import (
    Answered,
    Desk,
    Job,
    RowSource,
    ScorePartner,
    StandingModel,
    common_ids,
    source_of,
)
from tests.party.wires import Wire
from tests.waiting import HANG, wait_until


def serve_settings(folder: Path, name: str, **values: Any) -> PartyConfig:
    """A party's settings with a [serve] of its own: the new rows unless another source is named."""
    from tests.party.sides import section

    path = folder / f"{name}.toml"
    text = path.read_text(encoding="utf-8").partition("[serve]")[0]
    values = {"source": f"new-{name}.csv", **values}
    path.write_text(f"{text}\n{section('serve', values)}", encoding="utf-8")
    return PartyConfig.read(path)


def standing_model(config: PartyConfig) -> StandingModel:
    used = UsedModel.read(config, config.path(config.output.model))
    return StandingModel(used, str(config.normalisation), identity_of(config))


def partner(
    config: PartyConfig, endpoint: Endpoints, source: RowSource | None = None
) -> ScorePartner:
    """Alice's side."""
    model, scores = standing_model(config), ScoreBudget.from_config(config)
    assert scores is not None
    service = ServiceBudget(scores.store.open())
    rows = source or source_of(config, model.used.model)
    budget = PartnerBudget(service, scores, config.serve.rows_per_day, model.row_answers)
    listed = common_ids(config)
    return ScorePartner(config, model, rows, budget, endpoint, Callbacks(), listed)


class Stand:
    """Bob's desk and his rows."""

    def __init__(self, config: PartyConfig, endpoint: Endpoints) -> None:
        self.model = standing_model(config)
        self.source = source_of(config, self.model.used.model)
        self.desk = Desk(config, self.model, endpoint, Callbacks())

    def job(self, ids: Sequence[str]) -> Job:
        """Puts rows in line."""
        values: FloatArray = self.desk.coordinates(self.source.take(ids).values)
        job = Job(tuple(ids), values, time.monotonic() + HANG)
        self.desk.submit(job)
        return job

    def ask(self, ids: Sequence[str]) -> Answered:
        """What comes of rows."""
        return self.job(ids).future.result(HANG)

    def scores(self, ids: Sequence[str]) -> dict[str, float]:
        """The scores of rows that all have one."""
        answered = self.ask(ids)
        assert not np.isnan(answered.scores).any(), answered.verdicts
        return dict(zip(ids, answered.scores.tolist(), strict=True))


@contextmanager
def runs(side: ScorePartner) -> Iterator[ScorePartner]:
    """An Alice in a thread."""
    thread = threading.Thread(target=side.run)
    thread.start()
    try:
        yield side
    finally:
        side.end()
        thread.join(HANG)
        assert not thread.is_alive()


@contextmanager
def opened(folder: Path, wire: Wire, **settings: Any) -> Iterator[Stand]:
    """Bob's side of a folder, whoever may call; ``settings`` are those of [serve]."""
    stand = Stand(serve_settings(folder, "bob", **settings), wire.endpoint(serves=True))
    stand.desk.start()
    try:
        yield stand
    finally:
        stand.desk.close(HANG)


@contextmanager
def calling(
    folder: Path,
    wire: Wire,
    wrap: Callable[[RowSource], RowSource] = lambda source: source,
    **settings: Any,
) -> Iterator[ScorePartner]:
    """Alice's side of a folder, with a source of rows that ``wrap`` may have changed."""
    config = serve_settings(folder, "alice", **settings)
    source = wrap(source_of(config, standing_model(config).used.model))
    with runs(partner(config, wire.endpoint(serves=False), source)) as side:
        yield side


@contextmanager
def service(folder: Path, wire: Wire | None = None, **settings: dict[str, Any]) -> Iterator[Stand]:
    """Both sides of a folder, connected; ``settings`` are those of [serve], by role."""
    wire = wire or Wire()
    alice, bob = (settings.get(role, {}) for role in ("alice", "bob"))
    with opened(folder, wire, **bob) as stand, calling(folder, wire, **alice):
        wait_until(lambda: stand.desk.seen.connected)
        yield stand
