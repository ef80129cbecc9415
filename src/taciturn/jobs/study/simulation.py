"""A study with all parties on this machine: its trainings on all cores.

Each training is a simulated one, in a worker process with one core: they need nothing of each
other, so that two cores do twice as many. Which models there are, their folds and their order are
those of a study between machines (``taciturn.jobs.study.plan``).
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import astuple, dataclass, replace
from multiprocessing.connection import Connection, Pipe
from queue import SimpleQueue
from typing import Any, TypeAlias

from taciturn.arrays import IndexArray
from taciturn.data.ids import filled_folds
from taciturn.data.split import VerticalData
from taciturn.engine.callbacks import ReportProgress, noop
from taciturn.engine.pair import run_pair
from taciturn.errors import ConfigError, LocalProtocolError
from taciturn.jobs.study.plan import (
    StudyModel,
    StudyTraining,
    opened_scores,
    planned_ledger,
    study_models,
    study_trainings,
    sums_of,
)
from taciturn.jobs.study.result import FoldFigures, SimulatedStudy, StudiedSetting, StudyTable
from taciturn.jobs.study.sums import added_shares, judged_by_sum
from taciturn.jobs.study.worker import to_bytes
from taciturn.parallel import usable_cores
from taciturn.privacy.solvers import resolved
from taciturn.protocol.agree import agree, with_row_defaults
from taciturn.protocol.alice.row_sums import open_sums
from taciturn.protocol.bob.row_sums import read_sums
from taciturn.protocol.row_sums import OpenedLoss
from taciturn.protocol.terms import Terms
from taciturn.results.reading import read
from taciturn.results.training import TrainingRun
from taciturn.setting_syntax import Hint
from taciturn.settings.schema import Settings
from taciturn.settings.study import Point, Study, named
from taciturn.simulation import RunEntropy, Source, arrange

MOST_WORKERS = 16
Channel: TypeAlias = "Connection[Any, Any]"


@dataclass(frozen=True, slots=True)
class SimulatedPlan:
    """Settings of each combination by its number, tables, folds and models of a study."""

    settings: dict[int, Settings]
    data: VerticalData
    folds: IndexArray
    models: tuple[StudyModel, ...]
    entropy: RunEntropy

    @classmethod
    def from_study(cls, base: Settings, study: Study, raw: Source) -> SimulatedPlan:
        """Raises as ``simulate_study``."""
        if base.seeds > 1:
            raise ConfigError(
                "a study has one seed: its folds are the repetitions",
                setting="seeds",
                hint=Hint("leave {seeds} out"),
            )
        study.require_family(base.family)
        study.require_mechanism(base.mechanism)
        entropy = RunEntropy.for_seed(base.seed)
        settings = {point.number: _settings_at(base, point) for point in study.points}
        data = arrange(settings[study.points[0].number], raw, entropy.data)
        rows, held_out = data.labels_train.rows, data.labels_test.rows if data.held_out else 0
        folds = filled_folds(data.labels_train.ids, study.folds, str(base.seed or 0))
        # Penalty, passes and range of a fold are those of all training rows, also as defaults.
        settings = {number: with_row_defaults(one, rows) for number, one in settings.items()}
        pins = entropy.pins([name for name, _ in data.alices])
        columns = len(data.alice_train.columns)

        def terms(point: Point, rows: int) -> Terms:
            return agree(settings[point.number], columns, rows, parties=pins)

        return cls(settings, data, folds, study_models(study, folds, held_out, terms), entropy)


def simulate_study(
    base: Settings,
    study: Study,
    raw: Source,
    *,
    workers: int | None = None,
    progress: ReportProgress = noop,
) -> SimulatedStudy:
    """Train every model of a study; None for ``workers`` uses one process a core.

    Raises ``ConfigError`` where the settings of a model do not go together, and ``ShapeError``
    where there are too few rows for the folds.
    """
    start, plan = time.perf_counter(), SimulatedPlan.from_study(base, study, raw)
    settings, data, folds, models = plan.settings, plan.data, plan.folds, plan.models
    columns, entropy = len(data.alice_train.columns), plan.entropy
    trainings = study_trainings(models)
    count = min(workers or usable_cores(), MOST_WORKERS, len(trainings))
    requests = [
        _request(settings[training.models[0].point.number], training, base.seed)
        for training in trainings
    ]
    runs, shares = _train(trainings, requests, to_bytes(data, folds), count, progress)
    first, bob_columns = runs[study.folds], len(data.bob_train.columns)
    judging = data.labels_train if study.folds else data.labels_test
    opened = _opened_sums(models, shares, entropy)

    def setting(point: Point) -> StudiedSetting:
        trained = [(model, runs[model.number]) for model in models if model.point == point]
        whole = trained[-1][1]
        setting = StudiedSetting(
            number=point.number,
            values=point.values,
            columns=columns + bob_columns,
            converged=whole.convergence.converged,
        )
        if opened:
            return judged_by_sum(setting, opened[point.number], judging)
        judged = setting.judged(
            tuple(FoldFigures.from_metrics(run.metrics.test) for model, run in trained[:-1]),
            whole.metrics.test,
        )
        return judged if data.held_out else replace(judged, held_out=None)

    return SimulatedStudy(
        data=replace(first.data, dataset=base.dataset or base.data),
        mechanism=base.mechanism,
        solver=first.agreement.solver.name,
        scheme=first.agreement.scheme,
        seed=base.seed,
        study=StudyTable.from_settings(study, [setting(point) for point in study.points]),
        scores_per_row=opened_scores(trainings, study.folds).per_row,
        ledger=planned_ledger(trainings, study.folds, bob_columns, base.delta).statement(),
        seconds=time.perf_counter() - start,
        workers=count,
        notes=first.notes,
    )


def _opened_sums(
    models: Sequence[StudyModel], shares: Mapping[int, tuple[int, int]], entropy: RunEntropy
) -> dict[int, OpenedLoss]:
    """Each setting's sum, by number, as both parties' programs open them; empty without sums."""
    plan = sums_of(models)
    if plan is None:
        return {}
    points = {model.point.number: model.point for model in models}
    hers, his = (
        added_shares(
            plan,
            [*points.values()],
            {
                number: [
                    shares[model.number][side]
                    for model in models
                    if model.point.number == number and model.number in shares
                ]
                for number in points
            },
        )
        for side in (0, 1)
    )
    noise = entropy.alice.fork("sums of the study")
    _, opened = run_pair(open_sums(plan, hers, noise), read_sums(plan, his))
    return dict(zip(points, opened, strict=True))


def _settings_at(base: Settings, point: Point) -> Settings:
    given = base.model_dump(exclude_none=True) | dict(point.values)
    if given.get("solver") == "sgd" and "passes" not in point.values:
        given.pop("passes", None)
    with named(point):
        return resolved(Settings.from_mapping(given))


def _request(settings: Settings, training: StudyTraining, seed: int | None) -> bytes:
    """Description of a training for a worker."""
    given = settings.model_dump(mode="json", exclude_none=True)
    return json.dumps(
        {
            "fold": training.fold,
            "settings": {**given, "seed": None, "cores": 1},
            "penalties": training.terms.agreement.penalties,
            "summed": None if training.terms.summed is None else astuple(training.terms.summed),
            "seed": None if seed is None else (seed << 16) + training.models[0].number,
        }
    ).encode()


def _train(
    trainings: Sequence[StudyTraining],
    requests: Sequence[bytes],
    tables: bytes,
    workers: int,
    progress: ReportProgress,
) -> tuple[dict[int, TrainingRun], dict[int, tuple[int, int]]]:
    """The runs of all models by number, and shares of sums that judge them.

    ``requests`` and ``tables`` are for workers.
    """
    shares: dict[int, tuple[int, int]] = {}
    finished, idle = itertools.count(1), SimpleQueue[Channel]()
    models = [model for training in trainings for model in training.models]

    def train(training: StudyTraining, request: bytes) -> list[TrainingRun]:
        channel = idle.get()
        try:
            channel.send_bytes(request)
            reply = json.loads(channel.recv_bytes())
        except (EOFError, OSError):
            raise LocalProtocolError(
                "a process of the study has ended before its work was done",
                hint="look at the memory of this machine, or use fewer workers",
            ) from None
        finally:
            idle.put(channel)
        if "problem" in reply:
            point = training.models[0].point
            raise ConfigError(
                f"model {point.number} of the study ({point}): {reply['problem']}",
                hint=reply["hint"],
            )
        for _ in training.models:
            progress(next(finished), len(models))
        if reply.get("loss_shares") is not None:
            hers, his = reply["loss_shares"]
            shares[training.models[0].number] = hers, his
        return [read(TrainingRun, run) for run in reply["runs"]]

    with ExitStack() as stack:
        for _ in range(workers):
            idle.put(_worker(stack, tables))
        with ThreadPoolExecutor(workers, thread_name_prefix="taciturn-study") as pool:
            # The first that fails ends the others.
            runs = itertools.chain(*pool.map(train, trainings, requests))
            return {model.number: run for model, run in zip(models, runs, strict=True)}, shares


def _worker(stack: ExitStack, tables: bytes) -> Channel:
    """A process that has the tables; it ends with ``stack``."""
    channel, worker_end = Pipe()
    with worker_end:
        # The module is found where this one was, and not in the folder one happens to be in.
        places = os.pathsep.join(entry for entry in sys.path if entry)
        process = subprocess.Popen(  # noqa: S603 - this program
            [sys.executable, "-P", "-m", "taciturn.jobs.study.worker", str(worker_end.fileno())],
            pass_fds=[worker_end.fileno()],
            # Nothing that it prints may come between what this process prints.
            stdout=subprocess.DEVNULL,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": places},
        )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    stack.enter_context(channel)
    channel.send_bytes(tables)
    return channel
