"""The command that says what is right and wrong on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taciturn.cli.console import Json, progress_bar, show
from taciturn.version import __version__

FOUND_A_PROBLEM = 80


def doctor(
    config: Annotated[
        Path | None, typer.Argument(help="A party's TOML file, to look at all that it names.")
    ] = None,
    json: Json = False,
) -> None:
    """Say what is right and wrong on this machine, or with a party's file; change nothing.

    Exit code 0 where nothing is wrong, warnings included, and 80 where there is a problem. Nothing
    is asked of the network, but for the peer of a party's file: whether its port answers.

    [bold]Examples[/bold]

    taciturn doctor

    taciturn doctor bob.toml --json
    """
    # Imported here: it loads every package there is, to see whether it does.
    from taciturn.doctor.visit import visit
    from taciturn.report.doctor import doctor_blocks
    from taciturn.results.doctor import DoctorResult

    with progress_bar() as meter:
        findings = visit(config, meter.announce)
    result = DoctorResult.of(findings, __version__, None if config is None else str(config))
    show(result, json, doctor_blocks)
    if result.problems:
        raise typer.Exit(FOUND_A_PROBLEM)
