"""A study with all parties on this machine: its trainings on all cores.

Each training is one of ``taciturn.simulation.run``, in a helper process with one core: they need
nothing of each other, so that two cores do twice as many. Folds, tables and the order of the models
are those of a study between machines (``taciturn.party.study_plan``).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any, BinaryIO, cast

import numpy as np

from taciturn.arrays import IndexArray
from taciturn.data.ids import filled_folds
from taciturn.data.split import VerticalData
from taciturn.engine.callbacks import ReportProgress, quietly
from taciturn.engine.study import StudyModel, opened_scores
from taciturn.errors import ConfigError, LocalProtocolError
from taciturn.faces import Hint
from taciturn.parallel import usable_cores
from taciturn.protocol.agree import agree
from taciturn.protocol.bob.forecast import Planned, forecast_all
from taciturn.results.serialise import read
from taciturn.results.study import (
    FoldFigures,
    SimulatedStudy,
    StudiedSetting,
    StudyTable,
    best_of,
    choice_bits,
    mean_of,
    ranked,
)
from taciturn.results.training import TrainingRun
from taciturn.settings.schema import Settings
from taciturn.settings.study import Point, Study, named
from taciturn.simulation.coins import Coins
from taciturn.simulation.source import Source, arrange
from taciturn.simulation.study_worker import receive, send
from taciturn.simulation.tables import to_bytes

MOST_WORKERS = 16


def simulate_study(
    settings: Settings,
    study: Study,
    raw: Source,
    *,
    workers: int | None = None,
    progress: ReportProgress = quietly,
) -> SimulatedStudy:
    """Trains every model of a study; None for ``workers`` uses one process a core.

    Raises ``ConfigError`` where the settings of a model do not go together, and ``ShapeError``
    where there are too few rows for the folds.
    """
    start = time.perf_counter()
    plan = _Plan.of(settings, study, raw)
    count = min(workers or usable_cores(), MOST_WORKERS, len(plan.models))
    runs = plan.run(count, progress)
    rated = ranked([plan.setting(point, runs) for point in study.points], study.rank_by)
    best = best_of(rated, study.rank_by)
    first, scores = runs[study.folds], opened_scores(plan.models, study.folds)
    data = plan.data
    planned = [Planned(model.terms, model.rows, model.fold) for model in plan.models]
    columns = len(data.bob_train.columns)
    ledger = forecast_all(planned, study.folds, columns, delta=settings.delta)
    return SimulatedStudy(
        dataset=settings.dataset or settings.data,
        mechanism=settings.mechanism,
        solver=first.solver,
        scheme=first.scheme,
        seed=settings.seed,
        rows=data.labels_train.rows,
        held_out_rows=data.labels_test.rows if data.held_out else 0,
        alice_columns=len(data.alice_train.columns),
        bob_columns=columns - data.bob_train.free,
        study=StudyTable(
            folds=study.folds,
            rank_by=study.rank_by,
            models=len(plan.models),
            choice_bits=choice_bits(len(study.points)),
            settings=rated,
            best=None if best is None else best.number,
        ),
        scores_per_row=scores.per_row,
        ledger=ledger.statement(),
        seconds=time.perf_counter() - start,
        workers=count,
        notes=first.notes,
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    study: Study
    settings: Mapping[int, Settings]
    data: VerticalData
    folds: IndexArray
    models: tuple[StudyModel, ...]
    seed: int | None

    @classmethod
    def of(cls, base: Settings, study: Study, raw: Source) -> _Plan:
        _require_possible(base)
        coins = Coins.for_seed(base.seed)
        settings = {point.number: _settings_at(base, point) for point in study.points}
        data = arrange(settings[study.points[0].number], raw, coins.data)
        ids = data.labels_train.ids
        folds = filled_folds(ids, study.folds, str(base.seed or 0))
        for number, own in settings.items():
            # The penalty of a fold is that of all training rows, also where it is a default.
            if own.solver == "newton" and own.l2 is None:
                settings[number] = own.model_copy(update={"l2": 1.0 / len(ids)})
        plan = cls(study, settings, data, folds, (), base.seed)
        return replace(plan, models=tuple(plan._models(coins)))

    def _models(self, coins: Coins) -> Iterator[StudyModel]:
        number, data = 0, self.data
        pins = coins.pins([name for name, _ in data.alices])
        columns, rows = len(data.alice_train.columns), data.labels_train.rows
        held_out = data.labels_test.rows if data.held_out else 0
        for point in self.study.points:
            settings = self.settings[point.number]
            for fold in [*range(self.study.folds), None]:
                inside = 0 if fold is None else int(np.count_nonzero(self.folds == fold))
                with named(point):
                    terms = agree(settings, columns, rows - inside, parties=pins)
                scored = held_out if fold is None else inside
                yield StudyModel(number, point, fold, terms, rows - inside, scored)
                number += 1

    def run(self, workers: int, progress: ReportProgress) -> list[TrainingRun]:
        done: list[TrainingRun | None] = [None] * len(self.models)
        with _crew(workers, self.data) as helpers:

            def train(model: StudyModel) -> None:
                helper = helpers.get()
                try:
                    done[model.number] = helper.train(self._job(model), model)
                finally:
                    helpers.put(helper)
                progress(sum(run is not None for run in done), len(done))

            with ThreadPoolExecutor(workers, thread_name_prefix="taciturn-study") as pool:
                # The first that fails ends the others.
                for _ in pool.map(train, self.models):
                    pass
        return cast(list[TrainingRun], done)

    def _job(self, model: StudyModel) -> dict[str, Any]:
        settings = self.settings[model.point.number].model_dump(mode="json", exclude_none=True)
        seed = None if self.seed is None else (self.seed << 16) + model.number
        return {
            "fold": model.fold,
            "folds": [] if model.fold is None else self.folds.tolist(),
            "settings": {**settings, "seed": None, "cores": 1},
            "seed": seed,
        }

    def setting(self, point: Point, runs: list[TrainingRun]) -> StudiedSetting:
        own = [(model, runs[model.number]) for model in self.models if model.point == point]
        folds = tuple(FoldFigures.of(run.test) for model, run in own if model.fold is not None)
        _, whole = own[-1]
        data = self.data
        judged = folds or (FoldFigures.of(whole.test),)
        return StudiedSetting(
            number=point.number,
            values=point.values,
            columns=len(data.alice_train.columns) + len(data.bob_train.columns),
            loss=mean_of(judged, "loss"),
            auc=mean_of(judged, "auc"),
            accuracy=mean_of(judged, "accuracy"),
            folds=folds or None,
            held_out=whole.test if data.held_out else None,
            converged=whole.converged,
        )


def _require_possible(settings: Settings) -> None:
    if settings.seeds > 1:
        raise ConfigError(
            "a study has one seed: its folds are the repetitions",
            setting="seeds",
            hint=Hint("leave {seeds} out"),
        )


def _settings_at(base: Settings, point: Point) -> Settings:
    given = base.model_dump(exclude_none=True) | dict(point.values)
    if given.get("solver") == "sgd" and "passes" not in point.values:
        given.pop("passes", None)
    with named(point):
        return Settings.of(given).resolved()


class _Helper:
    def __init__(self, data: VerticalData) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "taciturn.simulation.study_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        send(self._input, to_bytes(data))

    @property
    def _input(self) -> BinaryIO:
        return cast(BinaryIO, self._process.stdin)

    def train(self, job: dict[str, Any], model: StudyModel) -> TrainingRun:
        try:
            send(self._input, json.dumps(job).encode())
            reply = json.loads(receive(cast(BinaryIO, self._process.stdout)))
        except (EOFError, OSError):
            raise LocalProtocolError(
                "a process of the study has ended before its work was done",
                hint="look at the memory of this machine, or use fewer workers",
            ) from None
        if "problem" in reply:
            raise ConfigError(
                f"model {model.point.number} of the study ({model.point}): {reply['problem']}",
                hint=reply["hint"],
            )
        return read(TrainingRun, reply["run"])

    def close(self) -> None:
        with suppress(OSError):
            self._input.close()
        self._process.terminate()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextmanager
def _crew(count: int, data: VerticalData) -> Iterator[SimpleQueue[_Helper]]:
    queue: SimpleQueue[_Helper] = SimpleQueue()
    helpers: list[_Helper] = []
    try:
        for _ in range(count):
            helpers.append(_Helper(data))
            queue.put(helpers[-1])
        yield queue
    finally:
        for helper in helpers:
            helper.close()
