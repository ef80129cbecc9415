"""The command that says what Bob's labels have cost over time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taciturn.cli.console import Json, show
from taciturn.errors import ConfigError, shown_by
from taciturn.version import __version__


def ledger(
    config: Annotated[Path, typer.Argument(help="Bob's TOML file.")], json: Json = False
) -> None:
    """Show what trainings have cost Bob's labels so far, for each partner and label.

    [bold]Example[/bold]

    taciturn ledger bob.toml
    """
    # Imported here: no other command needs it.
    from taciturn.deploy.config import PartyConfig
    from taciturn.deploy.ledger_book import ledger_book
    from taciturn.report.ledger import ledger_blocks
    from taciturn.results.ledger import LedgerBookResult

    settings = PartyConfig.read(config)
    if settings.role == "alice":
        raise ConfigError(
            "Alice has no labels, and no ledger of them",
            where=str(config),
            hint="this is for Bob's file; what Bob was given of her columns, a dry run shows",
        )
    with shown_by(settings.face):
        book = ledger_book(settings)
        accounts = book.accounts()
    result = LedgerBookResult(
        file=str(book.file.path),
        budget_total=settings.privacy.budget_total,
        accounts=accounts,
        version=__version__,
    )
    show(result, json, ledger_blocks)
