"""``--out``: the result folder of a command that trains or audits.

A command plans before its work (``planned``), so that a folder that is taken is refused at once,
and shows and keeps its result at the end (``finish``).
"""

from __future__ import annotations

import platform
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from taciturn.cli.console import console, show
from taciturn.output_paths import PathUse
from taciturn.setting_syntax import hyphenated
from taciturn.version import __version__

if TYPE_CHECKING:
    from taciturn.data.source import TableSource
    from taciturn.party.config import PartyConfig
    from taciturn.report.blocks import Block, Page
    from taciturn.results.folder import Destination
    from taciturn.results.serialise import Result

Out: TypeAlias = Annotated[
    str | None,
    PathUse.WRITTEN,
    typer.Option(
        metavar="FOLDER",
        help="Write result, provenance and report to this folder, for taciturn runs; a name that "
        "ends with / gets a new folder inside.",
    ),
]


@dataclass(frozen=True, slots=True)
class OutputPlan:
    """Output folder of a result, and the start time of its command."""

    destination: Destination
    started: datetime
    clock: float


@dataclass(frozen=True, slots=True)
class Provenance:
    """Provenance of a result.

    ``settings`` are in full. ``source`` is the name of the data, or the path of the own table.
    ``private``: it is a party's.
    """

    settings: Mapping[str, Any]
    source: str | None
    digests: Mapping[str, str]
    private: bool = False


def plan_output(out: str | None) -> OutputPlan | None:
    """Check where a result folder is to lie, before any work; OutputError if it cannot."""
    if out is None:
        return None
    # Loaded here: the help does not need it.
    from taciturn.results.folder import Destination

    return OutputPlan(Destination.parse(out), datetime.now(UTC), time.perf_counter())


def finish(
    plan: OutputPlan | None,
    result: Result,
    json: bool,
    origin: Callable[[], Provenance],
    brief: Callable[[], Iterable[Block]] | None = None,
) -> None:
    """Show a result, or ``brief`` where it is given, and write its folder where that is planned.

    Neither keeps the other from happening: a full disk, or a reader that has gone. ``origin`` is
    called only where there is a plan.
    """
    try:
        show(result, json, brief)
    finally:
        write_result(plan, result, origin)


def write_result(
    plan: OutputPlan | None,
    result: Result,
    origin: Callable[[], Provenance],
) -> Path | None:
    """Write a result folder where one is planned, and print its path on standard error."""
    if plan is None:
        return None
    from taciturn.extras import explained
    from taciturn.files import to_json
    from taciturn.results.folder import REPORT, RESULT, write_folder

    manifest, words = _manifest(plan, result, origin())
    files = {RESULT: f"{to_json(result.to_dict())}\n".encode()}
    with explained():
        report = result.page(moment())
    if report is not None:
        from taciturn.report.html import render

        files[REPORT] = render(report).encode()
    name = plan.destination.name(plan.started, *words)
    folder = write_folder(plan.destination, name, manifest, files)
    said = f"result folder: {folder}"
    console(error=True).print(said, style="dim", markup=False, soft_wrap=True)
    return folder


def _manifest(plan: OutputPlan, result: Result, came: Provenance) -> tuple[Any, tuple[str, ...]]:
    """Manifest of a result, and the words of its folder's name."""
    from taciturn.parallel import usable_cores
    from taciturn.results.folder import FORMAT, HostFacts, Manifest, ManifestData
    from taciturn.results.serialise import data_name

    subject = result.subject()
    name = data_name(came.source or subject.data)
    mechanism = subject.mechanism or came.settings.get("mechanism")
    manifest = Manifest(
        format=FORMAT,
        kind=result.kind,
        private=came.private,
        command=typed(),
        version=__version__,
        started=plan.started.isoformat(timespec="seconds"),
        ended=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=time.perf_counter() - plan.clock,
        settings=came.settings,
        data=ManifestData(
            name=name,
            rows=subject.rows,
            held_out_rows=subject.held_out_rows,
            columns=subject.columns,
            digests=came.digests,
        ),
        host=HostFacts(platform.python_version(), platform.platform(), usable_cores()),
        files=(),
    )
    return manifest, (result.kind, name, str(mechanism) if mechanism else "")


def moment() -> str:
    """Now, in UTC, for a page."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def typed() -> str:
    """The command as it was typed, with nothing secret in it."""
    from taciturn.results.folder import without_credentials

    return without_credentials(shlex.join(["taciturn", *sys.argv[1:]]))


def simulation_provenance(settings: Mapping[str, Any], **beside: object) -> Provenance:
    """Provenance of a simulation's result; ``beside`` are options that are not settings."""
    from taciturn.privacy.solvers import resolved
    from taciturn.settings.schema import Settings

    given = {name: value for name, value in settings.items() if name != "record"}
    chosen = resolved(Settings.from_mapping(given))
    extra = {name: value for name, value in beside.items() if value is not None}
    full = {**chosen.model_dump(mode="json"), **extra}
    source = chosen.dataset or chosen.data
    return Provenance(full, source, source_digests(chosen.dataset, chosen.data))


def source_digests(dataset: str | None, data: str | None) -> dict[str, str]:
    """The digests that exist of a simulation's data."""
    from taciturn.data.datasets import content_digest
    from taciturn.data.source import TableSource

    if data is not None:
        return _digests(TableSource.at(data))
    known = content_digest(dataset or "")
    return {} if known is None else {"content": known}


# A side's own limits; the rest of its section are files.
_LIMITS = (
    *("budget", "delta", "budget_total", "accept_leak"),
    *("accept_column_exposure", "scores_per_row", "repetitions_per_row", "trainings_per_row"),
)


def party_provenance(config: PartyConfig) -> Provenance:
    """Provenance of a party's result: the agreement, its own limits and its table's file."""
    from taciturn.settings.agreement import ALSO_SIMULATED

    common = config.settings().model_dump(mode="json", include=set(ALSO_SIMULATED))
    limits = {name: getattr(config.privacy, name) for name in _LIMITS}
    beside = config.beside()
    settings = {"role": config.role, **common, **beside, **limits}
    table = config.table()
    return Provenance(settings, table.where, _digests(table), private=True)


def _digests(table: TableSource) -> dict[str, str]:
    digest = table.digest()
    return {} if digest is None else {"file": digest}


def without_training(origin: Provenance) -> Provenance:
    """The same provenance without the settings that only a training has."""
    trained = ("mechanism", "epsilon", "solver")
    settings = {name: value for name, value in origin.settings.items() if name not in trained}
    return replace(origin, settings=settings)


def write_page(page: Page, html: Path | None, markdown: Path | None) -> None:
    """Write a page to an HTML file, a Markdown file or both; None is skipped."""
    from taciturn.files import write_text
    from taciturn.report.html import render as render_html
    from taciturn.report.markdown import render as render_markdown

    if html is not None:
        write_text(html, render_html(page))
    if markdown is not None:
        write_text(markdown, render_markdown(page))


def asked(settings: dict[str, Any]) -> dict[str, object]:
    """Settings that were given, by their names on the command line."""
    named = {name: value for name, value in settings.items() if value not in (None, (), [])}
    return {hyphenated(name): value for name, value in named.items()}
