"""The commands."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from taciturn import api
from taciturn.cli.align import align
from taciturn.cli.certs import certs
from taciturn.cli.console import console, progress_bar
from taciturn.cli.doctor import doctor
from taciturn.cli.model import model
from taciturn.cli.options import with_settings
from taciturn.cli.party import init, party
from taciturn.cli.predict import predict
from taciturn.cli.reproduce import reproduce
from taciturn.errors import ConfigError
from taciturn.experiments import encryption, trainings
from taciturn.files import require_writable, to_json, write_text
from taciturn.report import tables
from taciturn.report.figures import ratios_svg
from taciturn.report.record import Record
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

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


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


@app.command()
@with_settings
def train(*, json: Json = False, settings: dict[str, Any]) -> None:
    """Train between two simulated parties: metrics, ledger, traffic.

    [bold]Examples[/bold]

    taciturn train --dataset breast-cancer --mechanism none --seed 1

    taciturn train --data loans.csv --id customer --label default --alice-columns half
    """
    if not json:
        _announce_estimate(settings)
    with progress_bar() as meter:
        record = api.train(observe=meter.observe, **settings).to_dict()
    _show(record, json, tables.training)


@app.command()
@with_settings
def check(
    *,
    columns: Annotated[
        int | None, typer.Option(min=1, help="Only the number of Alice's columns; no table.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=2, help="With --columns: how many rows there will be (2000).")
    ] = None,
    json: Json = False,
    settings: dict[str, Any],
) -> None:
    """Say before any training what Alice will be able to do, and what to change.

    Alice's own table may be given with --data: no label is needed, and none is looked at.

    [bold]Examples[/bold]

    taciturn check --dataset breast-cancer --mechanism hybrid

    taciturn check --columns 40 --rows 5000 --mechanism add --epsilon 1 --epochs 5

    taciturn check --data alice.csv --id customer --mechanism none --batch-size 64
    """
    wanted = {key: value for key, value in settings.items() if key != "record"}
    with progress_bar() as meter:
        found = api.check(columns=columns, rows=rows, announce=meter.announce, **wanted)
    _show(found.to_dict(), json, tables.preflight)


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
    canary: Annotated[
        bool,
        typer.Option(
            "--canary/--no-canary",
            help="Attack a run on shuffled labels too: the protocol's leak alone.",
        ),
    ] = True,
    html: Annotated[Path | None, typer.Option(help="Write the report as one HTML file.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the report as Markdown.")] = None,
    json: Json = False,
    settings: dict[str, Any],
) -> None:
    """Train, or read a recording, and run the attacks Alice could run.

    [bold]Examples[/bold]

    taciturn audit --dataset breast-cancer --mechanism none --scheme clear --seed 1

    taciturn audit --dataset breast-cancer --mechanism none --scheme clear --permute-labels

    taciturn audit --dataset sklearn-digits --mechanism add --epsilon 10 --html report.html

    taciturn audit --transcript run.transcript
    """
    require_writable(html, markdown)
    with progress_bar() as meter:
        record = api.audit(
            transcript=transcript,
            shuffle_truth=shuffle_truth,
            canary=canary,
            observe=meter.observe,
            announce=meter.announce,
            progress=meter.progress,
            **settings,
        ).to_dict()
    record = {**record, "version": __version__, "command": _command()}
    _write_reports(record, html, markdown)
    _show(record, json, tables.training, tables.findings)


@app.command()
def demo(
    html: Annotated[
        Path, typer.Option(help="Where to write the report on the last of them.")
    ] = Path("taciturn-demo.html"),
    json: Json = False,
) -> None:
    """Train on breast-cancer: without protection, as the paper does it, and sealed.

    Both parties run in this process, with real encryption. Alice holds all 30 columns, Bob the
    labels; the attacks show what she can tell of them from the messages.
    """
    require_writable(html)
    runs = []
    with progress_bar() as meter:
        for mechanism in ("none", "hybrid", "sealed"):
            found = api.audit(
                dataset="breast-cancer",
                mechanism=mechanism,
                seed=1,
                observe=meter.observe,
                announce=meter.announce,
                progress=meter.progress,
            )
            runs.append({**found.to_dict(), "version": __version__, "command": _command()})
    _write_reports(runs[-1], html, None)
    _show({"runs": runs, "html": str(html)}, json, tables.demo)


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

    taciturn bench --quick

    taciturn bench --against phe,heu --plot bench.svg
    """
    rivals = () if against == "none" else tuple(name.strip() for name in against.split(","))
    if plot is not None and "phe" not in rivals:
        raise ConfigError(
            "the plot shows ratios to phe", where="--plot", hint="use --against phe with it"
        )
    require_writable(plot)
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


app.command()(align)
app.command()(certs)
app.command()(doctor)
app.command()(init)
app.command()(party)
app.command()(reproduce)
app.command()(predict)
app.add_typer(model)


def _write_reports(record: Record, html: Path | None, markdown: Path | None) -> None:
    # Imported here: the template engine is not needed by any other command.
    if html is not None:
        from taciturn.report.html import render as render_html

        write_text(html, render_html(record))
    if markdown is not None:
        from taciturn.report.markdown import render as render_markdown

        write_text(markdown, render_markdown(record))


def _command() -> str:
    """The command as it was typed."""
    return shlex.join(["taciturn", *sys.argv[1:]])


def _announce_estimate(settings: dict[str, Any]) -> None:
    wanted = {key: value for key, value in settings.items() if key != "record"}
    console(error=True).print(tables.forecast(api.estimate(**wanted).to_dict()))


def _show(record: Record, as_json: bool, *parts: Any) -> None:  # noqa: ANN401 - renderers
    if as_json:
        typer.echo(to_json(record))
        return
    screen = console()
    for part in parts:
        screen.print(part(record))
