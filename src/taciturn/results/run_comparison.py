"""Runs side by side: the settings that differ, every figure, and whether that is fair."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from taciturn.results.run_list import RunEntry
from taciturn.results.serialise import Result

Group = Literal["model", "ledger", "leakage", "cost"]
Form = Literal["share", "number", "epsilon", "count", "seconds", "bytes"]


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting that is not the same in all runs; None where a run has none of that name."""

    name: str
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRow:
    """One figure of all runs; None where a run has none.

    ``differences`` are from the first run that has it, and None for that one, and where either is
    infinite. ``best`` says which runs have the best value; none where all are the same, where
    neither more nor less is better, or where no attack applies to one of them.
    """

    group: Group
    name: str
    form: Form
    better: Literal["more", "less", "neither"]
    values: tuple[float | None, ...]
    differences: tuple[float | None, ...]
    best: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class RunComparison(Result):
    """Runs side by side. ``unfair`` says what keeps their figures from being compared, if any."""

    sides: tuple[RunEntry, ...] = field(repr=False)
    unfair: tuple[str, ...]
    settings: tuple[SettingRow, ...] = field(repr=False)
    figures: tuple[FigureRow, ...] = field(repr=False)
