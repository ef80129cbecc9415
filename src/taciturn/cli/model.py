"""Commands on model files: list and use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.cli.console import Json
from taciturn.cli.console import show as print_result
from taciturn.cli.help import Command
from taciturn.errors import ConfigError
from taciturn.output_paths import PathUse

if TYPE_CHECKING:
    from taciturn.party.config import PartyConfig

model = typer.Typer(
    name="model",
    help="Show, list, report on, select and export models.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@model.command(name="list", cls=Command)
def list_models(
    file: Annotated[
        Path, PathUse.READ, typer.Argument(help="One side's model file, as its settings name it.")
    ],
    json: Json = False,
) -> None:
    """List this side's model and the models of earlier sessions.

    Examples:
    taciturn model list bob.model.json

    taciturn model list bob.model.json --json
    """
    from taciturn.model.archive import listed_models

    print_result(listed_models(file), json)


@model.command(cls=Command)
def use(
    config: Annotated[
        Path, PathUse.READ, typer.Argument(help="This side's TOML file, as for taciturn party.")
    ],
    number: Annotated[int, typer.Argument(min=1, help="Number of the model in the study.")],
    yes: Annotated[
        bool, typer.Option("--yes", help="Bob: reveal the choice to Alice without asking.")
    ] = False,
    json: Json = False,
) -> None:
    """Select one model of a study as this side's model. Run it on both sides.

    Which model Bob selects depends on labels, and Alice learns it. That has no finite epsilon; his
    ledger counts it.

    Examples:
    taciturn model use bob.toml 7

    taciturn model use bob.toml 7 --yes

    taciturn model use alice.toml 7
    """
    from taciturn.errors import rendering_errors_as
    from taciturn.jobs.study.use import studied_model, use_model
    from taciturn.party.config import PartyConfig

    settings = PartyConfig.read(config)
    with rendering_errors_as(settings.syntax):
        share = studied_model(settings, number)
        models = int(share.study["models"])
        if settings.role == "bob" and not yes:
            _confirm(settings, number, models)
        used = use_model(settings, number, lambda text: None)
    print_result(used, json)


def _confirm(settings: PartyConfig, number: int, models: int) -> None:
    """Ask Bob to confirm that his choice is disclosed; raise ConfigError unless he does."""
    import math
    import sys
    from shlex import quote

    statement = (
        f"Using model {number} tells {settings.peer} which of {models} was chosen: at most "
        f"{math.log2(models):.1f} bits about all labels together, at no finite price."
    )
    if sys.stdin.isatty() and typer.confirm(f"{statement} Go on?", err=True):
        return
    raise ConfigError(
        statement,
        where="--yes",
        hint="nothing was done; if that may be disclosed: taciturn model use "
        f"{quote(settings.where)} {number} --yes",
    )
