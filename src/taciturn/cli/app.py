"""The commands: ours, and those of other packages (entry points of ``taciturn.commands``)."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

from taciturn import extensions
from taciturn.version import __version__

# The module of each command, which is loaded when the command is asked for: a party that trains
# loads no other.
COMMANDS = {
    "train": "taciturn.cli.simulate",
    "study": "taciturn.jobs.study.command",
    "align": "taciturn.jobs.align.command",
    "certs": "taciturn.cli.certs",
    "doctor": "taciturn.cli.doctor",
    "init": "taciturn.cli.init",
    "propose": "taciturn.jobs.agreement.command",
    "review": "taciturn.jobs.agreement.command",
    "sign": "taciturn.jobs.agreement.command",
    "party": "taciturn.jobs.train.command",
    "ledger": "taciturn.cli.doctor",
    "predict": "taciturn.jobs.predict.command",
    "woe": "taciturn.jobs.woe.command",
    "serve": "taciturn.jobs.serve.command",
    "model": "taciturn.cli.model",
    "runs": "taciturn.cli.runs",
}
# What the distribution taciturn-audit adds; where it is not installed, its commands say so.
_AUDIT = ("audit", "check", "compare", "demo")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"taciturn {__version__}")
        raise typer.Exit


def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Train with a partner without telling them your labels."""


def app_of(*names: str) -> typer.Typer:
    """The app with these of our commands."""
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
    app.callback()(main)
    for name in names:
        command = getattr(import_module(COMMANDS[name]), name)
        if isinstance(command, typer.Typer):
            app.add_typer(command)
        else:
            app.command()(command)
    return app


@cache
def whole_app() -> typer.Typer:
    """The app with all commands, those of other packages too."""
    app = app_of(*COMMANDS)
    added = extensions.listed(extensions.ATTACKS)
    attacks = f"Attacks of other packages: {added}" if added else None
    others = {entry.name: entry for entry in extensions.installed(extensions.COMMANDS)}
    for name, entry in others.items():
        command: Any = entry.load()
        app.command(name, epilog=attacks if name in _AUDIT[:3] else None)(command)
    for name in _AUDIT:
        if name not in others:
            _refuse_absent(app, name)
    return app


def _refuse_absent(app: typer.Typer, name: str) -> None:
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}

    @app.command(name, hidden=True, context_settings=anything)
    def refuse() -> None:
        """Say how to install the audit."""
        raise extensions.not_installed(f"the command {name}")
