"""The commands: ours, and those of other packages (entry points of ``taciturn.commands``)."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated

import typer

from taciturn import extensions
from taciturn.cli.agreement import propose, review, sign
from taciturn.cli.certs import certs
from taciturn.cli.compare import compare
from taciturn.cli.doctor import doctor
from taciturn.cli.ledger import ledger
from taciturn.cli.model import model
from taciturn.cli.party import init, party
from taciturn.cli.runs import runs
from taciturn.cli.serve import serve
from taciturn.cli.simulate import audit, check, demo, train
from taciturn.cli.study import study
from taciturn.jobs.align.command import align
from taciturn.jobs.predict.command import predict
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


_added = extensions.listed(extensions.ATTACKS)
_attacks = f"Attacks of other packages: {_added}" if _added else None
for command in (
    train,
    check,
    audit,
    compare,
    study,
    demo,
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
    app.command(epilog=_attacks if command in (check, audit, compare) else None)(command)
app.add_typer(model)
app.add_typer(runs)
for entry in sorted(entry_points(group="taciturn.commands"), key=lambda entry: entry.name):
    app.command(entry.name)(entry.load())
