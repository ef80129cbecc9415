"""The command that says what is right and wrong on this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from taciturn.cli.console import Json, progress_bar, show
from taciturn.version import __version__

FOUND_A_PROBLEM = 80


def doctor(
    config: Annotated[
        Path | None, typer.Argument(help="A party's TOML file; what it names is checked too.")
    ] = None,
    json: Json = False,
) -> None:
    """Check this machine and, if given, a party's file; change nothing.

    Exit code 0 without a problem (warnings do not count), 80 with one. The network is not used,
    except to check whether the port of the peer in a party's file answers.

    [bold]Examples[/bold]

    taciturn doctor

    taciturn doctor bob.toml --json
    """
    # Imported here: it loads every package there is, to see whether it does.
    from taciturn.doctor.checks import run_checks
    from taciturn.results.doctor import DoctorResult
    from taciturn.results.ledger import PastExposure
    from taciturn.results.outlook import Outlook

    with progress_bar() as meter:
        parts: list[Outlook | PastExposure] = []
        findings = run_checks(config, meter.announce, parts.append)
    result = DoctorResult.of(findings, __version__, None if config is None else str(config))
    result = replace(
        result,
        price=next((part for part in parts if isinstance(part, Outlook)), None),
        exposed=next((part for part in parts if isinstance(part, PastExposure)), None),
    )
    show(result, json)
    if result.problems:
        raise typer.Exit(FOUND_A_PROBLEM)
