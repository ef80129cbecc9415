"""The command ``ledger``: the privacy cost of past trainings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taciturn.cli.console import Json, show
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
    from taciturn.party.consent.label_budget import LabelBudget
    from taciturn.party.consent.label_stops import LabelStops
    from taciturn.party.consent.score_budget import ScoreBudget
    from taciturn.party.past_exposure import past_exposure
    from taciturn.results.ledger import ExposureResult, LedgerResult

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
