"""The command that finds the rows which both sides have, before a training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from taciturn.cli.console import Json, show
from taciturn.cli.party import shown, stoppable
from taciturn.cli.watching import Watch, WatchPort, watched_side
from taciturn.errors import PeerAbsent, PeerStopped, shown_by
from taciturn.files import require_writable

Normalise = Annotated[
    str | None,
    typer.Option(
        help="Which differences in spelling to ignore, the same on both sides: none, or any of "
        "trim (spaces at the ends), case, nfkc (Unicode) and zeros (in front of numbers), "
        "separated by commas (default: as the settings say, or else none)."
    ),
]


def align(
    config: Annotated[
        Path, typer.Argument(help="This side's TOML file: the same as for taciturn party.")
    ],
    rows: Annotated[
        Path | None,
        typer.Option(
            help="Align these new rows, for taciturn predict --common, in place of the table of "
            "the settings."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the list of common rows to this .csv or .parquet file; by default to the "
            "one that the settings name as aligned, or else to ROLE.aligned.csv beside them; of "
            "new rows to NAME.aligned.csv beside these."
        ),
    ] = None,
    normalise: Normalise = None,
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

    taciturn align alice.toml --out common.parquet --normalise trim,case

    taciturn align alice.toml --rows new-alice.csv
    """
    # Imported here: the transport takes a second to load.
    from taciturn.data.normalisation import Normalisation
    from taciturn.deploy.align import AligningParty, list_file
    from taciturn.deploy.config import PartyConfig
    from taciturn.deploy.way import way_to_peer

    given = None if normalise is None else Normalisation.of(normalise)
    settings = PartyConfig.read(config)
    chosen = settings.normalisation if given is None else given
    log = settings.output.log
    require_writable(list_file(settings, out, rows), settings.path(log) if log else None)
    with (
        shown_by(settings.face),
        stoppable(),
        _in_words(),
        shown(settings, watched_side("align", watch, watch_port, settings)) as callbacks,
        way_to_peer(settings, callbacks.announce) as endpoint,
    ):
        result = AligningParty(settings, endpoint, callbacks, chosen, out, rows).run()
    show(result, json)


@contextmanager
def _in_words() -> Iterator[None]:
    """Says what comes next: unlike a training, an alignment cannot be resumed."""
    try:
        yield
    except PeerStopped as problem:
        raise PeerStopped(
            problem.message,
            where=problem.where,
            hint="fix what it reports, then run taciturn align again on both sides",
        ) from None
    except PeerAbsent as problem:
        raise PeerAbsent(
            problem.message, where=problem.where, hint="start taciturn align on both sides"
        ) from None
