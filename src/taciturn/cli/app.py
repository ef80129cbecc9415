"""The commands: ours, and those of other packages (entry points of ``taciturn.commands``)."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import typer

from taciturn import extensions
from taciturn.cli.certs import certs
from taciturn.cli.doctor import doctor
from taciturn.cli.ledger import ledger
from taciturn.cli.model import model
from taciturn.cli.party import init
from taciturn.cli.runs import runs
from taciturn.cli.simulate import train
from taciturn.jobs.agreement.command import propose, review, sign
from taciturn.jobs.align.command import align
from taciturn.jobs.predict.command import predict
from taciturn.jobs.serve.command import serve
from taciturn.jobs.study.command import study
from taciturn.jobs.train.command import party
from taciturn.jobs.woe.command import woe
from taciturn.version import __version__

app = typer.Typer(
    name="taciturn",
    help="Train a logistic regression with a partner without telling them your labels, "
    "and see whether they could tell anyway.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"taciturn {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Train with a partner without telling them your labels."""


for command in (
    train,
    study,
    align,
    certs,
    doctor,
    init,
    propose,
    review,
    sign,
    party,
    ledger,
    predict,
    woe,
    serve,
):
    app.command()(command)
app.add_typer(model)
app.add_typer(runs)
OURS = frozenset(
    [command.callback.__name__ for command in app.registered_commands if command.callback]
    + ["model", "runs"]
)
# What the distribution taciturn-audit adds; where it is not installed, its commands say so.
_AUDIT = ("audit", "check", "compare", "demo")


@cache
def whole_app() -> typer.Typer:
    """The app with the commands of other packages, which are loaded here: a party needs none."""
    added = extensions.listed(extensions.ATTACKS)
    attacks = f"Attacks of other packages: {added}" if added else None
    others = {entry.name: entry for entry in extensions.installed(extensions.COMMANDS)}
    for name, entry in others.items():
        command: Any = entry.load()
        app.command(name, epilog=attacks if name in _AUDIT[:3] else None)(command)
    for name in _AUDIT:
        if name not in others:
            _refuse_absent(name)
    return app


def _refuse_absent(name: str) -> None:
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}

    @app.command(name, hidden=True, context_settings=anything)
    def refuse() -> None:
        """Say how to install the audit."""
        raise extensions.not_installed(f"the command {name}")
