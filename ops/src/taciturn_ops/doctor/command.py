"""The command ``doctor``: check this machine and a party's file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from taciturn.cli.console import Json, progress_bar, show
from taciturn.output_paths import PathUse
from taciturn.version import __version__

FOUND_A_PROBLEM = 80


def doctor(
    config: Annotated[
        Path | None,
        PathUse.READ,
        typer.Argument(help="A party's TOML file; the files that it names are checked too."),
    ] = None,
    json: Json = False,
) -> None:
    """Check this machine and, if given, a party's file; change nothing.

    Exit code 0 without a problem (warnings do not count), 80 with one. The network is not used,
    except to check whether the port of the peer in a party's file answers.

    Examples:
    taciturn doctor

    taciturn doctor bob.toml --json
    """
    # Imported here: it loads every package there is, to see whether it does.
    from taciturn.results.cost_preview import Outlook, PastExposure
    from taciturn_ops.doctor.machine import run_checks
    from taciturn_ops.doctor.result import DoctorResult

    with progress_bar() as meter:
        parts: list[Outlook | PastExposure] = []
        findings = run_checks(config, meter.announce, parts.append)
    result = DoctorResult.from_findings(
        findings, __version__, None if config is None else str(config)
    )
    result = replace(
        result,
        price=next((part for part in parts if isinstance(part, Outlook)), None),
        exposed=next((part for part in parts if isinstance(part, PastExposure)), None),
    )
    show(result, json)
    if result.problems:
        raise typer.Exit(FOUND_A_PROBLEM)
