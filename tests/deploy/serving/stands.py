"""Both sides of a service in threads, over a wire in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.deploy import PartyConfig, UsedModel, identity_of
from taciturn.deploy import open_score_book as score_book
from taciturn.deploy.serving import (
    Answered,
    Desk,
    Job,
    RowSource,
    ScoreCount,
    ScorePartner,
    StandingModel,
    Usage,
    common_ids,
    source_of,
)
from taciturn.engine import Callbacks, Endpoints
from tests.deploy.wires import Wire
from tests.waiting import HANG, wait_until


def serve_settings(folder: Path, name: str, **values: Any) -> PartyConfig:
    """A party's settings with a [serve] of its own: the new rows unless another source is named."""
    from tests.deploy.sides import section

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
    model, book = standing_model(config), score_book(config)
    assert book is not None
    usage = Usage(config.path(config.serve.usage_file(config.role)), book.salt())
    rows = source or source_of(config, model.used.model)
    count = ScoreCount(book, usage, config.peer, config.serve.rows_per_day, model.row_answers)
    listed = common_ids(config)
    return ScorePartner(config, model, rows, count, endpoint, Callbacks(), listed)


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
def service(folder: Path, wire: Wire | None = None, **settings: dict[str, Any]) -> Iterator[Stand]:
    """Both sides of a folder, connected.

    Args:
        folder: Where they are.
        wire: Between them.
        settings: Of [serve], by role.
    """
    wire = wire or Wire()
    configs = {
        role: serve_settings(folder, role, **settings.get(role, {})) for role in ("alice", "bob")
    }
    stand = Stand(configs["bob"], wire.endpoint(serves=True))
    with runs(partner(configs["alice"], wire.endpoint(serves=False))):
        stand.desk.start()
        try:
            wait_until(lambda: stand.desk.seen.connected)
            yield stand
        finally:
            stand.desk.close(HANG)
