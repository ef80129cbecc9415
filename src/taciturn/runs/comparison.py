"""Runs side by side: settings that differ, figures with their differences, the best marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from taciturn.errors import ConfigError
from taciturn.faces import Hint
from taciturn.results.run_comparison import FigureRow, RunComparison, SettingRow
from taciturn.runs.fairness import unfair
from taciturn.runs.figures import FIGURES, Figure
from taciturn.runs.parts import Part

# Where a run looks for its files, and how fast: no setting of the model.
_ELSEWHERE = frozenset({"data_dir", "table_memory", "cores", "workers", "mechanisms", "role"})
MOST = 50


def compare_runs(parts: Sequence[Part]) -> RunComparison:
    """Sets runs side by side.

    Args:
        parts: Two or more runs; the first is what the others are compared with.

    Raises:
        ConfigError: There are fewer than two, or too many to read.
    """
    if len(parts) < 2:
        raise ConfigError(
            f"a comparison needs two runs, and there {'is one' if parts else 'are none'}",
            where="taciturn runs compare",
            hint="name two or more; taciturn runs list shows which are there",
        )
    if len(parts) > MOST:
        raise ConfigError(
            f"{len(parts)} runs are too many to set side by side; {MOST} is the most",
            where="taciturn runs compare",
            hint=Hint("name some of them, or use {mechanism}, {dataset} or {kind}"),
        )
    rows = (_row(figure, [part.values.get(figure.key) for part in parts]) for figure in FIGURES)
    return RunComparison(
        sides=tuple(part.entry for part in parts),
        unfair=unfair(parts),
        settings=tuple(_settings(parts)),
        figures=tuple(row for row in rows if any(value is not None for value in row.values)),
    )


def _settings(parts: Sequence[Part]) -> list[SettingRow]:
    """The settings that are not the same in all, by their order in the first run that has them."""
    names = dict.fromkeys(name for part in parts for name in part.settings)
    rows = []
    for name in names:
        values = tuple(_frozen(part.settings.get(name)) for part in parts)
        if name not in _ELSEWHERE and any(value != values[0] for value in values):
            rows.append(SettingRow(name, tuple(part.settings.get(name) for part in parts)))
    return rows


def _frozen(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    # A flag that is not given, and one that is off, are the same.
    return None if value is False else value


def _row(figure: Figure, values: list[float | None]) -> FigureRow:
    first = next((number for number, value in enumerate(values) if value is not None), 0)
    differences = [
        None if number == first else _difference(value, values[first])
        for number, value in enumerate(values)
    ]
    return FigureRow(
        group=figure.group,
        name=figure.name,
        form=figure.form,
        better=figure.better,
        values=tuple(values),
        differences=tuple(differences),
        best=_best(figure, values),
    )


def _difference(value: float | None, first: float | None) -> float | None:
    if value is None or first is None or math.isinf(value) or math.isinf(first):
        return None
    return value - first


def _best(figure: Figure, values: Sequence[float | None]) -> tuple[bool, ...]:
    known = [value for value in values if value is not None]
    if figure.group == "leakage" and len(known) < len(values):
        # Where no attack applies there is no figure, and it may be the best of all.
        known = []
    if figure.better == "neither" or len(known) < 2 or len(set(known)) == 1:
        return tuple(False for _ in values)
    best = max(known) if figure.better == "more" else min(known)
    return tuple(value == best for value in values)
