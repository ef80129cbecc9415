"""The runs of a folder: which there are, which are wanted, in which order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from taciturn.errors import ConfigError, DataError, FileError, nearest
from taciturn.results.figures import Part, parts_of
from taciturn.results.folder import MANIFEST, ResultFolder, run_folders
from taciturn.results.run_entry import RunEntry
from taciturn.setting_syntax import Hint
from taciturn_risk.runs.result import RunList, UnreadableRun

_HOW = Hint("commands leave runs in a folder that is named: {out}", out="runs/")


def _large_first(value: float | None) -> tuple[bool, float]:
    return (value is None, -(value or 0.0))


def _small_first(value: float | None) -> tuple[bool, float]:
    return (value is None, math.inf if value is None else value)


def _told(entry: RunEntry) -> float | None:
    return None if entry.leakage is None else entry.leakage.beyond


# What a list can be sorted by; where a run has no such figure, it comes last.
ORDERS: dict[str, Callable[[RunEntry], tuple[object, ...]]] = {
    "time": lambda entry: (entry.started,),
    "name": lambda entry: (entry.name,),
    "auc": lambda entry: _large_first(entry.auc),
    "epsilon": lambda entry: _small_first(entry.label_epsilon),
    "leakage": lambda entry: _small_first(_told(entry)),
    "seconds": lambda entry: _small_first(entry.seconds),
    "bytes": lambda entry: _small_first(entry.bytes),
}


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Filter and order of runs; None accepts any, and leaves the order of ``collect``, by time."""

    mechanism: str | None = None
    dataset: str | None = None
    kind: str | None = None
    sort: str | None = None

    def __post_init__(self) -> None:
        if self.sort is not None and self.sort not in ORDERS:
            raise ConfigError(
                f"cannot sort runs by {self.sort}",
                setting="sort",
                hint=nearest(self.sort, ORDERS),
            )

    def select(self, parts: Iterable[Part]) -> tuple[Part, ...]:
        """The runs that pass the filter, in order of ``sort``; otherwise they keep their order."""
        chosen = [part for part in parts if self._includes(part.entry)]
        if self.sort is not None:
            order = ORDERS[self.sort]
            chosen.sort(key=lambda part: order(part.entry))
        return tuple(chosen)

    def _includes(self, entry: RunEntry) -> bool:
        pairs = (
            (self.mechanism, entry.mechanism),
            (self.dataset, entry.dataset),
            (self.kind, entry.kind),
        )
        return all(wanted is None or wanted == has for wanted, has in pairs)


ANY = RunFilter()


@dataclass(frozen=True, slots=True)
class Collection:
    """Runs that were read, and result folders that could not be."""

    folder: str
    parts: tuple[Part, ...]
    unreadable: tuple[UnreadableRun, ...] = ()

    @property
    def list(self) -> RunList:
        """The same as a result."""
        return RunList(self.folder, tuple(part.entry for part in self.parts), self.unreadable)


def collect(folder: Path, wanted: RunFilter = ANY) -> Collection:
    """The runs in a folder, or in one result folder; FileError if there is no such folder."""
    if not folder.is_dir():
        raise FileError("there is no folder of runs here", where=str(folder), hint=_HOW)
    places = [folder] if (folder / MANIFEST).exists() else list(run_folders(folder))
    parts: list[Part] = []
    unreadable: list[UnreadableRun] = []
    for place in places:
        try:
            parts += parts_of(ResultFolder.read(place))
        except DataError as problem:
            unreadable.append(UnreadableRun(problem.where or str(place), problem.message))
    parts.sort(key=lambda part: part.entry.started)
    return Collection(str(folder), wanted.select(parts), tuple(unreadable))


def named(runs: Sequence[str], folder: Path) -> list[ResultFolder]:
    """The result folders that a person names: by a path, a name, or a part that one name has.

    Raises DataError where one of them is not there, or not whole.
    """
    return [ResultFolder.read(_place(run, folder)) for run in runs]


def _place(run: str, folder: Path) -> Path:
    path, inside = Path(run), folder / run
    # A folder here that is no result must not hide the run of that name.
    if (path / MANIFEST).exists() or (path.is_dir() and not inside.is_dir()):
        return path
    if inside.is_dir():
        return inside
    places = list(run_folders(folder))
    alike = [place for place in places if run in place.name]
    if len(alike) == 1:
        return alike[0]
    names = [place.name for place in alike or places]
    raise FileError(
        f"{len(alike)} runs have {run} in their name" if alike else f"there is no run {run}",
        where=str(folder),
        hint=nearest(run, names) if names else _HOW,
    )
