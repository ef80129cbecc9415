"""The command that says what Bob's labels, or Alice's columns, have cost over time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taciturn.cli.console import Json, show
from taciturn.errors import shown_by
from taciturn.version import __version__


def ledger(
    config: Annotated[Path, typer.Argument(help="This side's TOML file.")], json: Json = False
) -> None:
    """Show the privacy cost of past trainings: Bob's labels, or Alice's columns.

    At Bob it lists each partner and label with its epsilon; at Alice the past sessions that opened
    training scores, from which her columns can be reconstructed.

    [bold]Examples[/bold]

    taciturn ledger bob.toml

    taciturn ledger alice.toml
    """
    # Imported here: no other command needs it.
    from taciturn.party.config import PartyConfig
    from taciturn.party.consent.label_budget import LabelBudget
    from taciturn.party.past_exposure import past_exposure
    from taciturn.results.ledger import ExposureResult, LedgerResult

    settings = PartyConfig.read(config)
    with shown_by(settings.face):
        past = past_exposure(settings)
    if past is not None:
        exposure = ExposureResult(
            file=str(settings.consent_file),
            scores_per_row=settings.privacy.scores_per_row,
            past=past,
            version=__version__,
        )
        show(exposure, json)
        return
    with shown_by(settings.face):
        accounts = LabelBudget.from_config(settings).accounts()
    result = LedgerResult(
        file=str(settings.consent_file),
        budget_total=settings.privacy.budget_total,
        accounts=accounts,
        version=__version__,
    )
    show(result, json)
