"""What a result folder has to say of each run in it: a line of the list, and every figure.

A folder has one part, or one for each mechanism that its command set side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from taciturn.results.figures import Values
from taciturn.results.folder import ResultFolder
from taciturn.results.manifest import Manifest
from taciturn.results.run_list import RunEntry
from taciturn.results.serialise import Result


@dataclass(frozen=True, slots=True)
class Part:
    """One run: its line, its figures by name, its settings, the result, and what made that."""

    entry: RunEntry
    values: Values = field(repr=False)
    settings: Mapping[str, object] = field(repr=False)
    result: Result = field(repr=False)
    manifest: Manifest = field(repr=False)


def parts_of(folder: ResultFolder) -> tuple[Part, ...]:
    """The runs of a result folder."""
    made = folder.manifest
    return folder.result.parts(Part(_bare(folder), {}, made.settings, folder.result, made))


def _bare(folder: ResultFolder) -> RunEntry:
    made = folder.manifest
    return RunEntry(
        name=folder.name,
        path=str(folder.path),
        part="",
        started=made.started,
        kind=made.kind,
        private=made.private,
        version=made.version,
        dataset=made.data.name,
        mechanism=_text(made.settings.get("mechanism")),
        epsilon=_number(made.settings.get("epsilon")),
        solver=_text(made.settings.get("solver")),
        scheme=_text(made.settings.get("scheme")),
        seed=_whole(made.settings.get("seed")),
        seeds=_whole(made.settings.get("seeds")) or 1,
        rows=made.data.rows,
        held_out_rows=made.data.held_out_rows,
        auc=None,
        auc_low=None,
        auc_high=None,
        label_epsilon=None,
        leakage=None,
        verdict=None,
        seconds=made.seconds,
        bytes=None,
        forecast=False,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> float | None:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain else None  # type: ignore[arg-type]


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
