"""The command that finds the rows which both sides have, before a training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from taciturn.cli.console import Json, progress_bar, show
from taciturn.cli.party import refusals, stoppable
from taciturn.errors import PeerAbsent, PeerStopped
from taciturn.files import require_writable


def align(
    config: Annotated[
        Path, typer.Argument(help="This side's TOML file: the same as for taciturn party.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the list of common rows to this .csv or .parquet file; by default to the "
            "one that the settings name as aligned, or else to ROLE.aligned.csv beside them."
        ),
    ] = None,
    normalise: Annotated[
        str,
        typer.Option(
            help="When two spellings are one id, the same on both sides: none, or any of trim "
            "(blanks at the ends), case and nfkc (Unicode), separated by commas."
        ),
    ] = "none",
    json: Json = False,
) -> None:
    """Find the rows that both sides have, without telling the other ids.

    Both sides run it, at about the same time.

    Both learn which of their own rows the other has too, and how many it has.

    A peer that does not keep to the protocol can ask for ids that it does not have.

    [bold]Examples[/bold]

    taciturn align bob.toml

    taciturn align alice.toml --out common.parquet --normalise trim,case
    """
    # Imported here: the transport takes a second to load.
    from taciturn.data.normalisation import Normalisation
    from taciturn.deploy.align import AligningParty, list_file
    from taciturn.deploy.config import PartyConfig
    from taciturn.deploy.train import Watch
    from taciturn.deploy.way import way_to_peer
    from taciturn.report.parties import alignment_blocks

    chosen = Normalisation.of(normalise)
    settings = PartyConfig.read(config)
    log = settings.output.log
    require_writable(list_file(settings, out), settings.path(log) if log else None)
    with stoppable(), _in_words(), progress_bar() as meter:
        meter.announce(f"waiting for {settings.link.peer}")

        def announce(what: str) -> None:
            meter.say(f"{settings.role}: {what}")

        with refusals(announce), way_to_peer(settings, announce) as endpoint:
            side = AligningParty(settings, endpoint, Watch(announce, meter.observe), chosen, out)
            result = side.run()
    show(result, json, alignment_blocks)


@contextmanager
def _in_words() -> Iterator[None]:
    """Says what comes next: unlike a training, an alignment is begun anew."""
    try:
        yield
    except PeerStopped as problem:
        raise PeerStopped(
            problem.message,
            where=problem.where,
            hint="see to what it says, then run taciturn align again on both sides",
        ) from None
    except PeerAbsent as problem:
        raise PeerAbsent(
            problem.message, where=problem.where, hint="start taciturn align on both sides"
        ) from None
