"""The command ``counts``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taciturn.cli.console import Json, show
from taciturn.cli.party_console import shown
from taciturn.errors import rendering_errors_as
from taciturn.output_paths import PathUse


def counts(
    config: Annotated[
        Path, PathUse.READ, typer.Argument(help="This side's TOML file, as for taciturn party.")
    ],
    json: Json = False,
) -> None:
    """Count the values of one of Alice's columns, for Bob. Both sides run it.

    Alice names the columns that she shares, and how many a partner may have ([counts] in her file).

    Examples:
    taciturn counts bob.toml

    taciturn counts alice.toml
    """
    # Imported here: the transport takes a second to load.
    from taciturn.jobs.base import run_job
    from taciturn.party.config import PartyConfig
    from taciturn_counts.job import CountsJob

    settings = PartyConfig.read(config)
    with rendering_errors_as(settings.syntax), shown(settings) as callbacks:
        result = run_job(CountsJob(), settings, callbacks)
    show(result, json)
