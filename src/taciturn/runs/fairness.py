"""Whether runs may be compared by their figures: what differs besides what is compared."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from taciturn.results.manifest import Manifest
from taciturn.results.run_list import RunEntry
from taciturn.runs.parts import Part

_SPLIT = ("test_fraction", "held_out", "split_salt")


def unfair(parts: Sequence[Part]) -> tuple[str, ...]:
    """What keeps the figures of runs from being compared, in sentences; none where nothing does.

    Args:
        parts: The runs.
    """
    manifests = [part.manifest for part in parts]
    entries = [part.entry for part in parts]
    return (*_data(entries, manifests), *_split(parts), *_made(entries, manifests))


def _data(entries: Sequence[RunEntry], manifests: Sequence[Manifest]) -> Iterator[str]:
    """Whether they are of the same table; rows say nothing more where the tables differ."""
    names = [made.data.name for made in manifests]
    rows = [(entry.rows, entry.held_out_rows) for entry in entries]
    if _differ(names):
        yield f"The data differ: {_listed(names)}."
    elif any(_differ(digests) for digests in _digests(manifests)):
        yield "The data have the same name and another content: their digests differ."
    elif _differ(pair for pair in rows if None not in pair):
        spelled = [f"{train} + {held_out}" for train, held_out in rows]
        yield f"The numbers of rows differ (training + held-out): {_listed(spelled)}."
    columns = [tuple(sorted(made.data.columns.items())) for made in manifests]
    # A party knows its own columns alone.
    if _differ(pair for pair in columns if len(pair) > 1):
        yield "The columns are divided between the sides in another way, or are others."


def _digests(manifests: Sequence[Manifest]) -> Iterator[list[str]]:
    """The digests of each kind that more than one run has."""
    kinds = {kind for made in manifests for kind in made.data.digests}
    for kind in sorted(kinds):
        yield [made.data.digests[kind] for made in manifests if kind in made.data.digests]


def _split(parts: Sequence[Part]) -> Iterator[str]:
    """Whether the same rows were held out."""
    entries = [part.entry for part in parts]
    simulated = [entry for entry in entries if not entry.private]
    if _differ((entry.seed, entry.seeds) for entry in simulated):
        seeds = _listed(_seed(entry) for entry in simulated)
        yield f"The seeds differ, and with them the rows that are held out: {seeds}."
    elif len(simulated) > 1 and simulated[0].seed is None and simulated[0].rows is not None:
        yield "No seed was given: every run has held out other rows."
    if _differ(tuple(part.settings.get(name) for name in _SPLIT) for part in parts):
        yield "The rows are split into training and held-out ones in another way."
    if _differ(bool(part.settings.get("permute_labels")) for part in parts):
        yield "Some were trained on labels shuffled beforehand, and some were not."


def _made(entries: Sequence[RunEntry], manifests: Sequence[Manifest]) -> Iterator[str]:
    """Whether they were made in the same way, in the same place."""
    if _differ(entry.private for entry in entries):
        yield "Some are simulations, and some are one side's part in a real session."
    if _differ(made.version for made in manifests):
        yield f"Different versions made them: {_listed(made.version for made in manifests)}."
    if _differ(entry.forecast for entry in entries):
        yield "Of some, time and traffic were forecast, and of others measured."
    if _differ(made.host for made in manifests):
        yield "They ran on different machines, or Pythons: their times are not comparable."


def _differ(values: Iterable[Hashable]) -> bool:
    return len(set(values)) > 1


def _listed(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(values))


def _seed(entry: RunEntry) -> str:
    if entry.seeds > 1:
        return f"{entry.seeds} from {entry.seed or 0}"
    return "none" if entry.seed is None else str(entry.seed)
