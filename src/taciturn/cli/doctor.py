"""The ``doctor`` and ``ledger`` commands: checks of this machine and a party's file; past costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from taciturn.cli.console import Json, progress_bar, show
from taciturn.errors import rendering_errors_as
from taciturn.output_paths import PathUse
from taciturn.version import __version__


def ledger(
    config: Annotated[Path, PathUse.READ, typer.Argument(help="This side's TOML file.")],
    json: Json = False,
) -> None:
    """Show the privacy cost of past trainings: Bob's labels, or Alice's columns.

    At Bob it lists each partner and label with its epsilon; at Alice the models that scored a row,
    repeated scores and trainings, and the past sessions that opened training scores, from which her
    columns can be reconstructed.

    Examples:
    taciturn ledger bob.toml

    taciturn ledger alice.toml
    """
    # Imported here: no other command needs it.
    from taciturn.party.config import PartyConfig
    from taciturn.party.consent.budget import ScoreBudget
    from taciturn.party.consent.label_budget import LabelBudget
    from taciturn.party.consent.label_stops import LabelStops
    from taciturn.party.past_exposure import past_exposure
    from taciturn.results.doctor import ExposureResult, LedgerResult

    settings = PartyConfig.read(config)
    with rendering_errors_as(settings.syntax):
        past = past_exposure(settings)
    if past is not None:
        exposure = ExposureResult(
            file=str(settings.consent_file),
            scores_per_row=settings.privacy.scores_per_row,
            trainings_per_row=settings.privacy.trainings_per_row,
            row_accounts=ScoreBudget.from_config(settings).accounts(),
            past=past,
            version=__version__,
        )
        show(exposure, json)
        return
    with rendering_errors_as(settings.syntax):
        accounts = LabelBudget.from_config(settings).accounts()
        stops = LabelStops.from_config(settings).accounts()
    result = LedgerResult(
        file=str(settings.consent_file),
        budget_total=settings.privacy.budget_total,
        accounts=accounts,
        label_stops=stops,
        version=__version__,
    )
    show(result, json)


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
    from taciturn.doctor.machine import run_checks
    from taciturn.results.cost_preview import Outlook, PastExposure
    from taciturn.results.doctor import DoctorResult

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
