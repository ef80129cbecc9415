"""Pieces of work, one per dataset and seed, on all cores, each kept on the shelf.

A piece is a function of a dataset, a seed and whether it is to be quick, and gives JSON. Whoever
asks for many gets those that the shelf has at once; the others are made in processes of their own,
so that an interrupt loses the pieces in hand and no more.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taciturn.errors import ConfigError, DatasetUnavailable, nearest
from taciturn.parallel import one_thread
from taciturn.settings.schema import DATASET_DEFAULTS, Settings
from taciturn.simulation.source import load_raw
from taciturn_paper.record import Record
from taciturn_paper.shelf import Shelf

Work = Callable[[str, int, bool], Any]
Progress = Callable[[int, int], None]
# How much longer a dataset's trainings take than breast-cancer's: iterations by columns, roughly.
_WEIGHTS = {"sklearn-digits": 2, "census-income": 50, "give-me-some-credit": 300}
# Small test parts vary more from seed to seed, and small trainings take less.
SMALL = ("breast-cancer", "sklearn-digits")
SMALL_SEEDS, LARGE_SEEDS, QUICK_SMALL_SEEDS, QUICK_LARGE_SEEDS = 30, 10, 4, 2


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece: what is done, to which dataset, for which seed."""

    work: Work
    dataset: str
    seed: int
    quick: bool

    @property
    def asked(self) -> Record:
        """What decides its result."""
        return {
            "work": f"{self.work.__module__.rpartition('.')[2]}.{self.work.__name__}",
            "dataset": self.dataset,
            "seed": self.seed,
            "quick": self.quick,
        }

    @property
    def weight(self) -> int:
        """How much of the time it takes, roughly."""
        return _WEIGHTS.get(self.dataset, 1)

    def result(self, folder: Path | None) -> Any:  # noqa: ANN401 - JSON
        """Made now, or taken from the shelf."""
        with one_thread():
            return Shelf(folder).result(
                self.asked, lambda: self.work(self.dataset, self.seed, self.quick)
            )


def results(
    pieces: Sequence[Piece], folder: Path | None, progress: Progress = lambda done, total: None
) -> list[Any]:
    """The results, in the order of the pieces.

    Args:
        pieces: What to do.
        folder: The shelf's; None keeps nothing.
        progress: Called with how much is done, and of how much.
    """
    total, done = sum(piece.weight for piece in pieces), 0
    by_number: dict[int, Any] = {}
    progress(0, total)
    cores = min(len(pieces), os.cpu_count() or 1)
    if cores == 1:
        return [piece.result(folder) for piece in pieces]
    # Spawned, not forked: a forked process would take over threads that others hold locks in.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores, mp_context=context) as pool:
        # The largest first, so that no core waits at the end for one that another began late.
        order = sorted(range(len(pieces)), key=lambda number: -pieces[number].weight)
        running = {pool.submit(pieces[number].result, folder): number for number in order}
        try:
            for future in as_completed(running):
                number = running[future]
                by_number[number] = future.result()
                done += pieces[number].weight
                progress(done, total)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [by_number[number] for number in range(len(pieces))]


def seed_plan(
    datasets: Iterable[str], first: int, count: int | None, quick: bool
) -> dict[str, range]:
    """Which seeds each dataset gets.

    >>> seed_plan(["breast-cancer", "census-income"], 0, None, False)
    {'breast-cancer': range(0, 30), 'census-income': range(0, 10)}

    Raises:
        ConfigError: A mean of fewer than two has no interval.
    """
    if count is not None and count < 2:
        raise ConfigError(
            "one seed gives no interval", setting="seeds", hint="use two or more, best ten"
        )
    small, large = (QUICK_SMALL_SEEDS, QUICK_LARGE_SEEDS) if quick else (SMALL_SEEDS, LARGE_SEEDS)
    return {
        name: range(first, first + (count or (small if name in SMALL else large)))
        for name in datasets
    }


def by_name(pieces: Sequence[Piece], results: Sequence[Any]) -> dict[str, list[Any]]:
    """The results of each dataset, in the order of its seeds."""
    grouped: dict[str, list[Any]] = {}
    for piece, result in zip(pieces, results, strict=True):
        grouped.setdefault(piece.dataset, []).append(result)
    return grouped


def available(datasets: Iterable[str]) -> tuple[list[str], list[str]]:
    """Which of these datasets are here, and which are not.

    Raises:
        ConfigError: One is unknown.
    """
    here, missing = [], []
    for name in datasets:
        if name not in DATASET_DEFAULTS:
            raise ConfigError(
                f"unknown dataset {name}", setting="dataset", hint=nearest(name, DATASET_DEFAULTS)
            )
        try:
            load_raw(
                Settings.of({"dataset": name, "mechanism": "none", "solver": "sgd"}).resolved()
            )
        except DatasetUnavailable:
            missing.append(name)
        else:
            here.append(name)
    return here, missing
