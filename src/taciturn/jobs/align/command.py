"""The command that finds the rows which both sides have, before a training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taciturn.cli.console import Json, show
from taciturn.cli.dashboard import Watch, WatchPort, watched_side
from taciturn.cli.party_console import NormaliseIds, stateless_side
from taciturn.files import require_writable
from taciturn.output_paths import PathUse, Replaces


def align(
    config: Annotated[
        Path,
        PathUse.READ,
        typer.Argument(help="This side's TOML file: the same as for taciturn party."),
    ],
    rows: Annotated[
        str | None,
        PathUse.READ,
        typer.Option(
            help="Align new rows instead, for taciturn predict --aligned: a file, or a SELECT "
            "statement."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        PathUse.WRITTEN,
        Replaces("aligned"),
        typer.Option(
            help="File for the list of common rows, .csv or .parquet (default: aligned in the "
            "party's file, or ROLE.aligned.csv; for new rows NAME.aligned.csv)."
        ),
    ] = None,
    normalise_ids: NormaliseIds = None,
    watch: Watch = False,
    watch_port: WatchPort = None,
    json: Json = False,
) -> None:
    """Find the rows that all sides have, without revealing the other ids.

    All sides run it, at about the same time.

    Each side learns which of its own rows the other has, and how many rows the other has. With
    several Alices, each aligns with Bob, who then tells her which of these rows all have. The list
    is entered in the party's file as aligned, unless --out is given or the file names another one.

    A peer that deviates from the protocol can ask for ids that it does not have.

    Examples:
    taciturn align bob.toml

    taciturn align alice.toml --out common.parquet --normalise-ids trim,case

    taciturn align alice.toml --rows new-alice.csv
    """
    # Imported here: the transport takes a second to load.
    from taciturn.data.ids import Normalisation
    from taciturn.jobs.align.job import AlignJob, list_file
    from taciturn.jobs.base import run_job
    from taciturn.party.config import PartyConfig

    given = None if normalise_ids is None else Normalisation.parse(normalise_ids)
    settings = PartyConfig.read(config)
    log, listed = settings.output.log, list_file(settings, out, rows)
    if out is None:
        settings.require_unused("out", listed, replaces="aligned")
    require_writable(listed, settings.path(log) if log else None)
    bar = watched_side("align", watch, watch_port, settings)
    with stateless_side("align", settings, bar) as callbacks:
        result = run_job(AlignJob(given, out, rows), settings, callbacks)
    show(result, json)
