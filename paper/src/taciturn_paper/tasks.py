"""Tasks of long experiments, one per dataset and seed, on all cores, with a cache of their results.

A task is a function of a dataset, a seed and whether it is to be quick, and gives JSON. Results in
the cache are returned at once; the others are computed in processes of their own, so that an
interrupt loses the tasks in hand and no more, and two tables that need the same trainings share
them. A file's name in the cache is the digest of everything that decides its content; the request
is written beside the result, and a file that does not hold exactly that request is ignored.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from taciturn.data.prepare import RawData
from taciturn.engine.callbacks import Announce, noop
from taciturn.errors import ConfigError, DatasetUnavailable, OutputError, nearest
from taciturn.parallel import one_thread
from taciturn.privacy.solvers import resolved
from taciturn.setting_syntax import Hint
from taciturn.settings.schema import Settings
from taciturn.simulation import load_raw
from taciturn_paper.datasets import NAMES, cache_dir

Record: TypeAlias = dict[str, Any]
Work = Callable[[str, int, bool], Any]
Progress = Callable[[int, int], None]

# Raised whenever the arithmetic changes in a way that a result would show.
ARITHMETIC = 1


def default_cache() -> Path:
    """Default folder of cached results."""
    return cache_dir() / "reproduce"


@dataclass(frozen=True, slots=True)
class ResultCache:
    """A folder of results, made with the first of them; None caches nothing."""

    folder: Path | None

    def result(self, asked: Record, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - any JSON
        """The cached result of a request, or the one that ``make`` computes now."""
        wanted = {"arithmetic": ARITHMETIC, **asked}
        if self.folder is None:
            return make()
        text = json.dumps(wanted, sort_keys=True)
        path = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
        kept = _read(path)
        if kept is not None and kept.get("asked") == json.loads(text) and "result" in kept:
            return kept["result"]
        result = make()
        _write(path, json.dumps({"asked": wanted, "result": result}))
        return result


def _read(path: Path) -> Record | None:
    """The record in a file; None where it is absent or damaged."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(name, path)
    except OSError as problem:
        raise OutputError(
            f"a result cannot be stored: {problem.strerror}",
            where=str(path.parent),
            hint=Hint("name a folder with room by {cache}"),
        ) from None


@dataclass(frozen=True, slots=True)
class Request:
    """Options of an experiment.

    ``quick`` asks for fewer seeds and samples and a small grid. ``seed`` is the first of ``seeds``,
    of which there are more for small datasets where the number is None. No ``datasets`` are all of
    them. ``folder`` is that of the result cache, None for no cache. ``announce`` is called with
    what runs now, ``progress`` with how much is done and of how much.
    """

    quick: bool = False
    seed: int = 0
    seeds: int | None = None
    datasets: Sequence[str] = ()
    folder: Path | None = None
    announce: Announce = noop
    progress: Progress = noop


# How much longer a dataset's trainings take than breast-cancer's: iterations by columns, roughly.
_WEIGHTS = {"sklearn-digits": 2, "census-income": 50, "give-me-some-credit": 300}
# Small test parts vary more from seed to seed, and small trainings take less.
SMALL = ("breast-cancer", "sklearn-digits")
SMALL_SEEDS, LARGE_SEEDS, QUICK_SMALL_SEEDS, QUICK_LARGE_SEEDS = 30, 10, 4, 2


@dataclass(frozen=True, slots=True)
class Task:
    """A function, the dataset and the seed that it is called with."""

    work: Work
    dataset: str
    seed: int
    quick: bool

    @property
    def asked(self) -> Record:
        """Values that determine the result."""
        return {
            "work": f"{self.work.__module__.rpartition('.')[2]}.{self.work.__name__}",
            "dataset": self.dataset,
            "seed": self.seed,
            "quick": self.quick,
        }

    @property
    def weight(self) -> int:
        """Approximate share of the processor time."""
        return _WEIGHTS.get(self.dataset, 1)

    def result(self, folder: Path | None) -> Any:  # noqa: ANN401 - JSON
        """The cached result, or a new one."""
        with one_thread():
            return ResultCache(folder).result(
                self.asked, lambda: self.work(self.dataset, self.seed, self.quick)
            )


def results(tasks: Sequence[Task], folder: Path | None, progress: Progress = noop) -> list[Any]:
    """The results, in the order of the tasks; ``folder`` is that of the cache."""
    total, done = sum(task.weight for task in tasks), 0
    by_number: dict[int, Any] = {}
    progress(0, total)
    cores = min(len(tasks), os.cpu_count() or 1)
    if cores == 1:
        return [task.result(folder) for task in tasks]
    # Spawned, not forked: a forked process would take over threads that others hold locks in.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores, mp_context=context) as pool:
        # The largest first, so that no core waits at the end for one that another began late.
        order = sorted(range(len(tasks)), key=lambda number: -tasks[number].weight)
        running = {pool.submit(tasks[number].result, folder): number for number in order}
        try:
            for future in as_completed(running):
                number = running[future]
                by_number[number] = future.result()
                done += tasks[number].weight
                progress(done, total)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [by_number[number] for number in range(len(tasks))]


def seed_plan(
    datasets: Iterable[str], first: int, count: int | None, quick: bool
) -> dict[str, range]:
    """The seeds of each dataset.

    >>> seed_plan(["breast-cancer", "census-income"], 0, None, False)
    {'breast-cancer': range(0, 30), 'census-income': range(0, 10)}
    """
    # A mean of fewer than two has no interval.
    if count is not None and count < 2:
        raise ConfigError(
            "one seed gives no interval", setting="seeds", hint="use two or more, best ten"
        )
    small, large = (QUICK_SMALL_SEEDS, QUICK_LARGE_SEEDS) if quick else (SMALL_SEEDS, LARGE_SEEDS)
    return {
        name: range(first, first + (count or (small if name in SMALL else large)))
        for name in datasets
    }


def group_by_dataset(tasks: Sequence[Task], results: Sequence[Any]) -> dict[str, list[Any]]:
    """The results of each dataset, in the order of its seeds."""
    grouped: dict[str, list[Any]] = {}
    for task, result in zip(tasks, results, strict=True):
        grouped.setdefault(task.dataset, []).append(result)
    return grouped


def load(dataset: str) -> RawData:
    """The rows of one of the paper's datasets."""
    chosen = {"dataset": dataset, "mechanism": "none", "solver": "sgd"}
    return load_raw(resolved(Settings.from_mapping(chosen)))


def available(datasets: Iterable[str]) -> tuple[dict[str, RawData], list[str]]:
    """The rows of those datasets that are here, and the names of those that are not."""
    here: dict[str, RawData] = {}
    missing: list[str] = []
    for name in datasets:
        if name not in NAMES:
            raise ConfigError(
                f"unknown dataset {name}", setting="dataset", hint=nearest(name, NAMES)
            )
        try:
            here[name] = load(name)
        except DatasetUnavailable:
            missing.append(name)
    return here, missing
