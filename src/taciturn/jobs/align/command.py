"""The command that finds the rows which both sides have, before a training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taciturn.cli.console import Json, show
from taciturn.cli.party import NormaliseIds, stateless_side
from taciturn.cli.watching import Watch, WatchPort, watched_side
from taciturn.files import require_writable


def align(
    config: Annotated[
        Path, typer.Argument(help="This side's TOML file: the same as for taciturn party.")
    ],
    rows: Annotated[
        Path | None,
        typer.Option(
            help="Align these new rows, for taciturn predict --aligned, in place of the table of "
            "the settings."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the list of common rows to this .csv or .parquet file; by default to the "
            "one that the settings name as aligned, or else to ROLE.aligned.csv beside them; of "
            "new rows in NAME.csv to NAME.aligned.csv beside these."
        ),
    ] = None,
    normalise_ids: NormaliseIds = None,
    watch: Watch = False,
    watch_port: WatchPort = None,
    json: Json = False,
) -> None:
    """Find the rows that all sides have, without revealing the other ids.

    All sides run it, at about the same time.

    Both learn which of their own rows the other has too, and how many it has. Of several Alices
    each does so with Bob, who then tells her which of these all have. The list goes into the
    settings, as aligned, unless --out is given or they name another one.

    A peer that deviates from the protocol can ask for ids that it does not have.

    [bold]Examples[/bold]

    taciturn align bob.toml

    taciturn align alice.toml --out common.parquet --normalise-ids trim,case

    taciturn align alice.toml --rows new-alice.csv
    """
    # Imported here: the transport takes a second to load.
    from taciturn.data.normalisation import Normalisation
    from taciturn.jobs.align.job import AlignJob, list_file
    from taciturn.jobs.base import run_party
    from taciturn.party.config import PartyConfig

    given = None if normalise_ids is None else Normalisation.of(normalise_ids)
    settings = PartyConfig.read(config)
    log = settings.output.log
    require_writable(list_file(settings, out, rows), settings.path(log) if log else None)
    bar = watched_side("align", watch, watch_port, settings)
    with stateless_side("align", settings, bar) as callbacks:
        result = run_party(AlignJob(given, out, rows), settings, callbacks)
    show(result, json)
