"""The command that keeps one side of a model ready to score rows on demand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.cli.console import Json
from taciturn.cli.party_console import shown
from taciturn.errors import ConfigError, rendering_errors_as
from taciturn.files import to_json
from taciturn.output_paths import PathUse
from taciturn.setting_syntax import Hint

if TYPE_CHECKING:
    from taciturn.party.config import PartyConfig


def serve(
    config: Annotated[
        Path, PathUse.READ, typer.Argument(help="This side's TOML file, as for taciturn party.")
    ],
    model: Annotated[
        Path | None,
        PathUse.READ,
        typer.Option(help="This side's model file (default: the one in the party's file)."),
    ] = None,
    new_token: Annotated[
        str | None,
        typer.Option(help="Bob: add a caller of this name, print its token, and stop."),
    ] = None,
    json: Json = False,
) -> None:
    """Serve scores on demand: an HTTP service at Bob, its partner at Alice.

    Run it on both sides; either may be stopped and started again. Rows come from this side's table
    or database ([serve] in its file), or at Bob with the request. Each score gives Bob one more
    equation about a row of Alice's, and gives the caller a score; both sides can limit this.
    SIGHUP reloads rows, callers and limits from the file.

    Examples:
    taciturn serve bob.toml --new-token crm

    taciturn serve bob.toml

    taciturn serve alice.toml
    """
    # Imported here: the transport takes a second to load.
    from taciturn.jobs.base import run_job
    from taciturn.party.config import PartyConfig
    from taciturn_ops.serve.job import ServeJob

    settings = PartyConfig.read(config)
    with rendering_errors_as(settings.syntax):
        if new_token is not None:
            _add_caller(settings, new_token, json)
            return
        file = settings.path(settings.output.model) if model is None else model
        with shown(settings) as callbacks:
            run_job(ServeJob(file), settings, callbacks)


def _add_caller(settings: PartyConfig, name: str, json: bool) -> None:
    from taciturn_ops.serve.http.callers import new_token
    from taciturn_ops.serve.section import ServeSection

    if settings.role == "alice":
        raise ConfigError(
            "only Bob's side has callers: Alice's side answers him",
            where="--new-token",
            hint="leave it out here",
        )
    tokens = settings.section(ServeSection).tokens
    if tokens is None:
        raise ConfigError(
            "the file does not say where callers are listed",
            setting="tokens",
            hint=Hint("write {tokens}, say", tokens="bob.callers.toml"),
        )
    path = settings.path(tokens)
    token = new_token(path, name)
    if json:
        typer.echo(to_json({"caller": name, "token": token, "callers": str(path)}))
        return
    typer.echo(token)
    print(
        f"the token of {name}: give it to the caller, and keep it nowhere; {path} has its hash. "
        "A service that runs knows it when it gets SIGHUP, or is started again.",
        file=sys.stderr,
    )
