"""The commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit import __version__, api
from tacit.cli.console import console, progress_bar
from tacit.cli.options import with_settings
from tacit.cli.output import write_text
from tacit.errors import ConfigError
from tacit.experiments import encryption, trainings
from tacit.privacy.registry import MECHANISMS
from tacit.report import tables
from tacit.report.figures import ratios_svg
from tacit.report.record import Record, to_json

app = typer.Typer(
    name="tacit",
    help="Train a logistic regression with a partner without telling them your labels, "
    "and see whether they could tell anyway.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tacit {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Train with a partner without telling them your labels."""


@app.command()
@with_settings
def train(*, json: Json = False, settings: dict[str, Any]) -> None:
    """Train between two simulated parties: metrics, ledger, traffic.

    [bold]Examples[/bold]

    tacit train --dataset breast-cancer --mechanism none --seed 1

    tacit train --data loans.csv --id customer --label default --mechanism none --alice-columns half
    """
    _require_mechanism(settings)
    if not json:
        _announce_estimate(settings)
    with progress_bar() as meter:
        record = api.train(observe=meter.observe, **settings).to_dict()
    _show(record, json, tables.training)


@app.command()
@with_settings
def audit(
    *,
    transcript: Annotated[
        Path | None, typer.Option(help="Audit a run that train --record wrote.")
    ] = None,
    shuffle_truth: Annotated[
        bool,
        typer.Option(
            "--shuffle-truth",
            help="Judge against labels shuffled after the run: every attack must sit at chance.",
        ),
    ] = False,
    json: Json = False,
    settings: dict[str, Any],
) -> None:
    """Train, or read a recording, and run the attacks Alice could run.

    [bold]Examples[/bold]

    tacit audit --dataset breast-cancer --mechanism none --scheme clear --seed 1

    tacit audit --dataset breast-cancer --mechanism none --scheme clear --permute-labels

    tacit audit --transcript run.transcript
    """
    if transcript is None:
        _require_mechanism(settings)
    with progress_bar() as meter:
        record = api.audit(
            transcript=transcript,
            shuffle_truth=shuffle_truth,
            observe=meter.observe,
            announce=meter.announce,
            **settings,
        ).to_dict()
    _show(record, json, tables.training, tables.findings)


@app.command()
def demo(json: Json = False) -> None:
    """Train the paper's baseline on breast-cancer with real encryption, and attack it.

    Both parties run in this process. Alice holds all 30 columns, Bob the labels; she recovers
    them from what the protocol tells her.
    """
    with progress_bar() as meter:
        record = api.audit(
            dataset="breast-cancer",
            mechanism="none",
            observe=meter.observe,
            announce=meter.announce,
        ).to_dict()
    _show(record, json, tables.training, tables.findings)


@app.command()
def bench(
    against: Annotated[
        str, typer.Option(help="Rivals, separated by commas: phe, heu, or none.")
    ] = "none",
    quick: Annotated[bool, typer.Option("--quick", help="Two shapes, two repeats.")] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Turns of each contender.")] = 5,
    plot: Annotated[Path | None, typer.Option(help="Write the ratios as an SVG file.")] = None,
    json: Json = False,
) -> None:
    """Time the encryption of one iteration on the paper's shapes, as ratios in one run.

    [bold]Examples[/bold]

    tacit bench --quick

    tacit bench --against phe,heu --plot bench.svg
    """
    rivals = () if against == "none" else tuple(name.strip() for name in against.split(","))
    with progress_bar() as meter:
        rows = encryption.run(rivals, quick=quick, repeats=repeats, announce=meter.announce)
        done = [] if quick else trainings.measure_all(meter.announce)
    record = {
        "rows": [row.to_dict() for row in rows],
        "trainings": [training.to_dict() for training in done],
    }
    if plot is not None:
        write_text(plot, ratios_svg(record))
    _show(record, json, tables.benchmark)


def _announce_estimate(settings: dict[str, Any]) -> None:
    wanted = {key: value for key, value in settings.items() if key != "record"}
    console(error=True).print(tables.forecast(api.estimate(**wanted).to_dict()))


def _require_mechanism(settings: dict[str, Any]) -> None:
    if "mechanism" not in settings:
        raise ConfigError(
            "no mechanism is named",
            where="--mechanism",
            hint="use --mechanism " + " or ".join(MECHANISMS),
        )


def _show(record: Record, as_json: bool, *parts: Any) -> None:  # noqa: ANN401 - renderers
    if as_json:
        typer.echo(to_json(record))
        return
    screen = console()
    for part in parts:
        screen.print(part(record))
