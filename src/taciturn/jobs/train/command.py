"""The command that trains one side of a model, or of all models of a study."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.console import Json, console
from taciturn.cli.dashboard import Watch, WatchPort, watched_side
from taciturn.cli.output import Out, finish, moment, party_provenance, plan_output
from taciturn.cli.party_console import shown, stoppable
from taciturn.errors import ConfigError, PeerStopped, rendering_errors_as
from taciturn.files import require_writable
from taciturn.output_paths import PathUse
from taciturn.party.observers import remarks_after

if TYPE_CHECKING:
    from taciturn.jobs.base import Job
    from taciturn.jobs.study.result import StudyRun
    from taciturn.jobs.train.result import DryRun, PartyRun
    from taciturn.party.config import PartyConfig


def party(
    config: Annotated[
        Path, PathUse.READ, typer.Argument(help="This side's TOML file; taciturn init writes one.")
    ],
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Connect to the peer, compare certificates, versions, settings and rows, and "
            "stop.",
        ),
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Discard an unfinished session and start a new one.")
    ] = False,
    begin_anyway: Annotated[
        bool,
        typer.Option(
            "--begin-anyway",
            help="Bob: begin although this side has stopped twice because of its labels, and "
            "count anew.",
        ),
    ] = False,
    record: Annotated[
        Path | None,
        PathUse.WRITTEN,
        typer.Option(help="Write the transcript of this side to this file."),
    ] = None,
    out: Out = None,
    html: Annotated[
        Path | None,
        PathUse.WRITTEN,
        typer.Option(help="For a study: write the table as one HTML file."),
    ] = None,
    watch: Watch = False,
    watch_port: WatchPort = None,
    json: Json = False,
) -> None:
    """Run one party of a training between machines; run it again to resume.

    With a [study] in both sides' files all its models are trained in one session.

    Examples:
    taciturn party bob.toml --dry-run

    taciturn party bob.toml

    taciturn party bob.toml --watch
    """
    # Imported here: the transport takes a second to load, and no other command needs it.
    from taciturn.jobs.base import run_job
    from taciturn.jobs.train.dry_run import DryRunJob
    from taciturn.jobs.train.job import TrainJob
    from taciturn.party.config import PartyConfig

    plan = plan_output(out)
    settings = PartyConfig.read(config)
    # The party's own files once the peer is to be told that this side does not begin.
    require_writable(html)
    if html is not None and (settings.study is None or dry_run):
        raise ConfigError(
            "only a study has this page",
            where="--html",
            hint="leave it out; or write a [study] in both sides' files",
        )
    with (
        rendering_errors_as(settings.syntax),
        stoppable(),
        _going_on(dry_run),
        shown(settings, watched_side("party", watch, watch_port, settings)) as callbacks,
    ):
        job: Job[Any] = DryRunJob(record) if dry_run else TrainJob(record, fresh)
        if begin_anyway:
            forget_label_stops(settings)
        result = run_job(job, settings, callbacks)
    finish(plan, result, json, lambda: party_provenance(settings))
    if html is not None:
        _write_study(result, html)
    for remark in [] if dry_run else remarks_after(settings, config):
        console(error=True).print(remark, style="dim", markup=False, soft_wrap=True)


def forget_label_stops(settings: PartyConfig) -> None:
    """Count Bob's stops because of labels anew; his file names the partner."""
    from taciturn.party.consent.label_stops import LabelStops

    if settings.role != "bob":
        raise ConfigError(
            "only Bob has labels that a side stops for",
            where="--begin-anyway",
            hint="leave it out; if the other side does not begin, ask there",
        )
    LabelStops.from_config(settings).clear()


def _write_study(result: PartyRun | StudyRun | DryRun, html: Path) -> None:
    """Loaded only where a page is asked for."""
    from taciturn.cli.output import write_page
    from taciturn.extras import explained

    with explained():
        page = result.page(moment())
    if page is not None:
        write_page(page, html, None)


@contextmanager
def _going_on(dry_run: bool) -> Iterator[None]:
    """Says after a stop what comes next."""
    try:
        yield
    except KeyboardInterrupt:
        if not dry_run:
            print("stopped; run the same command again on both sides to resume", file=sys.stderr)
        raise
    except PeerStopped as problem:
        raise PeerStopped(
            problem.message,
            where=problem.where,
            hint="settle with the other side what it reports, then run both sides again; a "
            "training that had begun resumes",
        ) from None
